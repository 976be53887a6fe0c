#include "grammar/grammar_cursor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "grammar/grammar_errors.h"

namespace oga::grammar {

namespace {

void SetBit(std::vector<uint32_t>& mask, TokenId token) { mask[static_cast<size_t>(token) / 32] |= 1u << (token % 32); }
void ClearBit(std::vector<uint32_t>& mask, TokenId token) {
  mask[static_cast<size_t>(token) / 32] &= ~(1u << (token % 32));
}
bool HasBit(const std::vector<uint32_t>& mask, TokenId token) {
  return (mask[static_cast<size_t>(token) / 32] >> (token % 32) & 1u) != 0;
}

// The only token of a mask; -1 when there are several or none.
TokenId OnlyToken(const std::vector<uint32_t>& mask) {
  TokenId only = -1;
  for (size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == 0) continue;
    if (only >= 0 || !std::has_single_bit(mask[word])) return -1;
    only = static_cast<TokenId>(word * 32) + std::countr_zero(mask[word]);
  }
  return only;
}

}  // namespace

std::optional<Delimiters> DelimitersOf(const GrammarSpec& spec) {
  if (spec.kind != GrammarKind::kDelimited) return std::nullopt;
  return Delimiters{spec.opening_token, spec.closing_token};
}

GrammarCursor::GrammarCursor(std::shared_ptr<const Grammar> grammar, std::optional<Delimiters> delimiters)
    : grammar_(std::move(grammar)),
      matcher_(grammar_->NewMatcher()),
      delimiters_(delimiters),
      mask_(matcher_->tokenizer().mask_words()),
      is_inside_(!delimiters.has_value()),
      committed_{.is_inside = is_inside_} {}

void GrammarCursor::Poison(std::string fault) noexcept {
  is_poisoned_ = true;
  if (fault_.empty()) fault_ = std::move(fault);
}

void GrammarCursor::PoisonByMatcher() noexcept {
  is_poisoned_ = true;
  try {
    const std::string fault = matcher_->Fault();
    Poison(fault == kNoToken ? "the grammar leads nowhere from here: no token of the vocabulary can come next"
                             : Message("llguidance cannot follow the grammar any further: ", fault));
  } catch (...) {  // out of memory: poisoned, without the reason
  }
}

void GrammarCursor::RequireHealthy() const {
  if (!is_poisoned_) return;
  Throw(StatusCode::kInvalidState, fault_.empty() ? "the grammar of this turn cannot be followed any further" : fault_);
}

void GrammarCursor::ComputeMask() noexcept {
  if (has_mask_ || is_poisoned_) return;
  if (is_inside_) {
    ComputeInnerMask();
    return;
  }
  std::fill(mask_.begin(), mask_.end(), ~0u);
  const size_t used_bits = matcher_->tokenizer().vocab_size() % 32;
  if (used_bits != 0) mask_.back() = (1u << used_bits) - 1;
  may_end_ = true;
  has_mask_ = true;
}

void GrammarCursor::ComputeInnerMask() {
  LlgMatcher* const matcher = matcher_->get();
  const bool is_at_start = inner_tokens_ == 0;
  if (is_at_start) {
    std::copy(grammar_->start().mask.begin(), grammar_->start().mask.end(), mask_.begin());
  } else if (functions().llg_matcher_compute_mask_into(matcher, mask_.data(), mask_.size() * sizeof(uint32_t)) != 0) {
    PoisonByMatcher();
    return;
  }
  const bool may_stop = is_at_start ? grammar_->start().may_end : functions().llg_matcher_is_accepting(matcher);
  if (functions().llg_matcher_is_error(matcher)) {
    PoisonByMatcher();
    return;
  }
  may_end_ = may_stop && !delimiters_;
  if (delimiters_) {
    for (const TokenId id : matcher_->tokenizer().eos_token_ids()) ClearBit(mask_, id);
    if (may_stop) SetBit(mask_, delimiters_->closing);
  }
  has_mask_ = true;
}

std::span<const uint32_t> GrammarCursor::Mask() {
  if (staged_tokens_ == 0) ComputeMask();
  RequireHealthy();
  OGA_CHECK(has_mask_);
  return mask_;
}

bool GrammarCursor::MayEnd() {
  Mask();
  return may_end_;
}

bool GrammarCursor::IsComplete() const {
  if (is_poisoned_ || delimiters_) return false;
  if (inner_tokens_ == 0) return grammar_->start().must_end;
  return functions().llg_matcher_is_stopped(matcher_->get()) && !functions().llg_matcher_is_error(matcher_->get());
}

void GrammarCursor::Stage(TokenId token) {
  RequireHealthy();
  if (token < 0 || static_cast<size_t>(token) >= matcher_->tokenizer().vocab_size()) {
    Throw(StatusCode::kInvalidArgument, "token ", token, " is outside the vocabulary of ",
          matcher_->tokenizer().vocab_size(), " ids");
  }
  if (!is_inside_) {
    if (token == delimiters_->opening) Enter();
  } else if (delimiters_ && token == delimiters_->closing) {
    if (!functions().llg_matcher_is_accepting(matcher_->get())) {
      Throw(StatusCode::kInvalidArgument, "the closing token ", token, " cannot come before the grammar may end");
    }
    is_inside_ = false;
  } else {
    StageInner(token);
  }
  ++staged_tokens_;
}

void GrammarCursor::StageInner(TokenId token) {
  if (!IsAllowedInside(token)) {
    Throw(StatusCode::kInvalidArgument, "token ", token, " cannot come here by the grammar");
  }
  if (delimiters_) inner_history_.push_back(static_cast<uint32_t>(token));
  const auto id = static_cast<uint32_t>(token);
  if (functions().llg_matcher_consume_tokens(matcher_->get(), &id, 1) != 0) {
    PoisonByMatcher();
    RequireHealthy();
  }
  ++inner_tokens_;
}

bool GrammarCursor::IsAllowedInside(TokenId token) {
  const std::vector<TokenId>& eos = matcher_->tokenizer().eos_token_ids();
  if (std::binary_search(eos.begin(), eos.end(), token)) return false;
  if (has_mask_ && staged_tokens_ == 0 && HasBit(mask_, token)) return true;
  // The mask may name one way to cut forced text; others are right too.
  const auto id = static_cast<uint32_t>(token);
  const int32_t valid = functions().llg_matcher_validate_tokens(matcher_->get(), &id, 1);
  if (valid < 0) {
    PoisonByMatcher();
    RequireHealthy();
  }
  return valid == 1;
}

// A new opening token starts the grammar over.
void GrammarCursor::Enter() {
  if (inner_tokens_ > 0) {
    if (!was_reset_) {
      history_to_replay_.assign(inner_history_.begin(), inner_history_.end());
      was_reset_ = true;
    }
    if (functions().llg_matcher_reset(matcher_->get()) != 0) {
      PoisonByMatcher();
      RequireHealthy();
    }
    inner_history_.clear();
    inner_tokens_ = 0;
  }
  is_inside_ = true;
}

void GrammarCursor::Commit() noexcept {
  if (staged_tokens_ == 0) return;
  staged_tokens_ = 0;
  was_reset_ = false;
  has_mask_ = false;
  committed_ = {.is_inside = is_inside_, .inner_tokens = inner_tokens_};
}

void GrammarCursor::Rollback() noexcept {
  if (staged_tokens_ == 0 && !was_reset_) return;
  staged_tokens_ = 0;
  is_inside_ = committed_.is_inside;
  if (is_poisoned_) return;
  bool is_back = true;
  if (was_reset_) {
    was_reset_ = false;
    is_back = functions().llg_matcher_reset(matcher_->get()) == 0 &&
              Replay(std::span(history_to_replay_).first(committed_.inner_tokens));
    inner_history_.swap(history_to_replay_);
  } else if (inner_tokens_ > committed_.inner_tokens) {
    is_back = functions().llg_matcher_rollback(matcher_->get(), inner_tokens_ - committed_.inner_tokens) == 0;
  }
  inner_tokens_ = committed_.inner_tokens;
  if (delimiters_) inner_history_.resize(std::min(inner_history_.size(), inner_tokens_));
  if (!is_back) PoisonByMatcher();
}

bool GrammarCursor::Replay(std::span<const uint32_t> tokens) {
  return tokens.empty() || functions().llg_matcher_consume_tokens(matcher_->get(), tokens.data(), tokens.size()) == 0;
}

size_t GrammarCursor::ForcedTokens(std::span<TokenId> out) {
  RequireHealthy();
  OGA_CHECK(staged_tokens_ == 0);
  if (!is_inside_ || out.empty()) return 0;
  Mask();
  const TokenId only = OnlyToken(mask_);
  if (delimiters_ && only == delimiters_->closing) {
    out[0] = only;
    return 1;
  }
  static_assert(sizeof(TokenId) == sizeof(uint32_t));
  const int32_t count =
      functions().llg_matcher_compute_ff_tokens(matcher_->get(), reinterpret_cast<uint32_t*>(out.data()), out.size());
  if (count < 0) {
    PoisonByMatcher();
    RequireHealthy();
  }
  if (count > 0) return static_cast<size_t>(count);
  const std::vector<TokenId>& eos = matcher_->tokenizer().eos_token_ids();
  if (only < 0 || std::binary_search(eos.begin(), eos.end(), only)) return 0;
  out[0] = only;
  return 1;
}

void GrammarCursor::Validate() const {
  CheckInvariant(staged_tokens_ > 0 || (is_inside_ == committed_.is_inside && inner_tokens_ == committed_.inner_tokens),
                 "C1", "without staged tokens the cursor stands where it was committed");
  CheckInvariant(staged_tokens_ > 0 || !was_reset_, "C1", "without staged tokens the matcher was not reset");
  CheckInvariant(!delimiters_ || inner_history_.size() == inner_tokens_ || is_poisoned_, "C1",
                 "the history has the tokens that the matcher consumed");
  CheckInvariant(
      !has_mask_ || is_poisoned_ || std::any_of(mask_.begin(), mask_.end(), [](uint32_t word) { return word != 0; }),
      "C3", "a mask of a healthy cursor has a token");
}

}  // namespace oga::grammar
