// An engine over the scripted executor, and the small moves its tests are made of.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "native/engine/scripted_executor.h"

namespace oga::testing {

struct Collected {
  std::vector<TokenId> tokens;
  std::vector<Event> endings;
};

class EngineHarness {
 public:
  static constexpr int32_t kVocab = 64;
  static constexpr TokenId kEos = 63;

  static EngineLimits SmallLimits() {
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

  // Never EOS on its own, so that turns end where their options say.
  static TokenId Next(std::span<const TokenId> history) { return HashedNext(history, kVocab - 2); }

  explicit EngineHarness(EngineLimits limits = SmallLimits(), NextToken next = Next, FaultHook hook = {},
                         SearchDefaults search = {}, std::shared_ptr<const TokenBytes> tokens = nullptr) {
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

  std::shared_ptr<Request> Create(uint64_t max_session_tokens = 0, int32_t priority = 0) {
    return engine->CreateRequest({max_session_tokens, priority});
  }

  static std::vector<TokenId> Prompt(size_t length, TokenId first = 1) {
    std::vector<TokenId> prompt;
    for (size_t i = 0; i < length; ++i) prompt.push_back(static_cast<TokenId>((first + 7 * i) % 60));
    return prompt;
  }

  static TurnId Begin(Request& request, std::span<const TokenId> input, uint64_t max_generated = 0) {
    const std::unique_ptr<TurnOptions> options = request.CreateTurnOptions();
    options->SetMaxGeneratedTokens(max_generated);
    return request.BeginTurn(input, options.get());
  }

  // One run; its events are also collected.
  std::vector<Event> Step() {
    engine->Run(*buffer);
    std::vector<Event> events;
    for (size_t i = 0; i < buffer->size(); ++i) {
      events.push_back(*buffer->at(i));
      Collect(events.back());
    }
    return events;
  }

  void Finish(size_t most_steps = 10000) {
    for (size_t i = 0; engine->HasPendingRequests(); ++i) {
      if (i == most_steps) throw std::runtime_error("the engine does not come to an end");
      Step();
    }
  }

  // What a request generates alone, from the history alone.
  static std::vector<TokenId> Reference(std::vector<TokenId> history, size_t tokens, const NextToken& next = Next) {
    std::vector<TokenId> generated;
    while (generated.size() < tokens) {
      generated.push_back(next(history));
      history.push_back(generated.back());
    }
    return generated;
  }

  Collected& Of(const std::shared_ptr<Request>& request) { return collected[request.get()]; }

  ScriptedExecutor* executor = nullptr;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<EventBuffer> buffer;
  std::map<const Request*, Collected> collected;
  std::vector<Event> engine_events;

 private:
  void Collect(const Event& event) {
    if (event.request == nullptr) {
      engine_events.push_back(event);
      return;
    }
    Collected& of = collected[event.request.get()];
    if (event.flags & event_flags::kToken) of.tokens.push_back(event.token);
    if (event.flags & event_flags::kTurnFinished) of.endings.push_back(event);
  }
};

}  // namespace oga::testing
