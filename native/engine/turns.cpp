// The life of turns: begin, cancel, rewind, fork, close. Each call checks everything before it changes anything.
//
// A call may reclaim its own request: an event that the host still holds names it after its handle was released. So each
// call checks that the request is open after that.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/engine.h"
#include "grammar/grammar_errors.h"
#include "search/refuse_option.h"
#include "search/sampling_rules.h"

namespace oga {

namespace {

constexpr const char* kInputField = "input_ids";

void CheckDrained(const EventQueue& events, const Request& request, const char* what) {
  if (events.HasEventOf(request)) {
    Throw(StatusCode::kInvalidState,
          "the request has events that were not taken yet; run the engine until they are out, "
          "then ",
          what);
  }
}

// Refuses what needs a sequence at rest.
void CheckAtRest(const Request& request, const char* what) {
  if (request.turn_live()) {
    Throw(StatusCode::kInvalidState, "turn ", request.turn_id(), " is still live; wait for its end or cancel it, then ",
          what);
  }
}

}  // namespace

void Engine::CheckRoom(const Request& request, uint64_t input_tokens) const {
  const uint64_t length = request.tokens().size();
  const uint64_t limit = request.max_session_tokens();
  // Compared by subtraction: a count near 2^64 must not wrap.
  if (length >= limit || input_tokens >= limit - length) {
    Throw(StatusCode::kInvalidArgument, Field{"input_ids_count"}, "the sequence holds ", length,
          " tokens and the input has ", input_tokens,
          "; together they must leave room for one generated token within the session limit of ", limit);
  }
}

void Engine::CheckInput(const Request& request, std::span<const TokenId> input) const {
  if (input.empty()) {
    Throw(StatusCode::kInvalidArgument, Field{kInputField}, "the input is empty; a turn needs at least one token");
  }
  CheckRoom(request, input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    if (input[i] < 0 || input[i] >= traits_.vocab_size) {
      Throw(StatusCode::kInvalidArgument, Field{kInputField}, "input token ", i, " is ", input[i],
            "; the vocabulary has ids 0 to ", traits_.vocab_size - 1);
    }
  }
}

// The error is about the option that needs text, whatever is wrong with the tokenizer.
std::shared_ptr<const TokenBytes> Engine::RequireTokenBytes(const char* who, const char* option) const {
  if (tokens_ != nullptr) return tokens_;
  if (model_ == nullptr) Throw(StatusCode::kNotFound, Field{option}, who, " need a tokenizer, and there is no model");
  try {
    return model_->tokenizer()->token_bytes();
  } catch (const Error& error) {
    Throw(error.code(), Field{option}, who, " need the model's tokenizer, which cannot be used: ", error.message(),
          ". Token ids work without it");
  }
}

// Any thread: it reads what never changes.
std::shared_ptr<const grammar::GrammarTokenizer> Engine::MakeGrammarTokenizer() const {
  grammar::GrammarTokenizer::Encoder encode = encode_;
  if (encode == nullptr && model_ != nullptr) {
    encode = [tokenizer = model_->tokenizer()](std::string_view text) { return tokenizer->Encode(text, false); };
  }
  return std::make_shared<const grammar::GrammarTokenizer>(RequireTokenBytes("grammars", grammar::kGuidanceField),
                                                           static_cast<size_t>(traits_.vocab_size),
                                                           traits_.eos_token_ids, std::move(encode));
}

// Everything that a turn's options can be refused for; nothing changes.
TurnSetup Engine::SetUpTurn(const Request& request, size_t input_tokens, const TurnOptions* options) {
  TurnSetup setup;
  setup.settings = search::Resolve(options != nullptr ? options->values() : SamplingOptions{}, traits_.search,
                                   {traits_.vocab_size, sampleable_tokens_, traits_.eos_token_ids});
  const uint64_t room = request.max_session_tokens() - request.tokens().size() - input_tokens;
  if (setup.settings.min_generated_tokens > room) {
    search::RefuseOption("min_generated_tokens", " is ", setup.settings.min_generated_tokens, "; the session limit of ",
                         request.max_session_tokens(), " leaves room for ", room);
  }
  if (setup.settings.logprobs.of_prompt() && !traits_.logits_of_any_token) {
    Throw(StatusCode::kUnsupported, Field{"prompt_logprobs"},
          "prompt_logprobs are wanted, but the model's graph gives logits of the last token of each row only; convert "
          "the model with `oga convert`, whose graphs give those of any token");
  }
  if (options == nullptr) return setup;
  if (options->text().needs_text()) {
    const char* const option = options->text().stop_strings != nullptr ? "stop_strings" : "emit_text";
    setup.text.emplace(options->text(), RequireTokenBytes("stop strings and text", option));
  }
  if (options->guidance()) {
    if (setup.settings.ignore_eos) {
      search::RefuseOption("ignore_eos",
                           " is set beside guidance; a guided turn ends where its grammar ends. Unset one of them");
    }
    setup.cursor = guidance_.Begin(*options->guidance());
  }
  return setup;
}

TurnId Engine::BeginTurn(Request& request, std::span<const TokenId> input, const TurnOptions* options) {
  const Entry entry(*this);
  CheckHealthy();
  ReclaimAbandoned();
  request.CheckOpen();
  CheckAtRest(request, "begin the next");
  CheckDrained(events_, request, "begin the next turn");
  if (request.failed()) {
    Throw(StatusCode::kInvalidState, "turn ", request.turn_id(), " failed; rewind to its start or close the request");
  }
  if (request.turn_id() == std::numeric_limits<TurnId>::max()) {
    Throw(StatusCode::kInvalidState, "the request has used every turn id; close it and create a new one");
  }
  if (options != nullptr && !options->BelongsTo(request)) {
    Throw(StatusCode::kInvalidArgument, Field{"turn_options"},
          "the turn options belong to another request; create them from this one");
  }
  CheckInput(request, input);
  TurnSetup setup = SetUpTurn(request, input.size(), options);
  const bool scores_prompt = setup.settings.logprobs.of_prompt();
  cache_.ReserveHashes(request.index(), request.tokens().size() + input.size());
  if (setup.settings.searches_sequence()) {
    const uint64_t length = request.tokens().size() + input.size();
    sampler_.ReserveHistory(length + std::min(request.max_session_tokens() - length, Request::kEagerTokens));
  }
  request.StartTurn(input, std::move(setup), traits_.vocab_size);
  // What predicts the first token of the input is the last one before it: it must be computed too.
  if (scores_prompt && request.view().cached_tokens + 1 > request.scored_end()) {
    request.view().cached_tokens = request.scored_end() - 1;
    cache_.Truncate(request.index(), request.view().cached_tokens);
  }
  request.view().arrival = next_arrival_++;
  request.view().due_step = CandidateView::kNever;
  request.view().last_progress_step = statistics_.steps;
  cache_.UpdateHashes(request.index(), request.tokens());
  Settle(request);
  return request.turn_id();
}

bool Engine::CancelTurn(Request& request, TurnId id) {
  const Entry entry(*this);
  ReclaimAbandoned();
  request.CheckOpen();
  if (request.turn_id() == 0) {
    Throw(StatusCode::kInvalidState, "the request has no turn yet; begin one before cancelling");
  }
  if (!request.turn_live() || request.turn_id() != id) return false;
  events_.Reserve(events_.size() + 1);
  RowResult cancelled;
  cancelled.finish = FinishReason::kCancelled;
  request.StageText(cancelled);
  JoinText(request, cancelled);
  FinishTurn(request, cancelled);
  return true;
}

// An ending without a token joins the turn's last event if that was not taken yet, and so does its text.
void Engine::JoinText(const Request& request, RowResult& result) {
  if (result.appends || result.finish == FinishReason::kNone) return;
  if (const Event* event = events_.FindLast(request, request.turn_id())) result.text.insert(0, event->text);
}

// Ends the live turn: state, queues, and its one terminal event, as JoinText says. Room for an event was reserved.
void Engine::FinishTurn(Request& request, RowResult& result) noexcept {
  std::shared_ptr<const PromptLogprobs> prompt_logprobs = request.TakePromptLogprobs();
  request.EndTurn();
  // Blocks set aside for a prompt that is not going to be computed now.
  cache_.Truncate(request.index(), cache_.filled_slots(request.index()));
  Settle(request);
  Event* event = result.appends ? nullptr : events_.FindLast(request, request.turn_id());
  Event fresh;
  Event& target = event != nullptr ? *event : fresh;
  target.request = request.shared_from_this();
  target.turn_id = request.turn_id();
  target.flags |= event_flags::kTurnFinished;
  if (result.failed()) target.flags |= event_flags::kFailed;
  if (result.appends) {
    target.flags |= event_flags::kToken;
    target.token = result.token;
    target.logprobs = std::move(result.logprobs);
  }
  if (!result.text.empty()) target.text = std::move(result.text);
  if (prompt_logprobs != nullptr) target.prompt_logprobs = std::move(prompt_logprobs);
  target.matched_stop_string_index = result.matched_stop_string;
  target.finish_reason = result.finish;
  target.error_code = CodeOf(result.failure);
  target.failure = result.failure;
  target.usage = request.usage();
  if (event == nullptr) events_.Push(std::move(fresh));
}

void Engine::Rewind(Request& request, TurnId id) {
  const Entry entry(*this);
  CheckHealthy();
  ReclaimAbandoned();
  request.CheckOpen();
  CheckAtRest(request, "rewind");
  CheckDrained(events_, request, "rewind");
  const Request::TurnRecord* turn = request.FindTurn(id);
  if (turn == nullptr) {
    Throw(StatusCode::kNotFound, Field{"turn_id"}, "turn ", id,
          " is not part of the sequence; its turns are those begun and not rewound, ", request.turns().size(),
          " of them, the last with id ", request.turns().empty() ? 0 : request.turns().back().id);
  }
  request.TruncateToTurn(*turn);
  cache_.Truncate(request.index(), request.view().cached_tokens);
  cache_.UpdateHashes(request.index(), request.tokens());
  Settle(request);
}

std::shared_ptr<Request> Engine::Fork(Request& request) {
  const Entry entry(*this);
  CheckHealthy();
  ReclaimAbandoned();
  request.CheckOpen();
  CheckAtRest(request, "fork");
  CheckDrained(events_, request, "fork");
  if (request.turn_id() == 0) {
    Throw(StatusCode::kInvalidState, "the request has no turn yet; create another request instead of forking it");
  }
  if (request.failed()) {
    Throw(StatusCode::kInvalidState, "turn ", request.turn_id(), " failed; rewind to its start before forking");
  }
  std::shared_ptr<Request> fork =
      MakeRequest({request.max_session_tokens(), request.view().priority, cache_.salt(request.index())});
  try {
    fork->CopySequence(request);
    cache_.ReserveHashes(fork->index(), fork->tokens().size());
    cache_.UpdateHashes(fork->index(), fork->tokens());
    const bool place = queues_.running().size() + queues_.dormant().size() < limits_.max_resident_requests;
    if (request.view().resident() && place) {
      cache_.Share(request.index(), fork->index());
      fork->view().cached_tokens = request.view().cached_tokens;
    }
  } catch (...) {
    Forget(*fork);
    throw;
  }
  fork->view().last_progress_step = statistics_.steps;
  Settle(*fork);
  return fork;
}

void Engine::Close(Request& request) {
  const Entry entry(*this);
  if (request.state() == RequestState::kClosed) return;
  Forget(request);
}

}  // namespace oga
