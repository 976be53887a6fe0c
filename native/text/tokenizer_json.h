// The files that describe a tokenizer (tokenizer.json, and what tokenizer_config.json and added_tokens.json add to it),
// read and resolved to ids as the `tokenizers` library does.
//
// Plain values. Which components are known is decided by those who use them: text/token_decoder.h for decoding,
// text/text_encoder.h for encoding.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/json_value.h"
#include "step/ids.h"
#include "text/token_texts.h"

namespace oga {

inline constexpr const char* kTokenizerFileName = "tokenizer.json";

// A token that is found in a text before the model sees it.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;
  bool lstrip = false;       // takes the whitespace before it
  bool rstrip = false;       // takes the whitespace behind it
  bool single_word = false;  // only between characters that belong to no word
  bool normalized = false;   // is found in the normalised text
};

// Two neighbouring tokens that become one. The place in the list is the rank: the first is merged first.
using Merge = std::pair<std::string, std::string>;

struct TokenizerFiles {
  std::string folder;
  JsonValue root;          // tokenizer.json without its vocabulary and merges
  JsonValue settings;      // tokenizer_config.json; an empty object when there is none
  std::string model_type;  // "BPE", "Unigram", "WordLevel"
  TokenTexts vocabulary;
  std::vector<AddedToken> added_tokens;  // in the order of the file; contents differ
};

// Reads the files of a folder. Throws Error: kNotFound when there is no tokenizer.json, kIoError when a file cannot be
// read, kInvalidArgument for a damaged one (naming the file, the line, what was found and what was wanted),
// kUnsupported for a model of another type, by name.
TokenizerFiles ReadTokenizerFiles(const std::string& folder);

// The merges of tokenizer.json, which only encoding needs and which are the larger part of it.
std::vector<Merge> ReadMerges(const std::string& folder);

// The text of the token in a role, "bos_token" for example, by tokenizer_config.json.
std::optional<std::string> TokenOfRole(const JsonValue& settings, const char* role);

}  // namespace oga
