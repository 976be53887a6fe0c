// An engine over the scripted executor, and the small moves its tests are made of.
#pragma once

#include <map>
#include <memory>
#include <span>
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

  static EngineLimits SmallLimits();

  // Never EOS on its own, so that turns end where their options say.
  static TokenId Next(std::span<const TokenId> history);

  explicit EngineHarness(EngineLimits limits = SmallLimits(), NextToken next = Next, FaultHook hook = {},
                         SearchDefaults search = {}, std::shared_ptr<const TokenBytes> tokens = nullptr);
  ~EngineHarness();

  std::shared_ptr<Request> Create(uint64_t max_session_tokens = 0, int32_t priority = 0);
  static std::vector<TokenId> Prompt(size_t length, TokenId first = 1);
  static TurnId Begin(Request& request, std::span<const TokenId> input, uint64_t max_generated = 0);

  // One run; its events are also collected.
  std::vector<Event> Step();

  void Finish(size_t most_steps = 10000);

  // What a request generates alone, from the history alone.
  static std::vector<TokenId> Reference(std::vector<TokenId> history, size_t tokens, const NextToken& next = Next);

  Collected& Of(const std::shared_ptr<Request>& request);

  ScriptedExecutor* executor = nullptr;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<EventBuffer> buffer;
  std::map<const Request*, Collected> collected;
  std::vector<Event> engine_events;

 private:
  void Collect(const Event& event);
};

}  // namespace oga::testing
