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
  explicit Host(Logits logits, EngineLimits limits = EngineHarness::SmallLimits(), ModelTraits traits = Traits());

  static ModelTraits Traits();

  const std::shared_ptr<Engine>& engine() { return engine_; }
  std::shared_ptr<Request> Create() { return engine_->CreateRequest({}); }

  TurnId Begin(Request& request, const Tokens& input, const Configure& configure);

  // What the open turns of each request generate until all have ended.
  std::map<const Request*, Collected> RunToEnd();

  // One turn of a fresh request.
  Collected Generate(const Tokens& input, const Configure& configure);

 private:
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<EventBuffer> buffer_;
};

// Every token -1.4, but 3 and 4 more likely; nothing is positive.
void NegativeLogits(std::span<float> logits, std::span<const TokenId> history);

// Different for every history, without the EOS ids.
void HashedLogits(std::span<float> logits, std::span<const TokenId> history);

}  // namespace oga::testing
