// What hosts do to an engine between two runs.
#include <algorithm>

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
  if (Chance(5)) options.repetition_penalty = 1.5f;
  if (Chance(2)) {
    options.do_sample = true;
    options.temperature = 0.25f * static_cast<float>(1 + Draw(8));
    if (Chance(2)) options.top_k = static_cast<int32_t>(Draw(10));
    if (Chance(2)) options.top_p = 0.9f;
    if (Chance(2)) options.seed = Draw(5);
  }
  return options;
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
  if (options.max_generated_tokens != 0) {
    options.min_generated_tokens = std::min(options.min_generated_tokens, options.max_generated_tokens);
  }
  const auto turn_options = actor.request()->CreateTurnOptions();
  turn_options->SetMaxGeneratedTokens(options.max_generated_tokens);
  turn_options->SetMinGeneratedTokens(options.min_generated_tokens);
  if (options.repetition_penalty) turn_options->SetRepetitionPenalty(*options.repetition_penalty);
  if (options.do_sample) turn_options->SetDoSample(*options.do_sample);
  if (options.temperature) turn_options->SetTemperature(*options.temperature);
  if (options.top_k) turn_options->SetTopK(*options.top_k);
  if (options.top_p) turn_options->SetTopP(*options.top_p);
  if (options.seed) turn_options->SetSeed(*options.seed);
  const TurnId id = actor.request()->BeginTurn(input, turn_options.get());
  actor.Began(id, input, options);
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
