// What hosts do to an engine between two runs.
#include <algorithm>
#include <type_traits>
#include <variant>

#include "simulation/world.h"

namespace oga::testing {

void World::Act() {
  if (actors_.empty() || (actors_.size() < 24 && Chance(4))) return Create();
  const size_t index = Draw(actors_.size());
  Actor& actor = *actors_[index];
  switch (Draw(16)) {
    case 0: return Cancel(actor);
    case 1: return Rewind(actor);
    case 2: return Fork(actor);
    case 3: return Close(index, /*abandon=*/false);
    case 4: return Close(index, /*abandon=*/true);
    default: return Begin(actor);
  }
}

void World::Create() {
  const uint64_t most = limits_.max_request_tokens();
  const uint64_t session = Chance(3) ? 0 : 2 + Draw(most - 1);
  auto request = engine_->CreateRequest({session, static_cast<int32_t>(Chance(3) ? Draw(3) : 0), Draw(2)});
  request->AdoptHandle();
  actors_.push_back(std::make_unique<Actor>(std::move(request), session == 0 ? most : session));
}

std::vector<TokenId> World::DrawInput(uint64_t room) {
  const uint64_t most = std::min<uint64_t>(room - 1, Chance(5) ? room : 12);
  std::vector<TokenId> input(1 + Draw(std::max<uint64_t>(1, most)));
  // Half of the inputs follow one of a few texts for a while, so that sequences share beginnings.
  const uint64_t text = Draw(3);
  const uint64_t follows = Chance(2) ? 0 : Draw(input.size() + 1);
  for (uint64_t i = 0; i < input.size(); ++i) {
    input[i] = static_cast<TokenId>(i < follows ? Mix(100 * text + i) % kSimVocab : Draw(Chance(3) ? kSimVocab : 3));
  }
  return input;
}

SamplingOptions World::DrawOptions() {
  SamplingOptions options;
  if (!Chance(4)) options.max_generated_tokens = 1 + Draw(20);
  if (Chance(5)) options.ignore_eos = Chance(2);
  if (Chance(5)) options.stop_tokens = {DrawToken(20), kSimEos[0]};
  DrawProcessors(options);
  if (Chance(2)) DrawWarpers(options);
  return options;
}

// Some id of at least `lowest`. Lists keep to high ones, so that a turn has tokens to begin with.
TokenId World::DrawToken(int32_t lowest) {
  return static_cast<TokenId>(static_cast<uint64_t>(lowest) + Draw(static_cast<uint64_t>(kSimVocab - lowest)));
}

void World::DrawProcessors(SamplingOptions& options) {
  if (Chance(5)) options.repetition_penalty = 1.5f;
  if (Chance(6)) options.presence_penalty = 0.5f * static_cast<float>(Draw(4)) - 1.0f;
  if (Chance(6)) options.frequency_penalty = 0.25f * static_cast<float>(Draw(4));
  if (Chance(6)) options.no_repeat_ngram_size = static_cast<int32_t>(Draw(4));
  if (Chance(6)) {
    options.dry_multiplier = 0.8f;
    options.dry_allowed_length = static_cast<int32_t>(1 + Draw(3));
    options.dry_range = static_cast<int32_t>(Draw(20));
    options.dry_breakers = {DrawToken(0)};
  }
  if (Chance(6)) options.logit_bias = {{DrawToken(0), static_cast<float>(Draw(9)) - 4.0f}};
  if (Chance(6)) options.banned_sequences = {{DrawToken(0), DrawToken(0)}, {DrawToken(10)}};
  if (Chance(8)) options.allowed_tokens = {0, 1, 2, 3, 4, 5, 6, DrawToken(0), DrawToken(40)};
}

void World::DrawWarpers(SamplingOptions& options) {
  options.do_sample = true;
  options.temperature = 0.25f * static_cast<float>(1 + Draw(8));
  if (Chance(2)) options.top_k = static_cast<int32_t>(Draw(10));
  if (Chance(2)) options.top_p = 0.9f;
  if (Chance(4)) options.typical_p = 0.8f;
  if (Chance(4)) options.min_p = 0.1f;
  if (Chance(4)) options.top_n_sigma = 1.5f;
  if (Chance(4)) options.xtc_probability = 0.5f;
  if (Chance(2)) options.seed = Draw(5);
}

TellOptions World::DrawTells() {
  static const char* const kStops[] = {"aba", "bb", "a\xC3\xA9", "abab", "ab", "\xC3\xA9\xC3\xA9", "aab"};
  TellOptions tells;
  tells.emits_text = Chance(2);
  if (Chance(3)) {
    for (uint64_t count = 1 + Draw(3); count > 0; --count)
      tells.stop_strings.push_back(kStops[Draw(std::size(kStops))]);
  }
  if (Chance(6)) tells.prompt_top = static_cast<int32_t>(Draw(3));
  return tells;
}

void World::SetTells(TurnOptions& target, const TellOptions& tells) {
  target.SetStopStrings(tells.stop_strings);
  target.SetEmitText(tells.emits_text, false);
  if (tells.prompt_top) target.SetPromptLogprobs(*tells.prompt_top);
}

// As a host sets them: one by one.
void World::SetOptions(TurnOptions& target, const SamplingOptions& options) {
  for (const SamplingOption& option : kSamplingOptions) {
    std::visit(
        [&](auto fields) {
          const auto& value = options.*fields.asked;
          if (!value) return;
          if constexpr (std::is_same_v<typename decltype(fields)::Value, bool>) {
            target.SetBool(option.name, *value);
          } else {
            target.SetNumber(option.name, static_cast<double>(*value));
          }
        },
        option.fields);
  }
  if (options.seed) target.SetSeed(*options.seed);
  target.SetLogitBias(options.logit_bias);
  target.SetStopTokens(options.stop_tokens);
  target.SetBannedSequences(options.banned_sequences);
  target.SetAllowedTokens(options.allowed_tokens);
  target.SetDryBreakers(options.dry_breakers);
}

void World::Begin(Actor& actor) {
  const bool drained = actor.live() == actor.request()->turn_live();
  if (actor.live() || !drained || actor.failed() || actor.room() < 2) {
    try {
      actor.request()->BeginTurn(std::vector<TokenId>(1, 1), nullptr);
    } catch (const Error&) {
      return;
    }
    throw std::runtime_error("BeginTurn was accepted where it must be refused");
  }
  const std::vector<TokenId> input = DrawInput(actor.room());
  SamplingOptions options = DrawOptions();
  const uint64_t room = actor.room() - input.size();
  if (Chance(4)) options.min_generated_tokens = 1 + Draw(room);
  if (options.min_generated_tokens && options.max_generated_tokens) {
    options.min_generated_tokens = std::min(*options.min_generated_tokens, *options.max_generated_tokens);
  }
  const auto turn_options = actor.request()->CreateTurnOptions();
  SetOptions(*turn_options, options);
  TellOptions tells = DrawTells();
  SetTells(*turn_options, tells);
  const TurnId id = actor.request()->BeginTurn(input, turn_options.get());
  actor.Began(id, input, options, std::move(tells));
}

void World::Cancel(Actor& actor) {
  if (actor.request()->turn_id() == 0) return;
  const bool live = actor.request()->turn_live();
  if (actor.request()->CancelTurn(actor.request()->turn_id() + (Chance(4) ? 1 : 0))) {
    if (!live) throw std::runtime_error("a turn at rest was cancelled");
    actor.Cancelled();
  }
}

void World::Rewind(Actor& actor) {
  if (actor.live() || actor.request()->turn_live() || actor.turns().empty()) return;
  const Request::TurnRecord turn = actor.turns()[Draw(actor.turns().size())];
  actor.request()->RewindToStartOfTurn(turn.id);
  actor.Rewound(turn);
}

void World::Fork(Actor& actor) {
  if (actor.live() || actor.request()->turn_live() || actor.failed() || actor.request()->turn_id() == 0) return;
  if (actors_.size() >= 24) return;
  auto fork = actor.request()->Fork();
  fork->AdoptHandle();
  auto copy = std::make_unique<Actor>(std::move(fork), actor.max_session_tokens());
  copy->CopyFrom(actor);
  actors_.push_back(std::move(copy));
}

void World::Close(size_t index, bool abandon) {
  const std::shared_ptr<Request> request = actors_[index]->request();
  if (abandon) {
    request->ReleaseHandle();
  } else {
    request->Close();
    request->Close();
    request->ReleaseHandle();
  }
  waits_.erase(request->id());
  actors_.erase(actors_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace oga::testing
