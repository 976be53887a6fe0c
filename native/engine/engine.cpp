#include "engine/engine.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "engine/snapshot.h"

namespace oga {

namespace {

bool ValidateRequested() {
  const char* value = std::getenv("OGA_VALIDATE");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

uint64_t DrawSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

EngineLimits Resolved(EngineLimits limits) {
  limits.max_batch_size = std::max(1u, limits.max_batch_size);
  limits.max_resident_requests = std::max(limits.max_resident_requests, 1u);
  return limits;
}

}  // namespace

Engine::Entry::Entry(const Engine& engine) : lock_(engine.entry_mutex_, std::defer_lock) {
  // Before the lock: a foreign thread is refused at once, and in a forked child the lock may never come free.
  engine.CheckOwner();
  lock_.lock();
  if (engine.shut_down_) Throw(StatusCode::kInvalidState, "the engine is destroyed; create a new one");
}

std::shared_ptr<Engine> Engine::Create(std::shared_ptr<const Model> model) {
  EngineParts parts;
  SizedLimits sized = model->ResolveLimits();
  parts.limits = sized.limits;
  parts.traits = model->traits();
  parts.executor = model->CreateExecutor(std::move(sized));
  parts.model = std::move(model);
  return Create(std::move(parts));
}

std::shared_ptr<Engine> Engine::Create(EngineParts parts) {
  if (parts.policy == nullptr) parts.policy = std::make_unique<ArrivalPolicy>();
  parts.validate = parts.validate || ValidateRequested();
  return std::shared_ptr<Engine>(new Engine(std::move(parts)));
}

Engine::Engine(EngineParts parts)
    : limits_(Resolved(parts.limits)),
      traits_(std::move(parts.traits)),
      model_(std::move(parts.model)),
      tokens_(std::move(parts.tokens)),
      encode_(std::move(parts.encode)),
      policy_(std::move(parts.policy)),
      fault_hook_(std::move(parts.fault_hook)),
      validate_(parts.validate),
      owner_(std::this_thread::get_id()),
      process_(platform::CurrentProcess()),
      executor_(std::move(parts.executor)),
      block_bytes_(executor_->block_bytes()),
      cache_(limits_.num_blocks, limits_.block_size_slots, {limits_.prefix_caching, HashKey::Draw(), parts.block_hash}),
      queues_(*policy_),
      planner_(*policy_),
      sampleable_tokens_(traits_.sampleable_tokens != 0 ? traits_.sampleable_tokens : traits_.vocab_size),
      sampler_(traits_.vocab_size, sampleable_tokens_),
      guidance_([this] { return MakeGrammarTokenizer(); }),
      abandonment_(std::make_shared<std::atomic<bool>>(false)),
      prefix_lookup_(cache_, requests_),
      token_budget_(limits_.max_scheduled_tokens) {
  cache_.EnsureRows(limits_.max_batch_size);
  results_.reserve(limits_.max_batch_size);
  sample_inputs_.reserve(limits_.max_batch_size);
  sample_outcomes_.reserve(limits_.max_batch_size);
}

Engine::~Engine() { Shutdown(); }

void Engine::CheckOwner() const {
  if (platform::CurrentProcess() != process_) {
    Throw(StatusCode::kInvalidState, "the engine belongs to the parent process; a forked child must create its own");
  }
  if (std::this_thread::get_id() != owner_) {
    Throw(StatusCode::kInvalidState,
          "the engine, its requests, turn options and event buffers belong to the thread that created the engine; call "
          "from there");
  }
}

void Engine::CheckHealthy() const {
  if (failure_) throw *failure_;
}

void Engine::Shutdown() noexcept {
  // In a forked child the runtime's threads do not exist: releasing it there would hang. The memory goes with the process.
  if (platform::CurrentProcess() != process_) {
    static_cast<void>(executor_.release());
    return;
  }
  const std::lock_guard lock(entry_mutex_);
  if (std::exchange(shut_down_, true)) return;
  for (const std::shared_ptr<Request>& request : requests_) {
    if (request != nullptr) Forget(*request);
  }
  executor_.reset();
}

std::shared_ptr<Request> Engine::CreateRequest(const RequestOptions& options) {
  const Entry entry(*this);
  CheckHealthy();
  ReclaimAbandoned();
  if (traits_.search.num_beams != 1) {
    Throw(StatusCode::kUnsupported, Field{"search.num_beams"}, "search.num_beams is ", traits_.search.num_beams,
          "; an engine generates one sequence per request. Overlay {\"search\": {\"num_beams\": 1}}");
  }
  if (traits_.search.min_length_tokens != 0) {
    Throw(StatusCode::kUnsupported, Field{"search.min_length"}, "search.min_length is ",
          traits_.search.min_length_tokens,
          "; set the minimum per turn with OgaTurnOptionsSetMinGeneratedTokens and overlay "
          "{\"search\": {\"min_length\": 0}}");
  }
  const uint64_t most = limits_.max_request_tokens();
  if (options.max_session_tokens > most) {
    Throw(StatusCode::kInvalidArgument, Field{"max_session_tokens"}, "max_session_tokens is ",
          options.max_session_tokens, "; this engine holds at most ", most, " tokens per request (context length ",
          limits_.context_length_tokens, ", cache ", limits_.pool_slots(), " slots)");
  }
  const uint64_t by_model = traits_.search.max_length_tokens == 0 ? most : traits_.search.max_length_tokens;
  const uint64_t session = options.max_session_tokens != 0 ? options.max_session_tokens : std::min(by_model, most);
  return MakeRequest({session, options.priority, options.cache_salt});
}

RequestIndex Engine::MakeIndex() {
  if (!free_indices_.empty()) return free_indices_.back();
  const size_t count = std::max<size_t>(16, 2 * requests_.size());
  free_indices_.reserve(count);
  cache_.EnsureTables(count);
  queues_.Reserve(count);
  planner_.Reserve(View().limits, count, plan_);
  dropped_.reserve(count);
  guided_.reserve(count);
  const size_t first = requests_.size();
  requests_.resize(count);
  for (size_t index = count; index > first; --index) free_indices_.push_back(static_cast<RequestIndex>(index - 1));
  return free_indices_.back();
}

std::shared_ptr<Request> Engine::MakeRequest(const RequestOptions& options) {
  const RequestIndex index = MakeIndex();
  auto request = std::make_shared<Request>(weak_from_this(), abandonment_, index, next_request_id_,
                                           options.max_session_tokens, options.priority, DrawSeed());
  cache_.ResetSequence(index, options.cache_salt);
  ++next_request_id_;
  free_indices_.pop_back();
  requests_[index] = request;
  return request;
}

void Engine::Place(Request& request, QueuePlace place) noexcept {
  queues_.Remove(request.view(), request.place);
  request.place = place;
  queues_.Insert(request.view(), place);
}

void Engine::Settle(Request& request) noexcept {
  CandidateView& view = request.view();
  view.owned_blocks = cache_.table_blocks(view.index);
  if (view.live) {
    Place(request, view.resident() ? QueuePlace::kRunning : QueuePlace::kWaiting);
  } else {
    Place(request, view.resident() ? QueuePlace::kDormant : QueuePlace::kNone);
  }
}

void Engine::Forget(Request& request) noexcept {
  const std::shared_ptr<Request> alive = std::move(requests_[request.index()]);
  requests_[request.index()] = nullptr;
  events_.Purge(request);
  Place(request, QueuePlace::kNone);
  cache_.Drop(request.index());
  free_indices_.push_back(request.index());
  request.Detach();
}

void Engine::ReclaimAbandoned() noexcept {
  if (!abandonment_->exchange(false)) return;
  for (const std::shared_ptr<Request>& request : requests_) {
    if (request != nullptr && request->abandoned()) Forget(*request);
  }
}

std::unique_ptr<EventBuffer> Engine::CreateEventBuffer(size_t capacity) {
  const Entry entry(*this);
  return std::make_unique<EventBuffer>(weak_from_this(), capacity);
}

void Engine::Run(EventBuffer& buffer) {
  const Entry entry(*this);
  if (!buffer.BelongsTo(*this)) {
    Throw(StatusCode::kInvalidArgument, Field{"buffer"},
          "the event buffer belongs to another engine; create one from this engine");
  }
  if (buffer.capacity() == 0) {
    CheckHealthy();
    buffer.BeginRun();
    return;
  }
  ReclaimAbandoned();
  if (events_.empty()) {
    CheckHealthy();
    ExecuteStep();
  }
  buffer.BeginRun();
  while (!events_.empty() && buffer.size() < buffer.capacity()) buffer.Push(events_.Pop());
}

bool Engine::HasPendingRequests() {
  const Entry entry(*this);
  ReclaimAbandoned();
  return !events_.empty() || !queues_.running().empty() || !queues_.waiting().empty();
}

void Engine::DropPrefixCache() {
  const Entry entry(*this);
  cache_.DropRetired();
}

EngineCapabilities Engine::GetCapabilities() const {
  const Entry entry(*this);
  return {limits_.max_batch_size, limits_.max_scheduled_tokens, limits_.max_request_tokens(), limits_.prefix_caching};
}

EngineStatistics Engine::GetStatistics() const {
  const Entry entry(*this);
  EngineStatistics statistics = statistics_;
  statistics.live_requests = OpenRequests();
  statistics.resident_requests = queues_.running().size() + queues_.dormant().size();
  statistics.block_size = limits_.block_size_slots;
  statistics.total_blocks = limits_.num_blocks;
  statistics.free_blocks = cache_.pool().available_blocks();
  statistics.cached_blocks = cache_.pool().retired_blocks();
  statistics.prefix_queries = cache_.prefix_counters().queries;
  statistics.prefix_hits = cache_.prefix_counters().hits;
  statistics.prefix_tokens_saved = cache_.prefix_counters().tokens_saved;
  statistics.prefix_evictions = cache_.prefix_counters().evictions;
  statistics.block_bytes = block_bytes_;
  return statistics;
}

}  // namespace oga
