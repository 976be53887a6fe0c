// A tokenizer.json of four tokens, with members replaced, and folders to read it from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "text/tokenizer_json.h"

namespace oga::testing {

// `changes` maps members ("decoder", "model.vocab") to JSON texts.
std::string Sample(const std::map<std::string, std::string>& changes);

// The JSON texts of a vocabulary with ids in the order given, and of one added token with the id 0.
std::string VocabularyOf(const std::vector<std::string>& tokens);
std::string AddedToken(const std::string& content, bool special);

// A folder with files of these names and contents, gone with the object.
class SampleFolder {
 public:
  explicit SampleFolder(const std::map<std::string, std::string>& files);

  std::string path() const { return folder_.path().native(); }

 private:
  const test::TempFolder folder_;
};

TokenizerFiles ReadSample(const std::string& tokenizer);
std::vector<Merge> ReadSampleMerges(const std::string& tokenizer);

}  // namespace oga::testing
