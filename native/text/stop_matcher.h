// Watches the text of one turn for stop strings, token by token, and says how much of it may be shown.
//
// Owned by one Request; owner thread of its engine. Works on the bytes of the turn's output only, so a match may begin
// and end inside tokens and never reaches back into a prompt; tokens without text (special ones, ids the tokenizer does
// not know) are as if they were not there. Of several matches the one that ends first counts, then the longest, then
// the one with the lowest index.
//
// Two phases: Stage and StageAfter compute, Commit takes over; a stage that is dropped leaves no trace. No phase
// allocates, the cost of a token is linear in its bytes. The engine's rules over it:
//  - the token that completes a match is kept; the text ends before the match (StopStage::visible_bytes);
//  - a token that ends a turn without text of its own (a user's stop id) is not committed, and Finish says what is
//    visible then: everything before it, since nothing can become a match any more.
//
// M1  visible_bytes() never falls, and bytes from it on are a begin of a stop string
// M2  after a match nothing more is staged
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "step/ids.h"
#include "step/token_bytes.h"
#include "text/stop_strings.h"

namespace oga {

// Where a matcher stands in the text of a turn: a small value, copied instead of undone.
struct StopState {
  uint64_t bytes = 0;          // of the turn's output so far
  uint64_t visible_bytes = 0;  // of these, certain not to be part of a match
  uint32_t strip_left = 0;     // leading characters that the decoder may still drop
  int32_t matched_index = StopStrings::kNoMatch;
  StopStrings::Node node = StopStrings::kStart;
  bool is_first = true;
};

struct StopStage {
  StopState next;
  // The bytes that this token makes visible, as two views of memory that the matcher keeps alive: bytes that were held
  // back until now, then bytes of the token itself.
  std::string_view released;
  std::string_view released_of_token;

  bool matched() const noexcept { return next.matched_index != StopStrings::kNoMatch; }
  int32_t matched_index() const noexcept { return next.matched_index; }
  uint64_t visible_bytes() const noexcept { return next.visible_bytes; }
};

class StopMatcher {
 public:
  StopMatcher(std::shared_ptr<const StopStrings> strings, std::shared_ptr<const TokenBytes> tokens,
              bool skip_special = true);

  // What `token` does as the next one of the output.
  StopStage Stage(TokenId token) const noexcept { return StageAfter(state_, token); }

  // What `token` does in another state of this turn, for several tokens staged in a row.
  StopStage StageAfter(const StopState& state, TokenId token) const noexcept;

  void Commit(const StopStage& stage) noexcept { state_ = stage.next; }

  // The end of a turn that no string ended: what was held back becomes visible. Returns those bytes.
  std::string_view Finish() noexcept;

  // The next token begins the output of another turn.
  void Reset() noexcept;

  const StopState& state() const noexcept { return state_; }
  uint64_t visible_bytes() const noexcept { return state_.visible_bytes; }

 private:
  std::shared_ptr<const StopStrings> strings_;
  std::shared_ptr<const TokenBytes> tokens_;
  bool skip_special_;
  StopState state_;
};

}  // namespace oga
