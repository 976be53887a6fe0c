// From the path a person types to a config: every kind of folder name, and every way the file can be missing or damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/config_file.h"
#include "config/genai_config.h"
#include "native/config/config_samples.h"
#include "support/temp_folder.h"

namespace oga {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;
using testing::kSmallConfig;

// A folder of its own per test, readable by everyone, gone afterwards.
class ConfigFile : public ::testing::Test {
 protected:
  ConfigFile() { fs::permissions(root_, fs::perms(0755)); }
  ~ConfigFile() override { fs::current_path(start_); }

  fs::path MakeModelFolder(const fs::path& name, const std::string& text = kSmallConfig) const {
    const fs::path folder = root_ / name;
    fs::create_directories(folder);
    std::ofstream(folder / kConfigFileName, std::ios::binary) << text;
    return folder;
  }

  const test::TempFolder folder_;
  const fs::path root_ = folder_.path();
  const fs::path start_ = fs::current_path();
};

TEST_F(ConfigFile, LoadsFromFoldersOfAnyName) {
  const std::string names[] = {
      "plain",
      "a b",
      "modèle",
      "模型",
      "🙂",
      "#%&';$()",
      "tab\there",
      "line\nbreak",
      "back\\slash",
      "%s%n%d",
      "mod\xe8le-\xff",                                     // not UTF-8
      std::string(200, 'x') + "/" + std::string(200, 'y'),  // a path of more than 300 characters
  };
  for (const std::string& name : names) {
    const fs::path folder = MakeModelFolder(name);
    const GenaiConfig config = GenaiConfig::FromFolder(folder.native());
    EXPECT_EQ(config.vocab_size(), 64) << name;
    EXPECT_EQ(config.folder(), folder.native());
    EXPECT_EQ(config.decoder_path(), folder.native() + "/model.onnx");
  }
}

TEST_F(ConfigFile, TakesEverySpellingOfAPath) {
  const fs::path folder = MakeModelFolder("model");
  fs::create_directories(root_ / "other");
  fs::create_directory_symlink(folder, root_ / "link");
  fs::create_directory_symlink("model", root_ / "relative_link");
  fs::current_path(root_);
  const std::string spellings[] = {folder.native(),
                                   folder.native() + "/",
                                   folder.native() + "///",
                                   folder.native() + "/.",
                                   "model",
                                   "model/",
                                   "./model",
                                   "other/../model",
                                   root_.native() + "//model",
                                   root_.native() + "/other/../model/",
                                   "link",
                                   "link/",
                                   "relative_link"};
  for (const std::string& spelling : spellings) {
    const GenaiConfig config = GenaiConfig::FromFolder(spelling);
    EXPECT_EQ(config.vocab_size(), 64) << spelling;
    EXPECT_TRUE(fs::equivalent(config.folder(), folder)) << spelling << " became " << config.folder();
  }
  fs::current_path(folder);
  EXPECT_TRUE(fs::equivalent(GenaiConfig::FromFolder(".").folder(), folder));
}

TEST_F(ConfigFile, StaysWhereItWasWhenTheWorkingFolderChanges) {
  const fs::path folder = MakeModelFolder("model");
  fs::current_path(root_);
  const GenaiConfig config = GenaiConfig::FromFolder("model/");
  fs::current_path("/");
  EXPECT_EQ(config.folder(), folder.native());
  EXPECT_EQ(config.decoder_path(), (folder / "model.onnx").native());
}

TEST_F(ConfigFile, ReadsAFileThatIsALink) {
  const fs::path real = MakeModelFolder("real");
  fs::create_directories(root_ / "linked");
  fs::create_symlink(real / kConfigFileName, root_ / "linked" / kConfigFileName);
  EXPECT_EQ(GenaiConfig::FromFolder((root_ / "linked").native()).vocab_size(), 64);
}

TEST_F(ConfigFile, NamesTheFullPathOfAFolderThatDoesNotExist) {
  fs::current_path(root_);
  for (const std::string& path : {std::string("nowhere"), root_.native() + "/nowhere/", std::string("./nowhere//")}) {
    const Error error = ErrorOf([&] { GenaiConfig::FromFolder(path); });
    EXPECT_EQ(error.code(), StatusCode::kNotFound);
    EXPECT_CONTAINS(error.message(), root_.native());
    EXPECT_CONTAINS(error.message(), "nowhere' does not exist");
  }
  const Error dangling = ErrorOf([&] {
    fs::create_directory_symlink("gone", root_ / "dangling");
    GenaiConfig::FromFolder((root_ / "dangling").native());
  });
  EXPECT_EQ(dangling.code(), StatusCode::kNotFound);
}

TEST_F(ConfigFile, RefusesAnEmptyPathAndOneWithANul) {
  EXPECT_EQ(ErrorOf([] { GenaiConfig::FromFolder(""); }).code(), StatusCode::kInvalidArgument);
  const Error error = ErrorOf([] { GenaiConfig::FromFolder(std::string("a\0b", 3)); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error.field(), "config_path");
  EXPECT_CONTAINS(error.message(), "'a\\x00b'");
}

TEST_F(ConfigFile, NamesTheFullPathOfAMissingConfig) {
  fs::create_directories(root_ / "empty");
  fs::current_path(root_);
  const Error error = ErrorOf([] { GenaiConfig::FromFolder("empty"); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_EQ(error.field(), root_.native() + "/empty/genai_config.json");
  EXPECT_CONTAINS(error.message(), "'" + root_.native() + "/empty/genai_config.json' does not exist");
  EXPECT_CONTAINS(error.message(), "oga convert");
}

TEST_F(ConfigFile, NamesTheFileInEveryMessageAboutItsContent) {
  const std::string text = kSmallConfig;
  const struct {
    const char* name;
    std::string text;
    const char* reason;
  } rows[] = {
      {"zero length", "", "is empty"},
      {"half", text.substr(0, text.size() / 2), "missing closing quote"},
      {"nuls", std::string(500, '\0'), "NUL byte"},
      {"binary",
       std::string("\x7f"
                   "ELF\x02\x01\x01",
                   7),
       "not valid JSON"},
      {"list", "[]", "it must be a JSON object"},
  };
  for (const auto& row : rows) {
    const fs::path folder = MakeModelFolder(row.name, row.text);
    const Error error = ErrorOf([&] { GenaiConfig::FromFolder(folder.native()); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_CONTAINS(error.message(), folder.native() + "/genai_config.json");
    EXPECT_CONTAINS(error.message(), row.reason);
  }
}

TEST_F(ConfigFile, RefusesAFileFarTooLargeForAConfig) {
  const fs::path folder = MakeModelFolder("large");
  fs::resize_file(folder / kConfigFileName, size_t{17} << 20);
  const Error error = ErrorOf([&] { GenaiConfig::FromFolder(folder.native()); });
  EXPECT_EQ(error.code(), StatusCode::kIoError);
  EXPECT_CONTAINS(error.message(), "is larger than 16 MiB");
}

TEST_F(ConfigFile, WritesAPathThatIsNotUtf8ReadablyInMessages) {
  const fs::path folder = MakeModelFolder("mod\xe8le", "{}");
  const Error error = ErrorOf([&] { GenaiConfig::FromFolder(folder.native()); });
  EXPECT_CONTAINS(error.message(), "mod\\xe8le/genai_config.json, line 1: model is missing");
  EXPECT_EQ(error.message().find('\xe8'), std::string::npos);
  const Error missing = ErrorOf([&] { GenaiConfig::FromFolder((root_ / "\xff").native()); });
  EXPECT_CONTAINS(missing.message(), "\\xff' does not exist");
}

}  // namespace
}  // namespace oga
