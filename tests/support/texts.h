// Tokenizers of every kind and what the `tokenizers` library makes of them, as tests/models/build_texts.py wrote it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "support/test_data.h"

namespace oga::test {

// The kinds of tests/models/text_kinds.py.
const std::vector<std::string>& TextKinds();

// A text and the ids that the reference encodes it to.
struct EncodedText {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<int32_t> ids_and_specials;
};

// A list of ids and the text the reference decodes from it.
struct DecodedList {
  std::vector<int32_t> ids;
  std::string text;  // special tokens hidden
  std::string text_and_specials;
};

// What the reference knows of one kind.
struct Golden {
  std::vector<EncodedText> texts;
  std::set<int32_t> known_ids;
  std::vector<DecodedList> lists;
};

Golden ReadGolden(const std::string& kind);

}  // namespace oga::test
