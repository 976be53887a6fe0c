#include "engine/turn_text.h"

#include <utility>

namespace oga {

TurnText::TurnText(const TextOptions& options, std::shared_ptr<const TokenBytes> tokens) {
  const bool skip_special = !options.special_tokens;
  if (options.stop_strings != nullptr) committed_.matcher.emplace(options.stop_strings, tokens, skip_special);
  if (options.emit) committed_.stream.emplace(std::move(tokens), skip_special);
  staged_ = committed_;
}

void TurnText::Restart() { staged_ = committed_; }

int32_t TurnText::Take(TokenId token, std::string& out) {
  uint64_t visible_bytes = TextStream::kAllBytes;
  int32_t matched = StopStrings::kNoMatch;
  if (staged_.matcher) {
    const StopStage stage = staged_.matcher->Stage(token);
    staged_.matcher->Commit(stage);
    visible_bytes = stage.visible_bytes();
    matched = stage.matched_index();
  }
  if (staged_.stream) staged_.stream->Append(token, out, visible_bytes);
  return matched;
}

void TurnText::Finish(std::string& out) {
  if (staged_.matcher) staged_.matcher->Finish();
  if (!staged_.stream) return;
  staged_.stream->Finish(out, staged_.matcher ? staged_.matcher->visible_bytes() : TextStream::kAllBytes);
}

void TurnText::Commit() noexcept { std::swap(committed_, staged_); }

}  // namespace oga
