#include "engine/guidance.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace oga {

namespace {

// The model's own threads want the cores; one mask takes far less than a step of a model.
size_t MaskThreads() { return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, 4); }

}  // namespace

grammar::GrammarCompiler& Guidance::Compiler() {
  const std::lock_guard lock(making_);
  if (!compiler_) compiler_.emplace(make_tokenizer_());
  return *compiler_;
}

std::unique_ptr<grammar::GrammarCursor> Guidance::Begin(const grammar::GrammarSpec& spec) {
  if (masks_ == nullptr) masks_ = std::make_unique<grammar::MaskBatch>(MaskThreads());
  return std::make_unique<grammar::GrammarCursor>(Compiler().Compile(spec), grammar::DelimitersOf(spec));
}

Guidance::Running Guidance::Start() {
  if (cursors_.empty()) return Running(nullptr);
  masks_->Start(cursors_);
  return Running(masks_.get());
}

}  // namespace oga
