// Engine: the single-owner step loop over one model. Run makes synchronous progress; nothing happens between calls.
//
// Owned jointly by the host's handle and, for the time of a call, by whoever is inside. The thread that creates it owns
// it: every call checks that, and that the process has not been forked since. Shutdown and the destructor may run on any
// thread; they wait for a call in progress.
//
// A step is a transaction (step.cpp): whatever fails before its commit leaves requests, cache and events as they were.
// Preemption is a transition of its own before that: it is invisible in every output, so nothing has to undo it.
//
// E1  a request's index holds that request; free indices hold none
// E2  a request is queued where its state and its blocks say
// E3  a request's cached tokens equal the filled slots of its table
// E4  undrained events name open requests only
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/platform_process.h"
#include "cache/paged_cache.h"
#include "engine/event_buffer.h"
#include "engine/event_queue.h"
#include "engine/fault_points.h"
#include "engine/guidance.h"
#include "engine/options.h"
#include "engine/packed_step.h"
#include "engine/prefix_lookup.h"
#include "engine/request.h"
#include "engine/run_queues.h"
#include "engine/step_trace.h"
#include "model/model.h"
#include "model/model_executor.h"
#include "scheduler/planner.h"
#include "scheduler/policy.h"
#include "search/sampler.h"
#include "step/engine_limits.h"

namespace oga {

struct EngineSnapshot;

// What an engine is made of.
struct EngineParts {
  EngineLimits limits;
  ModelTraits traits;
  std::unique_ptr<ModelExecutor> executor;
  std::shared_ptr<const Model> model;           // kept alive; null in tests
  std::shared_ptr<const TokenBytes> tokens;     // null: the model's tokenizer has them, read when they are needed
  grammar::GrammarTokenizer::Encoder encode;    // for forced text; empty: the model's tokenizer, none without a model
  std::unique_ptr<SchedulerPolicy> policy;      // null: ArrivalPolicy
  FaultHook fault_hook;                         // empty in production
  BlockHashFunction block_hash = SipHashBlock;  // tests pass a weak one
  bool validate = false;                        // run Validate after every step (also OGA_VALIDATE=1)
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<Engine> Create(std::shared_ptr<const Model> model);
  static std::shared_ptr<Engine> Create(EngineParts parts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- The host's calls; include/oga/engine.h states their contracts --------------------------------------------------
  std::shared_ptr<Request> CreateRequest(const RequestOptions& options);
  std::unique_ptr<EventBuffer> CreateEventBuffer(size_t capacity);
  void Run(EventBuffer& buffer);
  bool HasPendingRequests();
  EngineCapabilities GetCapabilities() const;
  EngineStatistics GetStatistics() const;

  // Forgets every cached beginning that no request owns.
  void DropPrefixCache();

  // Compiles a grammar for turns to come. Any thread, also during a step; not checked for thread and process.
  void PrepareGuidance(const grammar::GrammarSpec& spec) { guidance_.Prepare(spec); }

  // Writes a line per step to a file (engine/step_trace.h); an empty path ends that.
  void SetTraceFile(const std::string& path);

  // Turns every request into a closed tombstone and releases the executor. Idempotent; any thread.
  void Shutdown() noexcept;

  // --- For requests: the part of their calls that concerns the engine -------------------------------------------------
  // Holds the engine for one call: exclusive against Shutdown from another thread, and checked for thread and process.
  class Entry;
  TurnId BeginTurn(Request& request, std::span<const TokenId> input, const TurnOptions* options);
  bool CancelTurn(Request& request, TurnId id);
  void Rewind(Request& request, TurnId id);
  std::shared_ptr<Request> Fork(Request& request);
  void Close(Request& request);
  void CheckOwner() const;

  // --- For tests ------------------------------------------------------------------------------------------------------
  void Validate() const;
  EngineSnapshot Snapshot() const;

 private:
  explicit Engine(EngineParts parts);

  // engine.cpp
  void CheckHealthy() const;
  void ReclaimAbandoned() noexcept;
  RequestIndex MakeIndex();
  std::shared_ptr<Request> MakeRequest(const RequestOptions& options);
  void Forget(Request& request) noexcept;
  void Place(Request& request, QueuePlace place) noexcept;
  void Settle(Request& request) noexcept;
  size_t OpenRequests() const noexcept { return requests_.size() - free_indices_.size(); }

  // turns.cpp
  void CheckInput(const Request& request, std::span<const TokenId> input) const;
  void CheckRoom(const Request& request, uint64_t input_tokens) const;
  std::shared_ptr<const TokenBytes> RequireTokenBytes(const char* who, const char* option) const;
  std::shared_ptr<const grammar::GrammarTokenizer> MakeGrammarTokenizer() const;
  TurnSetup SetUpTurn(const Request& request, size_t input_tokens, const TurnOptions* options);
  void JoinText(const Request& request, RowResult& result);
  void FinishTurn(Request& request, RowResult& result) noexcept;

  // step.cpp
  void ExecuteStep();
  void Plan();
  void MarkProtectedTails() noexcept;
  void UpdateDueSteps() noexcept;
  SchedulerView View() const;
  void DropCaches(std::span<const RequestIndex> requests) noexcept;
  void Transact();
  Reservation Reserve();
  void Checkpoint();
  ExecutionBatch Pack(const Reservation& reservation);
  ExecutionResult Execute(const Reservation& reservation);
  ExecutionResult RunModel(const ExecutionBatch& batch);
  void Sample(std::span<const float> logits);
  void ScorePrompt(const Request& request, std::span<const float> logits, RowResult& result) const;
  void PushToken(Request& request, RowResult& result) noexcept;
  search::SampleInputs InputsOf(Request& request, std::span<const float> logits, RowResult& result) const;
  void Guide(Request& request, search::SampleInputs& inputs, RowResult& result) const;
  void Judge(Request& request, search::SampleOutcome& outcome, RowResult& result);
  void Prepare();
  CommitStatus Commit(Reservation& reservation) noexcept;
  void Publish() noexcept;
  void Inject(FaultPoint point) const;

  // forced_tokens.cpp
  void AppendForcedTokens();
  bool AppendForcedToken(Request& request, TokenId token);

  // trace_line.cpp
  std::string TraceLine(const char* outcome) const;
  void Trace(const char* outcome) noexcept;

  // failures.cpp
  void PushEngineEvent(uint32_t flags, EventErrorCode code) noexcept;
  void FailUnserviceable() noexcept;
  void WarnOfRollback(const char* what, const ExecutionResult& result) noexcept;
  void Rollback(const ExecutionResult& result) noexcept;
  void Fail(FailureKind kind, const std::string& message) noexcept;
  void ShrinkBudget() noexcept;
  void GrowBudget() noexcept;

  const EngineLimits limits_;
  const ModelTraits traits_;
  const std::shared_ptr<const Model> model_;
  const std::shared_ptr<const TokenBytes> tokens_;  // null: the model's tokenizer has them
  const grammar::GrammarTokenizer::Encoder encode_;
  const std::unique_ptr<const SchedulerPolicy> policy_;
  const FaultHook fault_hook_;
  const bool validate_;
  const std::thread::id owner_;
  const platform::ProcessId process_;

  mutable std::mutex entry_mutex_;
  bool shut_down_ = false;
  std::optional<Error> failure_;  // set once: the engine is unhealthy for good

  std::unique_ptr<ModelExecutor> executor_;
  const uint64_t block_bytes_;
  PagedCache cache_;
  RunQueues queues_;
  Planner planner_;
  StepPlan plan_;
  PackedStep packed_;
  const int32_t sampleable_tokens_;
  search::Sampler sampler_;
  Guidance guidance_;
  std::vector<search::SampleInputs> sample_inputs_;  // by sampled row of the plan that has not failed before
  std::vector<search::SampleOutcome> sample_outcomes_;
  std::vector<RowResult> results_;  // by row of the plan
  EventQueue events_;

  std::shared_ptr<std::atomic<bool>> abandonment_;
  std::vector<std::shared_ptr<Request>> requests_;  // by index
  PrefixLookup prefix_lookup_;
  std::vector<RequestIndex> free_indices_;
  RequestId next_request_id_ = 1;
  uint64_t next_arrival_ = 1;
  uint64_t attempt_ = 0;
  uint64_t seen_waiting_changes_ = 0;
  uint64_t next_due_step_ = CandidateView::kNever;  // of the waiting, the earliest
  uint32_t token_budget_;                           // max_scheduled_tokens, less after the model ran out of memory
  EngineStatistics statistics_;
  PhaseClock clock_;
  std::vector<RequestId> dropped_;    // in the step at hand, for the trace
  std::vector<RequestIndex> guided_;  // scratch of AppendForcedTokens
  std::unique_ptr<StepTrace> trace_;
};

class Engine::Entry {
 public:
  explicit Entry(const Engine& engine);

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace oga
