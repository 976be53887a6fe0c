// Tokenizers of every kind and what the `tokenizers` library makes of them, as tests/models/build_texts.py wrote it.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/test_data.h"

namespace oga::test {

// The kinds of tests/models/text_kinds.py.
inline const std::vector<std::string>& TextKinds() {
  static const std::vector<std::string> kinds{"byte_level",     "byte_level_prefix",
                                              "llama3",         "qwen2",
                                              "smollm2",        "merges_as_text",
                                              "holes",          "llama2",
                                              "mistral",        "gemma",
                                              "normalized",     "single_words",
                                              "unigram_always", "unigram_first",
                                              "unigram_never",  "words"};
  return kinds;
}

inline nlohmann::json ReadGolden(const std::string& kind) {
  std::ifstream file(TextFolder(kind) + "/golden.json");
  if (!file) throw std::runtime_error(TextFolder(kind) + "/golden.json was not built; build the target test_texts");
  return nlohmann::json::parse(file);
}

// A list of ids and the text the reference decodes from it.
struct DecodedList {
  std::vector<int32_t> ids;
  std::string text;  // special tokens hidden
  std::string text_and_specials;
};

inline std::vector<DecodedList> GoldenLists(const nlohmann::json& golden) {
  std::vector<DecodedList> lists;
  const std::vector<int32_t> ids = golden.at("ids");
  for (const auto& cut : golden.at("cuts")) {
    const auto begin = ids.begin() + cut[0].get<int>();
    lists.push_back({{begin, ids.begin() + cut[1].get<int>()}, cut[2], cut[3]});
  }
  for (const auto& list : golden.at("random")) lists.push_back({list[0], list[1], list[2]});
  return lists;
}

}  // namespace oga::test
