// One step, as a transaction:
//
//   Plan       scheduler   pure; what must give way first is dropped and the plan made again
//   Reserve    cache       blocks of every row, all or nothing; undone by the reservation's destructor
//   Checkpoint requests    room for what may be staged; sampling changes nothing else, so there is nothing to save
//   Execute    model       one decoder run over the packed tokens
//   Sample     search      processors and sampler: staged results only
//   Prepare    -           last fallible work; there is none yet
//   Commit     all         noexcept, in a fixed order; the point of no return
//   Publish    engine      staged results become events
//
// A failure before Commit leaves no trace but a committed preemption, which no output shows. Commit refuses, with nothing
// published, when anything moved since Reserve; the engine is then unhealthy for good.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine.h"
#include "model/execution_failure.h"

namespace oga {

namespace {

FailureKind FailureOf(search::SampleStatus status) {
  switch (status) {
    case search::SampleStatus::kOk: return FailureKind::kNone;
    case search::SampleStatus::kBadLogits: return FailureKind::kBadLogits;
    case search::SampleStatus::kNoCandidate: return FailureKind::kNoAllowedToken;
  }
  return FailureKind::kNone;
}

void WarnOfGrammar(const Request& request, const Error& error) {
  log::Warning(Message("request ", request.id(), ", turn ", request.turn_id(), " fails: ", error.message()));
}

}  // namespace

void Engine::Inject(FaultPoint point) const {
  if (fault_hook_) fault_hook_(point);
}

SchedulerView Engine::View() const {
  SchedulerView view;
  view.limits.block_size_slots = limits_.block_size_slots;
  view.limits.total_blocks = limits_.num_blocks;
  view.limits.max_rows = limits_.max_batch_size;
  view.limits.max_scheduled_tokens = token_budget_;
  view.limits.chunk_size_tokens = limits_.chunk_size_tokens;
  view.limits.max_resident_requests = limits_.max_resident_requests;
  view.limits.max_wait_steps = limits_.max_wait_steps;
  view.free_blocks = cache_.pool().available_blocks();
  view.committed_steps = statistics_.steps;
  view.next_due_step = next_due_step_;
  view.prefix = limits_.prefix_caching ? &prefix_lookup_ : nullptr;
  view.explain = trace_ != nullptr;
  view.attempt = attempt_;
  view.running = queues_.running();
  view.waiting = queues_.waiting();
  view.waiting_by_arrival = queues_.waiting_by_arrival();
  view.dormant = queues_.dormant();
  return view;
}

void Engine::ExecuteStep() {
  ++attempt_;
  dropped_.clear();
  results_.clear();
  clock_.Start();
  // Room for whatever this step may have to tell, a fatal end included.
  events_.Reserve(OpenRequests() + limits_.max_batch_size + 1);
  try {
    AppendForcedTokens();
    Plan();
    if (plan_.outcome == PlanOutcome::kExecutable) {
      Transact();
    } else if (plan_.outcome == PlanOutcome::kCapacityDeferred) {
      PushEngineEvent(event_flags::kCapacityBlocked, EventErrorCode::kCapacityDeferred);
      Trace("capacity_deferred");
    }
    if (validate_) Validate();
  } catch (const ContractError& error) {
    Fail(FailureKind::kContract, error.message());
  } catch (...) {
    const ExecutionResult failure = FailureOfCurrentException(ExecutionStatus::kRetryable);
    if (failure.status == ExecutionStatus::kRetryable) throw;  // planning changes nothing that the next run needs
    Fail(FailureKind::kExecution, failure.message);
  }
}

void Engine::Plan() {
  do {
    Inject(FaultPoint::kPlan);
    MarkProtectedTails();
    UpdateDueSteps();
    planner_.Plan(View(), plan_);
    FailUnserviceable();
    // What a drop really frees depends on who shares the blocks, so the plan is made again from what is free then. Each
    // round drops somebody: the rounds end.
    if (plan_.outcome == PlanOutcome::kDropFirst) DropCaches(plan_.drops);
  } while (plan_.outcome == PlanOutcome::kDropFirst);
  clock_.Mark(StepPhase::kPlan);
}

// Whether a request's next token needs a copy of its block first changes with what others do.
void Engine::MarkProtectedTails() noexcept {
  for (const CandidateView* candidate : queues_.running()) {
    requests_[candidate->index]->view().tail_shared = cache_.NextBlockProtected(candidate->index);
  }
}

// At any moment one of the waiting must progress within the bound of the place it has then; what is left of the bound of an
// earlier place may be less.
void Engine::UpdateDueSteps() noexcept {
  if (seen_waiting_changes_ == queues_.waiting_changes()) return;
  seen_waiting_changes_ = queues_.waiting_changes();
  next_due_step_ = CandidateView::kNever;
  const PlanLimits limits = View().limits;
  size_t position = 0;
  for (const CandidateView* candidate : queues_.waiting_by_arrival()) {
    uint64_t& due_step = requests_[candidate->index]->view().due_step;
    due_step = std::min(due_step, statistics_.steps + WaitBound(limits, position++));
    next_due_step_ = std::min(next_due_step_, due_step);
  }
}

void Engine::DropCaches(std::span<const RequestIndex> requests) noexcept {
  for (const RequestIndex index : requests) {
    Request& request = *requests_[index];
    queues_.Remove(request.view(), request.place);
    request.place = QueuePlace::kNone;
    ++(request.view().live ? statistics_.preemptions : statistics_.dropped_residents);
    dropped_.push_back(request.id());
    cache_.Drop(index);
    request.view().cached_tokens = 0;
    request.view().decoding = false;
    request.view().preemptible = false;
    request.view().tail_shared = false;
    request.view().dropped_at_attempt = attempt_;
    request.view().due_step = CandidateView::kNever;
    Settle(request);
  }
}

void Engine::Transact() {
  try {
    Reservation reservation = Reserve();
    Checkpoint();
    const ExecutionResult execution = Execute(reservation);
    if (execution.status != ExecutionStatus::kOk) return Rollback(execution);
    Sample(execution.logits);
    Prepare();
    if (Commit(reservation) != CommitStatus::kCommitted) {
      throw ContractError("the cache changed between the reservation of a step and its commit");
    }
  } catch (const ContractError&) {
    throw;
  } catch (...) {
    return Rollback(FailureOfCurrentException(ExecutionStatus::kRetryable));
  }
  Publish();
  clock_.Mark(StepPhase::kCommit);
  Trace("committed");
}

Reservation Engine::Reserve() {
  Inject(FaultPoint::kReserveCache);
  return cache_.Reserve(plan_);
}

void Engine::Checkpoint() {
  Inject(FaultPoint::kCheckpoint);
  results_.reserve(plan_.rows.size());
  for (const RowPlan& row : plan_.rows) {
    if (!row.samples()) continue;
    Request& request = *requests_[row.index];
    request.ReserveToken();
    if (request.settings().searches_sequence()) sampler_.ReserveHistory(request.tokens().size());
    cache_.ReserveHashes(row.index, request.tokens().size() + 1);
  }
  clock_.Mark(StepPhase::kReserve);
}

ExecutionBatch Engine::Pack(const Reservation& reservation) {
  Inject(FaultPoint::kPack);
  packed_.Begin(plan_.rows.size(), plan_.scheduled_tokens, reservation.table_columns());
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    const RowPlan& row = plan_.rows[i];
    const auto tokens = requests_[row.index]->tokens().subspan(row.past_tokens, row.scheduled_tokens);
    reservation.FillTable(i, packed_.AddRow(tokens, row.past_tokens, requests_[row.index]->logits_rows(row)));
  }
  clock_.Mark(StepPhase::kPack);
  return packed_.Batch(reservation.copies());
}

// The masks of guided rows are computed while the model runs: they do not depend on its logits.
ExecutionResult Engine::Execute(const Reservation& reservation) {
  const ExecutionBatch batch = Pack(reservation);
  guidance_.Clear();
  for (const RowPlan& row : plan_.rows) {
    grammar::GrammarCursor* const cursor = requests_[row.index]->cursor();
    if (row.samples() && cursor != nullptr) guidance_.Add(*cursor);
  }
  ExecutionResult result;
  {
    const Guidance::Running masks = guidance_.Start();
    result = RunModel(batch);
  }
  clock_.Mark(StepPhase::kExecute);
  return result;
}

ExecutionResult Engine::RunModel(const ExecutionBatch& batch) {
  ExecutionResult result;
  try {
    result = executor_->Execute(batch);
  } catch (const ContractError&) {
    throw;
  } catch (...) {
    result = FailureOfCurrentException(ExecutionStatus::kFatal);
  }
  const size_t wanted = batch.logits_indices.size() * static_cast<size_t>(traits_.vocab_size);
  if (result.status == ExecutionStatus::kOk && result.logits.size() != wanted) {
    result.status = ExecutionStatus::kFatal;
    result.message = Message("the model returned ", result.logits.size(), " logits; ", wanted, " were asked for (",
                             batch.logits_indices.size(), " rows of ", traits_.vocab_size, ")");
  }
  return result;
}

void Engine::Sample(std::span<const float> logits) {
  const size_t width = static_cast<size_t>(traits_.vocab_size);
  sample_inputs_.clear();
  for (const RowPlan& row : plan_.rows) {
    Request& request = *requests_[row.index];
    RowResult& result = results_.emplace_back();
    const size_t scored = request.logits_rows(row) - (row.samples() ? 1 : 0);
    if (scored > 0) ScorePrompt(request, logits.first(scored * width), result);
    logits = logits.subspan(scored * width);
    if (!row.samples()) continue;
    Inject(FaultPoint::kSample);
    const search::SampleInputs inputs = InputsOf(request, logits.first(width), result);
    if (!result.failed()) sample_inputs_.push_back(inputs);
    logits = logits.subspan(width);
  }
  sample_outcomes_.resize(sample_inputs_.size());
  sampler_.Sample(sample_inputs_, sample_outcomes_);
  auto outcome = sample_outcomes_.begin();
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    if (!plan_.rows[i].samples() || results_[i].failed()) continue;
    Judge(*requests_[plan_.rows[i].index], *outcome++, results_[i]);
  }
  clock_.Mark(StepPhase::kSample);
}

// One row of logits after the other gives the log-probability of the next input token.
void Engine::ScorePrompt(const Request& request, std::span<const float> logits, RowResult& result) const {
  const size_t width = static_cast<size_t>(traits_.vocab_size);
  const auto top = static_cast<size_t>(*request.settings().logprobs.prompt_top);
  for (std::span<const TokenId> next = request.tokens().subspan(request.scored_end()); !logits.empty();
       logits = logits.subspan(width), next = next.subspan(1)) {
    const std::span<const float> row = logits.first(static_cast<size_t>(sampleable_tokens_));
    if (search::IsBadRow(row)) return result.Fail(FailureKind::kBadLogits);
    result.prompt_logprobs.push_back(search::ComputeLogprobs(row, next.front(), top, {}));
  }
}

search::SampleInputs Engine::InputsOf(Request& request, std::span<const float> logits, RowResult& result) const {
  const SamplingSettings& settings = request.settings();
  search::SampleInputs inputs;
  inputs.logits = logits;
  inputs.settings = &settings;
  inputs.sequence = request.tokens();
  inputs.distinct_tokens = request.penalized_tokens();
  inputs.output_counts = request.output_counts();
  if (!settings.ignore_eos) inputs.eos_token_ids = traits_.eos_token_ids;
  inputs.may_end = request.usage().generated_tokens >= settings.min_generated_tokens;
  inputs.seed = request.seed();
  inputs.position = request.tokens().size();
  if (request.cursor() != nullptr && !result.failed()) Guide(request, inputs, result);
  return inputs;
}

// A turn may end where its grammar may; where the grammar is complete it does, whatever minimum was asked for.
void Engine::Guide(Request& request, search::SampleInputs& inputs, RowResult& result) const {
  try {
    inputs.allowed_bitmask = request.GrammarMask();
    inputs.may_end = request.cursor()->MayEnd() && (inputs.may_end || request.cursor()->IsComplete());
  } catch (const ContractError&) {
    throw;
  } catch (const Error& error) {  // of this row's cursor alone
    WarnOfGrammar(request, error);
    result.Fail(FailureKind::kGrammarFailed);
  }
}

void Engine::Judge(Request& request, search::SampleOutcome& outcome, RowResult& result) {
  if (outcome.status != search::SampleStatus::kOk) return result.Fail(FailureOf(outcome.status));
  request.Judge(outcome.token, traits_.eos_token_ids, result);
  if (result.appends) result.logprobs = std::move(outcome.logprobs);
  try {
    request.StageGrammar(result);
  } catch (const ContractError&) {
    throw;
  } catch (const Error& error) {  // of this row's cursor alone
    WarnOfGrammar(request, error);
    result = RowResult::Failed(FailureKind::kGrammarFailed);
    return;
  }
  request.StageText(result);
  JoinText(request, result);
}

void Engine::Prepare() { Inject(FaultPoint::kPrepare); }

// Once the cache has committed nothing can fail.
CommitStatus Engine::Commit(Reservation& reservation) noexcept {
  if (reservation.Commit() != CommitStatus::kCommitted) return CommitStatus::kInconsistent;
  ++statistics_.steps;
  statistics_.rows += plan_.rows.size();
  statistics_.scheduled_tokens += plan_.scheduled_tokens;
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    const RowPlan& row = plan_.rows[i];
    const RowResult& result = results_[i];
    Request& request = *requests_[row.index];
    request.CommitRow(row, results_[i], statistics_.steps);
    cache_.UpdateHashes(row.index, request.tokens());
    // What a failed row computed is nobody's beginning.
    if (!result.failed()) cache_.Publish(row.index, request.tokens());
    if (result.failed()) request.MarkFailed();
    statistics_.generated_tokens += result.appends;
  }
  GrowBudget();
  return CommitStatus::kCommitted;
}

void Engine::Publish() noexcept {
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    RowResult& result = results_[i];
    Request& request = *requests_[plan_.rows[i].index];
    if (result.finish != FinishReason::kNone) {
      FinishTurn(request, result);
      continue;
    }
    Settle(request);
    if (result.appends) PushToken(request, result);
  }
}

void Engine::PushToken(Request& request, RowResult& result) noexcept {
  Event event;
  event.request = request.shared_from_this();
  event.turn_id = request.turn_id();
  event.flags = event_flags::kToken;
  event.token = result.token;
  event.text = std::move(result.text);
  event.logprobs = std::move(result.logprobs);
  event.prompt_logprobs = request.TakePromptLogprobs();
  events_.Push(std::move(event));
}

}  // namespace oga
