#include "support/texts.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace oga::test {
namespace {

using nlohmann::json;

json ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " was not built; build the target test_texts");
  return json::parse(file);
}

}  // namespace

const std::vector<std::string>& TextKinds() {
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

Golden ReadGolden(const std::string& kind) {
  const json file = ReadJson(TextFolder(kind) + "/golden.json");
  Golden golden;
  for (const json& row : file.at("strings")) golden.texts.push_back({row[0], row[1], row[2]});
  golden.known_ids = file.at("known").get<std::set<int32_t>>();
  const std::vector<int32_t> ids = file.at("ids");
  for (const json& cut : file.at("cuts")) {
    const auto begin = ids.begin() + cut[0].get<int>();
    golden.lists.push_back({{begin, ids.begin() + cut[1].get<int>()}, cut[2], cut[3]});
  }
  for (const json& list : file.at("random")) golden.lists.push_back({list[0], list[1], list[2]});
  return golden;
}

}  // namespace oga::test
