// An engine whose model gives the logits that a test wants, and the moves of the tests of sampling.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "native/engine/engine_harness.h"

namespace oga::testing {

using Tokens = std::vector<TokenId>;
using Logits = std::function<void(std::span<float>, std::span<const TokenId>)>;
using Configure = std::function<void(TurnOptions&)>;

inline constexpr int32_t kVocab = 64;
inline constexpr TokenId kEos = 61;

// An engine whose model gives the logits that a test wants.
class Host {
 public:
  explicit Host(Logits logits, EngineLimits limits = EngineHarness::SmallLimits(), ModelTraits traits = Traits()) {
    EngineParts parts;
    parts.limits = limits;
    parts.traits = std::move(traits);
    parts.validate = true;
    auto scripted = std::make_unique<ScriptedExecutor>(limits, kVocab, [](auto) { return 0; });
    scripted->edit_logits = std::move(logits);
    parts.executor = std::move(scripted);
    engine_ = Engine::Create(std::move(parts));
    buffer_ = engine_->CreateEventBuffer(64);
  }

  static ModelTraits Traits() {
    ModelTraits traits;
    traits.vocab_size = kVocab;
    traits.eos_token_ids = {kEos, kEos + 1, kEos - 1};
    return traits;
  }

  const std::shared_ptr<Engine>& engine() { return engine_; }
  std::shared_ptr<Request> Create() { return engine_->CreateRequest({}); }

  TurnId Begin(Request& request, const Tokens& input, const Configure& configure) {
    const auto options = request.CreateTurnOptions();
    configure(*options);
    return request.BeginTurn(input, options.get());
  }

  // What the open turns of each request generate until all have ended.
  std::map<const Request*, Collected> RunToEnd() {
    std::map<const Request*, Collected> collected;
    while (engine_->HasPendingRequests()) {
      engine_->Run(*buffer_);
      for (size_t i = 0; i < buffer_->size(); ++i) {
        const Event& event = *buffer_->at(i);
        Collected& of = collected[event.request.get()];
        if (event.flags & event_flags::kToken) of.tokens.push_back(event.token);
        if (event.flags & event_flags::kTurnFinished) of.endings.push_back(event);
      }
    }
    return collected;
  }

  // One turn of a fresh request.
  Collected Generate(const Tokens& input, const Configure& configure) {
    const auto request = Create();
    Begin(*request, input, configure);
    Collected collected = RunToEnd()[request.get()];
    request->Close();
    return collected;
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<EventBuffer> buffer_;
};

// Every token -1.4, but 3 and 4 more likely; nothing is positive.
inline void NegativeLogits(std::span<float> logits, std::span<const TokenId>) {
  std::fill(logits.begin(), logits.end(), -1.4f);
  logits[3] = -1.0f;
  logits[4] = -1.2f;
}

// Different for every history, without the EOS ids.
inline void HashedLogits(std::span<float> logits, std::span<const TokenId> history) {
  uint64_t hash = history.size();
  for (const TokenId token : history) hash = hash * 6364136223846793005ull + static_cast<uint64_t>(token) + 1;
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(((hash ^ (i * 0x9E3779B97F4A7C15ull)) * 0xff51afd7ed558ccdull) >> 52) / 700.0f;
  }
  for (TokenId token = kEos - 1; token <= kEos + 1; ++token) logits[static_cast<size_t>(token)] = -20.0f;
}

}  // namespace oga::testing
