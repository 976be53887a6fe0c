#include "native/text/tokenizer_samples.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace oga::testing {
namespace {

constexpr const char* kSmallTokenizer = R"({
  "version": "1.0",
  "added_tokens": [],
  "normalizer": null,
  "pre_tokenizer": null,
  "post_processor": null,
  "decoder": {"type": "Fuse"},
  "model": {
    "type": "BPE",
    "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3},
    "merges": [["a", "b"]]
  }
})";

}  // namespace

std::string Sample(const std::map<std::string, std::string>& changes) {
  nlohmann::json root = nlohmann::json::parse(kSmallTokenizer);
  for (const auto& [member, value] : changes) {
    const bool is_of_model = member.starts_with("model.");
    (is_of_model ? root["model"][member.substr(6)] : root[member]) = nlohmann::json::parse(value);
  }
  return root.dump(1);
}

std::string VocabularyOf(const std::vector<std::string>& tokens) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  return vocabulary.dump();
}

std::string AddedToken(const std::string& content, bool special) {
  return nlohmann::json{{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
                        {"rstrip", false}, {"normalized", false}, {"special", special}}
      .dump();
}

SampleFolder::SampleFolder(const std::map<std::string, std::string>& files) {
  for (const auto& [name, content] : files) std::ofstream(folder_.path() / name, std::ios::binary) << content;
}

TokenizerFiles ReadSample(const std::string& tokenizer) {
  return ReadTokenizerFiles(SampleFolder({{kTokenizerFileName, tokenizer}}).path());
}

std::vector<Merge> ReadSampleMerges(const std::string& tokenizer) {
  return ReadMerges(SampleFolder({{kTokenizerFileName, tokenizer}}).path());
}

}  // namespace oga::testing
