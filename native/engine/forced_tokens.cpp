// Tokens that a grammar leaves no choice about: they join the sequence before the step is planned, and the step computes
// them together with the token that was sampled before them. A transition of its own, committed before the transaction.
//
// Where log-probabilities are wanted every token needs a row of logits, so there the same tokens come one by one: the mask
// of the step allows no other (Request::GrammarMask).
#include <array>

#include "base/log.h"
#include "engine/engine.h"

namespace oga {

namespace {

constexpr size_t kMostForced = 64;  // in one step

}  // namespace

void Engine::AppendForcedTokens() {
  guided_.clear();
  for (const CandidateView* candidate : queues_.running()) {
    Request& request = *requests_[candidate->index];
    if (candidate->decoding && request.cursor() != nullptr && !request.settings().logprobs.of_output()) {
      guided_.push_back(candidate->index);
    }
  }
  for (const RequestIndex index : guided_) {
    Request& request = *requests_[index];
    std::array<TokenId, kMostForced> forced;
    size_t count = 0;
    try {
      count = request.cursor()->ForcedTokens(forced);
      for (size_t i = 0; i < count && AppendForcedToken(request, forced[i]); ++i) continue;
    } catch (const std::exception& error) {
      // Nothing is lost: what was not appended is sampled, and a cursor that failed fails its row then.
      request.RollbackGrammar();
      log::Info(Message("forced tokens of request ", request.id(), " are left to the model: ", error.what()));
    }
  }
}

// Whether the turn goes on.
bool Engine::AppendForcedToken(Request& request, TokenId token) {
  RowResult result;
  request.ReserveToken();
  cache_.ReserveHashes(request.index(), request.tokens().size() + 1);
  events_.Reserve(events_.size() + OpenRequests() + limits_.max_batch_size + 2);
  request.Judge(token, traits_.eos_token_ids, result);
  request.StageGrammar(result);
  request.StageText(result);

  // Nothing below can fail.
  request.AppendOutput(result);
  cache_.UpdateHashes(request.index(), request.tokens());
  statistics_.generated_tokens += result.appends;
  if (result.finish != FinishReason::kNone) {
    FinishTurn(request, result);
    return false;
  }
  Settle(request);
  PushToken(request, result);
  return true;
}

}  // namespace oga
