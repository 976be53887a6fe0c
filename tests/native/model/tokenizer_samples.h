// A tokenizer.json of four tokens, with members replaced, written to a folder that lives as long as the test program.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/tokenizer/tokenizer_json.h"

namespace oga::testing {

inline constexpr const char* kSmallTokenizer = R"({
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

// `changes` maps members ("decoder", "model.vocab") to JSON texts.
inline std::string Sample(const std::map<std::string, std::string>& changes) {
  nlohmann::json root = nlohmann::json::parse(kSmallTokenizer);
  for (const auto& [member, value] : changes) {
    const bool is_of_model = member.starts_with("model.");
    (is_of_model ? root["model"][member.substr(6)] : root[member]) = nlohmann::json::parse(value);
  }
  return root.dump(1);
}

// A folder with files of these names and contents, gone with the object.
class SampleFolder {
 public:
  explicit SampleFolder(const std::map<std::string, std::string>& files) {
    std::string pattern = (std::filesystem::temp_directory_path() / "oga-tokenizer-XXXXXX").native();
    path_ = ::mkdtemp(pattern.data());
    for (const auto& [name, content] : files) std::ofstream(path_ / name, std::ios::binary) << content;
  }
  ~SampleFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SampleFolder(const SampleFolder&) = delete;
  SampleFolder& operator=(const SampleFolder&) = delete;

  std::string path() const { return path_.native(); }

 private:
  std::filesystem::path path_;
};

inline TokenizerFiles ReadSample(const std::string& tokenizer) {
  return ReadTokenizerFiles(SampleFolder({{kTokenizerFileName, tokenizer}}).path());
}

inline std::vector<Merge> ReadSampleMerges(const std::string& tokenizer) {
  return ReadMerges(SampleFolder({{kTokenizerFileName, tokenizer}}).path());
}

}  // namespace oga::testing
