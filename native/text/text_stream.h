// Turns the tokens of one text into text as they arrive: whole characters only, nothing taken back, and all pieces
// together equal to what the `tokenizers` library decodes from all the tokens at once.
//
// Owned by whoever reads the text; one thread. Special tokens and ids the tokenizer does not know give nothing.
//
// Bytes that are no character become U+FFFD: in a byte-level vocabulary one for each ill-formed part, as in any lossy
// reading of UTF-8; in a vocabulary with byte tokens one for each byte of a run of byte tokens that is not well-formed
// as a whole. Such a run is text only when it has ended, so it is held back until then.
//
// T1  pending_ holds the bytes from position `position_` of the text on; kinds_ has one entry for each
// T2  what was handed out is the decoded text of the first `position_` bytes
// T3  a run of byte tokens is judged and handed out as a whole, apart from what stands before and behind it
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "step/ids.h"
#include "step/token_bytes.h"

namespace oga {

class TextStream {
 public:
  static constexpr uint64_t kAllBytes = std::numeric_limits<uint64_t>::max();

  explicit TextStream(std::shared_ptr<const TokenBytes> tokens, bool skip_special = true);

  // Takes the next token and appends the text that is now certain to `out`. Of the bytes of all tokens so far, those
  // from `visible_bytes` on wait: a StopMatcher says how many are visible, and later says more.
  void Append(TokenId token, std::string& out, uint64_t visible_bytes = kAllBytes);

  // Appends what is left to `out`, half a character as U+FFFD; bytes from `visible_bytes` on are dropped. The next
  // token begins a new text.
  void Finish(std::string& out, uint64_t visible_bytes = kAllBytes);

 private:
  enum Kind : char { kText, kRun, kOtherRun };  // of a byte; runs that touch alternate

  void Take(std::string_view bytes, bool is_byte);
  void HandOut(std::string& out, uint64_t visible_bytes, bool finishing);
  size_t HandOutText(std::string_view bytes, bool is_last, std::string& out);
  void HandOutRun(std::string_view bytes, std::string& out);
  void Emit(std::string_view text, std::string& out);

  std::shared_ptr<const TokenBytes> tokens_;
  bool skip_special_;
  bool is_first_ = true;
  uint32_t strip_left_;
  std::string pending_;
  std::string kinds_;
  uint64_t position_ = 0;
  Kind last_run_ = kOtherRun;
  bool run_is_open_ = false;   // the last byte is of a run that the next token may continue
  size_t open_run_begin_ = 0;  // in pending_
};

// The text of all `tokens` at once.
std::string DecodeText(std::shared_ptr<const TokenBytes> bytes, std::span<const TokenId> tokens,
                       bool skip_special = true);

}  // namespace oga
