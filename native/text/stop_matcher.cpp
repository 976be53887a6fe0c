#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace oga {

StopMatcher::StopMatcher(std::shared_ptr<const StopStrings> strings, std::shared_ptr<const TokenBytes> tokens,
                         bool skip_special)
    : strings_(std::move(strings)), tokens_(std::move(tokens)), skip_special_(skip_special) {
  Reset();
}

StopStage StopMatcher::StageAfter(const StopState& state, TokenId token) const noexcept {
  StopStage stage{.next = state, .released = {}, .released_of_token = {}};
  StopState& next = stage.next;
  if (!tokens_->IsKnown(token) || (skip_special_ && tokens_->IsSpecial(token))) return stage;
  std::string_view bytes = state.is_first ? tokens_->OfFirst(token) : tokens_->Of(token);
  next.is_first = false;

  size_t dropped = 0;
  while (next.strip_left > 0 && dropped < bytes.size()) {
    const bool is_stripped = bytes[dropped] == tokens_->strip_character;
    next.strip_left = is_stripped ? next.strip_left - 1 : 0;
    if (is_stripped) ++dropped;
  }
  next.bytes += dropped;
  bytes.remove_prefix(dropped);
  for (const char byte : bytes) {
    next.node = strings_->Advance(next.node, byte);
    ++next.bytes;
    next.matched_index = strings_->MatchAt(next.node);
    if (stage.matched()) break;
  }
  const size_t held_bytes = stage.matched() ? strings_->strings()[static_cast<size_t>(next.matched_index)].size()
                                            : strings_->Depth(next.node);
  next.visible_bytes = next.bytes - held_bytes;

  const std::string_view held_before = strings_->Label(state.node);
  const auto released_bytes = static_cast<size_t>(next.visible_bytes - state.visible_bytes) - dropped;
  stage.released = held_before.substr(0, std::min(released_bytes, held_before.size()));
  stage.released_of_token = bytes.substr(0, released_bytes - stage.released.size());
  return stage;
}

std::string_view StopMatcher::Finish() noexcept {
  if (state_.matched_index != StopStrings::kNoMatch) return {};
  const std::string_view held = strings_->Label(state_.node);
  state_.node = StopStrings::kStart;
  state_.visible_bytes = state_.bytes;
  return held;
}

void StopMatcher::Reset() noexcept { state_ = {.strip_left = tokens_->strip_count}; }

}  // namespace oga
