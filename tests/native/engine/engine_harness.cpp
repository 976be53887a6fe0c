#include "native/engine/engine_harness.h"

#include <stdexcept>
#include <utility>

namespace oga::testing {

EngineLimits EngineHarness::SmallLimits() {
  EngineLimits limits;
  limits.block_size_slots = 4;
  limits.num_blocks = 64;
  limits.max_batch_size = 8;
  limits.max_scheduled_tokens = 64;
  limits.max_resident_requests = 32;
  limits.max_wait_steps = 32;
  limits.context_length_tokens = 128;
  return limits;
}

TokenId EngineHarness::Next(std::span<const TokenId> history) { return HashedNext(history, kVocab - 2); }

EngineHarness::EngineHarness(EngineLimits limits, NextToken next, FaultHook hook, SearchDefaults search,
                             std::shared_ptr<const TokenBytes> tokens) {
  EngineParts parts;
  parts.limits = limits;
  parts.tokens = std::move(tokens);
  parts.traits.search = search;
  parts.traits.vocab_size = kVocab;
  parts.traits.eos_token_ids = {kEos, kEos - 1};
  parts.fault_hook = std::move(hook);
  parts.validate = true;
  auto scripted = std::make_unique<ScriptedExecutor>(limits, kVocab, std::move(next));
  executor = scripted.get();
  parts.executor = std::move(scripted);
  engine = Engine::Create(std::move(parts));
  buffer = engine->CreateEventBuffer(64);
}

EngineHarness::~EngineHarness() = default;

std::shared_ptr<Request> EngineHarness::Create(uint64_t max_session_tokens, int32_t priority) {
  return engine->CreateRequest({max_session_tokens, priority});
}

std::vector<TokenId> EngineHarness::Prompt(size_t length, TokenId first) {
  std::vector<TokenId> prompt;
  for (size_t i = 0; i < length; ++i) prompt.push_back(static_cast<TokenId>((first + 7 * i) % 60));
  return prompt;
}

TurnId EngineHarness::Begin(Request& request, std::span<const TokenId> input, uint64_t max_generated) {
  const std::unique_ptr<TurnOptions> options = request.CreateTurnOptions();
  options->SetMaxGeneratedTokens(max_generated);
  return request.BeginTurn(input, options.get());
}

std::vector<Event> EngineHarness::Step() {
  engine->Run(*buffer);
  std::vector<Event> events;
  for (size_t i = 0; i < buffer->size(); ++i) {
    events.push_back(*buffer->at(i));
    Collect(events.back());
  }
  return events;
}

void EngineHarness::Finish(size_t most_steps) {
  for (size_t i = 0; engine->HasPendingRequests(); ++i) {
    if (i == most_steps) throw std::runtime_error("the engine does not come to an end");
    Step();
  }
}

std::vector<TokenId> EngineHarness::Reference(std::vector<TokenId> history, size_t tokens, const NextToken& next) {
  std::vector<TokenId> generated;
  while (generated.size() < tokens) {
    generated.push_back(next(history));
    history.push_back(generated.back());
  }
  return generated;
}

void EngineHarness::Collect(const Event& event) {
  if (event.request == nullptr) {
    engine_events.push_back(event);
    return;
  }
  Collected& of = collected[event.request.get()];
  if (event.flags & event_flags::kToken) of.tokens.push_back(event.token);
  if (event.flags & event_flags::kTurnFinished) of.endings.push_back(event);
}

Collected& EngineHarness::Of(const std::shared_ptr<Request>& request) { return collected[request.get()]; }

}  // namespace oga::testing
