// The decoder of a tokenizer.json: from the text of a token, as its vocabulary writes it, to the bytes it stands for.
//
// Plain data, read once. Known are ByteLevel, Metaspace, Replace of a string, ByteFallback, Strip, Fuse and sequences of
// them in an order in which every token can be decoded without its neighbours; leading characters may be stripped from
// the text as a whole. Anything else is refused by name: a component that is skipped gives wrong text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/json_object.h"

namespace oga {

struct ReplaceStep {
  std::string from;
  std::string to;
};
struct StripStep {  // of every token
  std::string character;
  uint64_t leading;
  uint64_t trailing;
};
struct MetaspaceStep {
  std::string replacement;  // stands for a space
  bool drops_in_first;      // and for nothing in the first token of a text
};
struct ByteLevelStep {};
using DecoderStep = std::variant<ReplaceStep, StripStep, MetaspaceStep, ByteLevelStep>;

struct TokenDecoder {
  std::vector<DecoderStep> steps;  // of every token, in order
  bool byte_fallback = false;      // <0xNN> is the byte NN
  bool joins_with_space = false;   // no decoder: tokens stand apart
  char strip_character = ' ';      // of the text as a whole
  uint32_t strip_count = 0;

  bool first_differs() const;
};

struct DecodedToken {
  std::string bytes;
  bool is_byte = false;
};

// Reads `decoder` of a tokenizer.json. Throws Error{kUnsupported} naming the component, its place and what is known.
TokenDecoder ReadTokenDecoder(const JsonObject& root);

DecodedToken DecodeToken(const TokenDecoder& decoder, std::string_view text, bool is_first);

}  // namespace oga
