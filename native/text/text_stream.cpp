#include "text/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace oga {

TextStream::TextStream(std::shared_ptr<const TokenBytes> tokens, bool skip_special)
    : tokens_(std::move(tokens)), skip_special_(skip_special), strip_left_(tokens_->strip_count) {}

void TextStream::Append(TokenId token, std::string& out, uint64_t visible_bytes) {
  const bool is_hidden = !tokens_->IsKnown(token) || (skip_special_ && tokens_->IsSpecial(token));
  if (!is_hidden) Take(is_first_ ? tokens_->OfFirst(token) : tokens_->Of(token), tokens_->IsByte(token));
  HandOut(out, visible_bytes, /*finishing=*/false);
}

void TextStream::Finish(std::string& out, uint64_t visible_bytes) {
  HandOut(out, visible_bytes, /*finishing=*/true);
  is_first_ = true;
  strip_left_ = tokens_->strip_count;
  pending_.clear();
  kinds_.clear();
  position_ = 0;
  run_is_open_ = false;
}

void TextStream::Take(std::string_view bytes, bool is_byte) {
  is_first_ = false;
  if (is_byte && !run_is_open_) {
    last_run_ = last_run_ == kRun ? kOtherRun : kRun;
    open_run_begin_ = pending_.size();
  }
  run_is_open_ = is_byte;
  pending_ += bytes;
  kinds_.append(bytes.size(), is_byte ? last_run_ : kText);
}

void TextStream::HandOut(std::string& out, uint64_t visible_bytes, bool finishing) {
  const uint64_t visible = visible_bytes > position_ ? visible_bytes - position_ : 0;
  const size_t available = static_cast<size_t>(std::min<uint64_t>(visible, pending_.size()));
  const std::string_view bytes = pending_;
  size_t at = 0;
  while (at < available) {
    if (!finishing && run_is_open_ && at == open_run_begin_) break;
    const size_t segment_end = std::min(kinds_.find_first_not_of(kinds_[at], at), pending_.size());
    const size_t end = std::min(segment_end, available);
    if (kinds_[at] != kText) {
      if (!finishing && end < segment_end) break;
      HandOutRun(bytes.substr(at, end - at), out);
      at = end;
    } else {
      const bool may_go_on = !finishing && end == available;
      const size_t taken = HandOutText(bytes.substr(at, end - at), !may_go_on, out);
      at += taken;
      if (at < end) break;
    }
  }
  pending_.erase(0, at);
  kinds_.erase(0, at);
  position_ += at;
  open_run_begin_ -= std::min(open_run_begin_, at);
}

// Returns how many of the bytes are handed out: all, or all but the begin of a character.
size_t TextStream::HandOutText(std::string_view bytes, bool is_last, std::string& out) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Step step = NextUtf8(bytes.substr(at));
    if (step.kind == Utf8Kind::kIncomplete && !is_last) break;
    Emit(step.kind == Utf8Kind::kCharacter ? bytes.substr(at, step.length) : kReplacementCharacter, out);
    at += step.length;
  }
  return at;
}

void TextStream::HandOutRun(std::string_view bytes, std::string& out) {
  if (FindInvalidUtf8(bytes) == std::string_view::npos) return Emit(bytes, out);
  for (size_t i = 0; i < bytes.size(); ++i) Emit(kReplacementCharacter, out);
}

void TextStream::Emit(std::string_view text, std::string& out) {
  while (strip_left_ > 0 && !text.empty()) {
    const bool is_stripped = text[0] == tokens_->strip_character;
    strip_left_ = is_stripped ? strip_left_ - 1 : 0;
    if (is_stripped) text.remove_prefix(1);
  }
  out += text;
}

std::string DecodeText(std::shared_ptr<const TokenBytes> bytes, std::span<const TokenId> tokens, bool skip_special) {
  TextStream stream(std::move(bytes), skip_special);
  std::string text;
  for (const TokenId token : tokens) stream.Append(token, text);
  stream.Finish(text);
  return text;
}

}  // namespace oga
