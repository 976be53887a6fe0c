// The byte string of every token id: what visible text, stop strings and grammars are made of.
//
// A plain table, immutable once built, shared by any number of threads. Lookups allocate nothing and take any id.
//
// Decoders of some tokenizers drop leading spaces of a whole text. Two rules say how; whoever turns tokens into bytes
// applies both, so that every reader sees the same text:
//  - the first token of a text may stand for fewer bytes than the same token further on (OfFirst);
//  - up to `strip_count` leading `strip_character`s of the text are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "step/ids.h"

namespace oga {

struct TokenBytes {
  static constexpr uint8_t kKnown = 1;    // the tokenizer has the id; others are holes or padding: never sampled
  static constexpr uint8_t kSpecial = 2;  // hidden from text unless asked for
  static constexpr uint8_t kByte = 4;     // one byte of a character (byte fallback), not text by itself

  std::vector<uint32_t> offsets{0};     // [ids + 1] into `bytes`
  std::string bytes;                    // all ids' bytes, one after the other
  std::vector<uint32_t> first_offsets;  // the same for the first token of a text; empty when nothing differs
  std::string first_bytes;
  std::vector<uint8_t> flags;  // [ids]
  uint32_t strip_count = 0;
  char strip_character = ' ';  // ASCII

  size_t size() const noexcept { return flags.size(); }
  uint8_t FlagsOf(TokenId id) const noexcept { return Has(id) ? flags[static_cast<size_t>(id)] : 0; }
  bool IsKnown(TokenId id) const noexcept { return (FlagsOf(id) & kKnown) != 0; }
  bool IsSpecial(TokenId id) const noexcept { return (FlagsOf(id) & kSpecial) != 0; }
  bool IsByte(TokenId id) const noexcept { return (FlagsOf(id) & kByte) != 0; }

  // Empty for an id that the tokenizer does not know.
  std::string_view Of(TokenId id) const noexcept { return Slice(offsets, bytes, id); }
  std::string_view OfFirst(TokenId id) const noexcept {
    return first_offsets.empty() ? Of(id) : Slice(first_offsets, first_bytes, id);
  }

 private:
  bool Has(TokenId id) const noexcept { return id >= 0 && static_cast<size_t>(id) < flags.size(); }

  std::string_view Slice(const std::vector<uint32_t>& ends, const std::string& blob, TokenId id) const noexcept {
    if (!Has(id)) return {};
    const auto at = static_cast<size_t>(id);
    return std::string_view(blob).substr(ends[at], ends[at + 1] - ends[at]);
  }
};

}  // namespace oga
