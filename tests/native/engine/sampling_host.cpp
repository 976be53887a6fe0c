#include "native/engine/sampling_host.h"

#include <algorithm>
#include <utility>

namespace oga::testing {

Host::Host(Logits logits, EngineLimits limits, ModelTraits traits) {
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

ModelTraits Host::Traits() {
  ModelTraits traits;
  traits.vocab_size = kVocab;
  traits.eos_token_ids = {kEos, kEos + 1, kEos - 1};
  return traits;
}

TurnId Host::Begin(Request& request, const Tokens& input, const Configure& configure) {
  const auto options = request.CreateTurnOptions();
  configure(*options);
  return request.BeginTurn(input, options.get());
}

std::map<const Request*, Collected> Host::RunToEnd() {
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

Collected Host::Generate(const Tokens& input, const Configure& configure) {
  const auto request = Create();
  Begin(*request, input, configure);
  Collected collected = RunToEnd()[request.get()];
  request->Close();
  return collected;
}

void NegativeLogits(std::span<float> logits, std::span<const TokenId>) {
  std::fill(logits.begin(), logits.end(), -1.4f);
  logits[3] = -1.0f;
  logits[4] = -1.2f;
}

void HashedLogits(std::span<float> logits, std::span<const TokenId> history) {
  uint64_t hash = history.size();
  for (const TokenId token : history) hash = hash * 6364136223846793005ull + static_cast<uint64_t>(token) + 1;
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(((hash ^ (i * 0x9E3779B97F4A7C15ull)) * 0xff51afd7ed558ccdull) >> 52) / 700.0f;
  }
  for (TokenId token = kEos - 1; token <= kEos + 1; ++token) logits[static_cast<size_t>(token)] = -20.0f;
}

}  // namespace oga::testing
