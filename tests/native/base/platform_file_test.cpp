#include "base/platform_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/temp_folder.h"

namespace oga::platform {
namespace {

TEST(InputFile, ReadsFromAnyOffsetUpToTheEnd) {
  const test::TempFolder folder;
  std::ofstream(folder.path() / "text") << "0123456789";
  InputFile file((folder.path() / "text").string());
  ASSERT_TRUE(file.is_open());
  EXPECT_TRUE(file.is_regular());
  EXPECT_EQ(file.size_bytes(), 10u);
  char text[8] = {};
  EXPECT_EQ(file.ReadAt(6, text, sizeof(text)), 4);
  EXPECT_EQ(std::string(text), "6789");
  EXPECT_EQ(file.ReadAt(10, text, sizeof(text)), 0);
}

TEST(InputFile, TellsAMissingFileFromOneThatCannotBeRead) {
  const test::TempFolder folder;
  const InputFile missing((folder.path() / "missing").string());
  EXPECT_FALSE(missing.is_open());
  EXPECT_TRUE(missing.is_missing());
  EXPECT_EQ(missing.reason(), "No such file or directory");
  std::ofstream(folder.path() / "text") << "text";
  const InputFile below((folder.path() / "text" / "below").string());
  EXPECT_FALSE(below.is_open());
  EXPECT_FALSE(below.is_missing());
}

TEST(InputFile, SeesWhatIsInAFilesPlaceWithoutWaiting) {
  const test::TempFolder folder;
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const InputFile file(pipe);
  EXPECT_FALSE(file.is_regular());
  EXPECT_STREQ(file.kind(), "a pipe");
  EXPECT_STREQ(InputFile(folder.path().string()).kind(), "a folder");
}

}  // namespace
}  // namespace oga::platform
