// Guidance: what an engine needs so that turns follow grammars. Nothing of it exists before the first guided turn.
//
// Owned by one Engine; owner thread, Prepare excepted. Masks are computed on threads of its own while the model runs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/grammar_cursor.h"
#include "grammar/mask_batch.h"

namespace oga {

class Guidance {
 public:
  using MakeTokenizer = std::function<std::shared_ptr<const grammar::GrammarTokenizer>()>;

  explicit Guidance(MakeTokenizer make_tokenizer) : make_tokenizer_(std::move(make_tokenizer)) {}

  // Compiles a grammar, so that Begin finds it. The first call builds the vocabulary for llguidance. Any thread, also while
  // the owner uses this. Throws what GrammarTokenizer and GrammarCompiler::Compile throw; nothing changes then.
  void Prepare(const grammar::GrammarSpec& spec) { Compiler().Compile(spec); }

  // A cursor at the start of the grammar. Throws as Prepare.
  std::unique_ptr<grammar::GrammarCursor> Begin(const grammar::GrammarSpec& spec);

  // Masks that are being computed; its end waits for them.
  class Running {
   public:
    explicit Running(grammar::MaskBatch* masks) noexcept : masks_(masks) {}
    ~Running() {
      if (masks_ != nullptr) masks_->Wait();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    grammar::MaskBatch* masks_;  // null: there are none
  };

  // The masks of one step: Clear, Add for every guided row that will be sampled, Start before the model runs.
  void Clear() noexcept { cursors_.clear(); }
  void Add(grammar::GrammarCursor& cursor) { cursors_.push_back(&cursor); }
  [[nodiscard]] Running Start();

 private:
  grammar::GrammarCompiler& Compiler();

  MakeTokenizer make_tokenizer_;  // any thread
  std::mutex making_;
  std::optional<grammar::GrammarCompiler> compiler_;
  std::unique_ptr<grammar::MaskBatch> masks_;
  std::vector<grammar::GrammarCursor*> cursors_;
};

}  // namespace oga
