#include "simulation/world.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "base/error.h"
#include "simulation/allocation_guard.h"

namespace oga::testing {

namespace {

// The scripted executor is code of the test: its allocations are not the engine's.
class UncountedExecutor final : public ModelExecutor {
 public:
  UncountedExecutor(std::unique_ptr<ScriptedExecutor> inner) : inner_(std::move(inner)) {}
  ExecutionResult Execute(const ExecutionBatch& batch) override {
    const AllocationPause pause;
    return inner_->Execute(batch);
  }
  int32_t vocab_size() const override { return inner_->vocab_size(); }
  uint64_t block_bytes() const override { return inner_->block_bytes(); }

 private:
  std::unique_ptr<ScriptedExecutor> inner_;
};

// Three different hashes in all: nearly every look-up meets a collision.
BlockHash WeakHash(const HashKey&, const BlockHash&, uint64_t, std::span<const TokenId> tokens) noexcept {
  return {static_cast<uint64_t>(tokens.front()) % 3, 0};
}

std::optional<Fault> FaultOf(FaultPoint point) {
  switch (point) {
    case FaultPoint::kPlan: return Fault::kPlan;
    case FaultPoint::kReserveCache: return Fault::kReserveCache;
    case FaultPoint::kCheckpoint: return Fault::kCheckpoint;
    case FaultPoint::kPack: return Fault::kPack;
    case FaultPoint::kSample: return Fault::kSample;
    case FaultPoint::kPrepare: return Fault::kPrepare;
  }
  return std::nullopt;
}

}  // namespace

void SimulationReport::Add(const SimulationReport& other) {
  runs += other.runs;
  steps += other.steps;
  preemptions += other.preemptions;
  tokens += other.tokens;
  prefix_hits += other.prefix_hits;
  prefix_evictions += other.prefix_evictions;
  longest_wait_steps = std::max(longest_wait_steps, other.longest_wait_steps);
  for (size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
}

World::World(uint64_t seed, bool verbose) : random_(seed), seed_(seed), verbose_(verbose) { MakeEngine(); }

void World::MakeEngine() {
  limits_.block_size_slots = 1u << Draw(4);
  limits_.num_blocks = static_cast<uint32_t>(2 + Draw(Chance(3) ? 60 : 14));
  limits_.max_batch_size = static_cast<uint32_t>(1 + Draw(8));
  limits_.max_scheduled_tokens = static_cast<uint32_t>(1 + Draw(Chance(2) ? 6 : 40));
  limits_.chunk_size_tokens = Chance(2) ? 0 : static_cast<uint32_t>(1 + Draw(9));
  limits_.max_resident_requests = static_cast<uint32_t>(1 + Draw(4 * limits_.max_batch_size));
  limits_.max_wait_steps = static_cast<uint32_t>(16 + Draw(33));
  limits_.context_length_tokens = 8 + Draw(60);
  limits_.prefix_caching = !Chance(4);

  EngineParts parts;
  parts.limits = limits_;
  parts.traits.vocab_size = kSimVocab;
  parts.traits.sampleable_tokens = kSimSampleable;
  parts.tokens = SimTokenBytes();
  parts.traits.eos_token_ids.assign(std::begin(kSimEos), std::end(kSimEos));
  if (Chance(3)) parts.block_hash = WeakHash;
  if (Chance(3)) parts.policy = std::make_unique<ShortestPromptPolicy>();
  parts.fault_hook = [this](FaultPoint point) {
    const bool armed_here = armed_ == Fault::kUnnamed || FaultOf(point) == armed_;
    if (!armed_here || armed_countdown_-- != 0) return;
    hit_ = true;
    if (armed_ == Fault::kUnnamed) throw std::runtime_error("nobody can name this");
    throw std::bad_alloc();
  };
  auto scripted = std::make_unique<ScriptedExecutor>(limits_, kSimVocab, [](auto) { return 0; });
  scripted->edit_logits = FillScriptLogits;
  executor_ = scripted.get();
  parts.executor = std::make_unique<UncountedExecutor>(std::move(scripted));
  engine_ = Engine::Create(std::move(parts));
  for (const size_t capacity : {0, 1, 2, 5, 64}) buffers_.push_back(engine_->CreateEventBuffer(capacity));
}

SimulationReport World::Live() {
  const uint64_t rounds = 50 + Draw(400);
  for (uint64_t round = 0; round < rounds && !engine_failed_; ++round) {
    for (uint64_t actions = Draw(3); actions > 0; --actions) Act();
    RunOnce(/*with_faults=*/true);
  }
  if (engine_failed_) {
    CheckFatalEnd();
  } else {
    Finish();
  }
  while (!actors_.empty()) Close(actors_.size() - 1, Chance(2));
  engine_->HasPendingRequests();
  const EngineStatistics statistics = engine_->GetStatistics();
  if (statistics.free_blocks != limits_.num_blocks) throw std::runtime_error("blocks are missing at the end");
  if (statistics.live_requests != 0) throw std::runtime_error("requests are left at the end");
  engine_->DropPrefixCache();
  engine_->Validate();
  if (engine_->GetStatistics().cached_blocks != 0) throw std::runtime_error("the prefix cache cannot be dropped");
  report_.prefix_hits = statistics.prefix_hits;
  report_.prefix_evictions = statistics.prefix_evictions;
  report_.steps = statistics.steps;
  report_.preemptions = statistics.preemptions;
  report_.tokens = statistics.generated_tokens;
  return report_;
}

void World::Finish() {
  const uint64_t most = 200000;
  for (uint64_t i = 0; engine_->HasPendingRequests(); ++i) {
    if (i == most) throw std::runtime_error("the engine does not come to an end");
    RunOnce(/*with_faults=*/false);
  }
  for (const auto& actor : actors_) {
    if (actor->live()) throw std::runtime_error("a turn never ended");
  }
}

void World::Arm(Fault fault) {
  armed_ = fault;
  hit_ = false;
  armed_countdown_ = fault == Fault::kSample || fault == Fault::kUnnamed ? Draw(4) : 0;
  ScriptedExecutor::Outcome outcome;
  switch (fault) {
    case Fault::kExecuteRetryable:
      outcome.status = ExecutionStatus::kRetryable;
      outcome.writes_before_failure = Draw(8);
      break;
    case Fault::kExecuteCapacity:
      outcome.status = ExecutionStatus::kCapacityExceeded;
      outcome.writes_before_failure = 0;
      break;
    case Fault::kExecuteLate: outcome.status = ExecutionStatus::kRetryable; break;
    case Fault::kExecuteThrows: outcome.throws = true; break;
    case Fault::kExecuteFatal: outcome.status = ExecutionStatus::kFatal; break;
    case Fault::kWrongShape: outcome.wrong_shape = true; break;
    default: return;
  }
  executor_->outcomes.push_back(outcome);
}

void World::Disarm() {
  const bool execution = armed_ >= Fault::kExecuteRetryable && armed_ <= Fault::kWrongShape;
  if (execution) hit_ = executor_->outcomes.empty();
  executor_->outcomes.clear();
  if (hit_) ++report_.faults[static_cast<size_t>(armed_)];
  // A wrong shape shows only when logits were asked for.
  if (hit_ && IsFatal(armed_)) engine_failed_ = engine_failed_ || armed_ != Fault::kWrongShape;
  armed_ = Fault::kNone;
}

void World::RunOnce(bool with_faults) {
  ++report_.runs;
  EventBuffer& buffer = *buffers_[Draw(buffers_.size())];
  Fault fault = Fault::kNone;
  if (with_faults && Chance(6)) fault = static_cast<Fault>(1 + Draw(static_cast<uint64_t>(Fault::kCount) - 1));
  // Fatal faults end a world: rare, or the worlds would be short.
  if (IsFatal(fault) && !Chance(20)) fault = Fault::kNone;
  Arm(fault);
  const std::vector<uint64_t> before = Fingerprint();
  const EngineStatistics old = engine_->GetStatistics();
  bool threw = false;
  try {
    const AllocationGuard guard(fault == Fault::kAllocation ? static_cast<int64_t>(Draw(12)) : AllocationGuard::kNever);
    try {
      engine_->Run(buffer);
    } catch (...) {
      hit_ = hit_ || guard.failed();
      throw;
    }
    hit_ = hit_ || guard.failed();
  } catch (const std::bad_alloc&) {
    threw = true;
  }
  Disarm();
  const EngineStatistics now = engine_->GetStatistics();
  const bool dropped = now.preemptions != old.preemptions || now.dropped_residents != old.dropped_residents;
  if (!threw) Drain(buffer);
  engine_->Validate();
  if (now.steps == old.steps && !dropped && !engine_failed_) CheckUnchanged(before);
  if (now.steps != old.steps) CheckWaits();
  const bool stalled = now.steps == old.steps && !hit_ && !threw && buffer.capacity() > 0 && buffer.size() == 1 &&
                       buffer.at(0)->request == nullptr;
  idle_runs_ = stalled ? idle_runs_ + 1 : 0;
  if (idle_runs_ > 2 && verbose_) Describe();
  if (idle_runs_ > 2) throw std::runtime_error("the engine is stuck: nothing runs although nothing is wrong");
}

void World::Describe() const {
  const EngineStatistics statistics = engine_->GetStatistics();
  std::printf("pool %u blocks of %u, free %u; rows %u, tokens %u, residents %u, steps %u\n", limits_.num_blocks,
              limits_.block_size_slots, static_cast<unsigned>(statistics.free_blocks), limits_.max_batch_size,
              limits_.max_scheduled_tokens, limits_.max_resident_requests, static_cast<unsigned>(statistics.steps));
  for (const auto& actor : actors_) {
    const CandidateView& view = actor->request()->view();
    std::printf(
        "  request %u priority %d arrival %u sequence %u cached %u blocks %u live %d decoding %d preemptible %d "
        "shared tail %d progress %u\n",
        static_cast<unsigned>(view.request), view.priority, static_cast<unsigned>(view.arrival), view.sequence_tokens,
        view.cached_tokens, view.owned_blocks, view.live, view.decoding, view.preemptible, view.tail_shared,
        static_cast<unsigned>(view.last_progress_step));
  }
}

void World::Drain(const EventBuffer& buffer) {
  for (size_t i = 0; i < buffer.size(); ++i) {
    const Event& event = *buffer.at(i);
    if (event.error_code == EventErrorCode::kEngineContractFailure) throw std::runtime_error("a contract failure");
    if (event.error_code == EventErrorCode::kEngineExecutionFailure) engine_failed_ = true;
    if (event.request == nullptr) continue;
    Actor* actor = Find(event.request.get());
    if (actor == nullptr) throw std::runtime_error("an event of a closed request");
    const std::string wrong = actor->Follow(event, engine_failed_);
    if (!wrong.empty()) throw std::runtime_error("request " + std::to_string(event.request->id()) + ": " + wrong);
  }
}

Actor* World::Find(const Request* request) {
  const auto found = std::find_if(actors_.begin(), actors_.end(),
                                  [&](const auto& actor) { return actor->request().get() == request; });
  return found == actors_.end() ? nullptr : found->get();
}

std::vector<uint64_t> World::Fingerprint() const {
  std::vector<uint64_t> values;
  for (const auto& actor : actors_) {
    const Request& request = *actor->request();
    values.insert(values.end(),
                  {request.tokens().size(), static_cast<uint64_t>(request.state()), request.view().cached_tokens,
                   request.view().owned_blocks, request.usage().generated_tokens, HistoryHash(request.tokens())});
  }
  return values;
}

void World::CheckUnchanged(const std::vector<uint64_t>& before) const {
  if (Fingerprint() != before) throw std::runtime_error("a run that did not commit changed a request");
}

// The bound of the contract: max_wait_steps * (1 + position / max_batch_size) committed steps without progress. A step
// does not count for a request while some resident is on its way to a token with blocks that the request would need:
// it must not be preempted before it has produced one.
// At any moment a request must progress within the bound of the place it has then: what is left of an earlier bound may
// be less. A step in which another one is on its way to a token with blocks in hand does not count for the waiting.
void World::CheckWaits() {
  const uint64_t steps = engine_->GetStatistics().steps;
  const uint64_t rows = std::min({limits_.max_batch_size, limits_.max_scheduled_tokens, limits_.max_resident_requests});
  uint64_t running_protected = 0;
  for (const auto& actor : actors_) {
    const CandidateView& view = actor->request()->view();
    running_protected += view.live && view.resident() && !view.preemptible;
  }
  for (const auto& actor : actors_) {
    const CandidateView& view = actor->request()->view();
    if (!view.live) continue;
    const auto [entry, is_new] = waits_.try_emplace(view.request);
    Wait& wait = entry->second;
    if (is_new || view.last_progress_step != wait.progress || view.last_progress_step == steps) {
      wait = {view.last_progress_step, steps - view.last_progress_step, Bound(view, rows)};
    } else if (running_protected == 0 ||
               (view.resident() && view.owned_blocks * limits_.block_size_slots >= view.sequence_tokens)) {
      ++wait.steps;
      if (wait.left == 0) {
        throw std::runtime_error(Message("request ", view.request, view.resident() ? " (resident)" : "", " waits ",
                                         wait.steps, " steps, longer than its bound: max_wait ", limits_.max_wait_steps,
                                         ", rows ", rows, ", requests ", actors_.size(), ", pool ", limits_.num_blocks,
                                         ", residents ", limits_.max_resident_requests));
      }
      --wait.left;
    }
    wait.left = std::min(wait.left, Bound(view, rows));
    report_.longest_wait_steps = std::max(report_.longest_wait_steps, wait.steps);
  }
}

uint64_t World::Bound(const CandidateView& view, uint64_t rows) const {
  const auto is_ahead = [&](const auto& other) {
    const CandidateView& ahead = other->request()->view();
    return ahead.live && !ahead.resident() && ahead.arrival < view.arrival;
  };
  const auto position = view.resident() ? static_cast<std::ptrdiff_t>(actors_.size())
                                        : std::count_if(actors_.begin(), actors_.end(), is_ahead);
  return limits_.max_wait_steps * (1 + static_cast<uint64_t>(position) / rows);
}

void World::CheckFatalEnd() {
  EventBuffer& buffer = *buffers_.back();
  for (int i = 0; i < 1000; ++i) {
    try {
      engine_->Run(buffer);
    } catch (const Error& error) {
      if (error.code() != StatusCode::kEngineUnhealthy) throw std::runtime_error("another error than the stored one");
      for (const auto& actor : actors_) {
        if (actor->live()) throw std::runtime_error("a turn survived the engine");
      }
      return;
    }
    Drain(buffer);
  }
  throw std::runtime_error("an unhealthy engine keeps running");
}

}  // namespace oga::testing
