// The bytes of a file, every way in which they cannot be had, and what a folder must be.
#include "config/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "native/config/config_samples.h"
#include "support/temp_folder.h"

namespace oga {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;

constexpr FileKind kKind{.max_bytes = size_t{1} << 20, .noun = "sample", .remedy = "make one"};

// A folder of its own per test, readable by everyone, gone afterwards.
class ReadFileTest : public ::testing::Test {
 protected:
  ReadFileTest() { fs::permissions(root_, fs::perms(0755)); }

  std::string PathOf(const char* name) const { return (root_ / name).native(); }
  std::string Write(const char* name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return PathOf(name);
  }

  const test::TempFolder folder_;
  const fs::path root_ = folder_.path();
};

// Gives up the rights of root while it lives, so that a file without permissions is unreadable for root's tests too.
class WithoutRootRights {
 public:
  WithoutRootRights() : was_root_(::geteuid() == 0) { SetUser(65534); }
  ~WithoutRootRights() { SetUser(0); }

 private:
  void SetUser(uid_t user) const {
    if (was_root_ && ::seteuid(user) != 0) ADD_FAILURE() << "seteuid failed";
  }

  const bool was_root_;
};

TEST_F(ReadFileTest, GivesEveryByteOfAFileOfAnySize) {
  for (const size_t size : {0, 1, 16383, 16384, 16385, 100000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    EXPECT_TRUE(ReadFile(Write("file", bytes), kKind) == bytes) << size;
  }
}

TEST_F(ReadFileTest, RefusesAFileOfOneByteTooMany) {
  const std::string path = Write("file", std::string(kKind.max_bytes, 'x'));
  EXPECT_EQ(ReadFile(path, kKind).size(), kKind.max_bytes);
  const Error error = ErrorOf([&] { ReadFile(Write("file", std::string(kKind.max_bytes + 1, 'x')), kKind); });
  EXPECT_EQ(error.code(), StatusCode::kIoError);
  EXPECT_EQ(error.field(), path);
  EXPECT_CONTAINS(error.message(), kKind.noun);
}

TEST_F(ReadFileTest, SaysWhatToDoWhenAFileIsMissing) {
  const Error error = ErrorOf([&] { ReadFile(PathOf("file"), kKind); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_EQ(error.field(), PathOf("file"));
  EXPECT_CONTAINS(error.message(), kKind.remedy);
}

TEST_F(ReadFileTest, SaysWhereADanglingLinkPoints) {
  fs::create_symlink("../gone/elsewhere.json", root_ / "link");
  const Error error = ErrorOf([&] { ReadFile(PathOf("link"), kKind); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_CONTAINS(error.message(), "'../gone/elsewhere.json'");
  EXPECT_TRUE(FileExists(PathOf("link"))) << "its reader has to say what is wrong with it";
  EXPECT_FALSE(FileExists(PathOf("nothing")));
}

TEST_F(ReadFileTest, RefusesWhatIsNoFile) {
  fs::create_directories(root_ / "folder");
  // Nobody writes to this pipe: reading it, or only opening it in the usual way, would wait for ever.
  ASSERT_EQ(::mkfifo(PathOf("pipe").c_str(), 0644), 0);
  fs::create_symlink("/dev/zero", root_ / "device");
  for (const char* kind : {"folder", "pipe", "device"}) {
    const Error error = ErrorOf([&] { ReadFile(PathOf(kind), kKind); });
    EXPECT_EQ(error.code(), StatusCode::kIoError);
    EXPECT_EQ(error.field(), PathOf(kind));
    EXPECT_CONTAINS(error.message(), Message("' is a ", kind));
  }
}

TEST_F(ReadFileTest, SaysWhyAFileOrFolderCannotBeOpened) {
  fs::permissions(Write("secret", "x"), fs::perms(0));
  fs::create_directories(root_ / "closed" / "inner");
  fs::permissions(root_ / "closed", fs::perms(0));
  {
    const WithoutRootRights nobody;
    const Error file = ErrorOf([&] { ReadFile(PathOf("secret"), kKind); });
    EXPECT_EQ(file.code(), StatusCode::kIoError);
    EXPECT_CONTAINS(file.message(), "/secret' cannot be opened: Permission denied");
    const Error folder = ErrorOf([&] { CheckFolder(PathOf("closed/inner"), "x"); });
    EXPECT_EQ(folder.code(), StatusCode::kIoError);
    EXPECT_CONTAINS(folder.message(), "/closed/inner' cannot be opened: Permission denied");
  }
  fs::permissions(root_ / "closed", fs::perms(0755));

  fs::create_symlink("loop", root_ / "loop");
  const Error loop = ErrorOf([&] { CheckFolder(PathOf("loop"), "x"); });
  EXPECT_EQ(loop.code(), StatusCode::kIoError);
  EXPECT_CONTAINS(loop.message(), "Too many levels of symbolic links");
  const Error long_name = ErrorOf([&] { CheckFolder(PathOf(std::string(300, 'x').c_str()), "x"); });
  EXPECT_EQ(long_name.code(), StatusCode::kIoError);
  EXPECT_CONTAINS(long_name.message(), "File name too long");
}

TEST_F(ReadFileTest, SaysThatAFileIsNoFolderAndWhatAFolderHolds) {
  EXPECT_NO_THROW(CheckFolder(root_.native(), "model.json"));
  const std::string file = Write("file", "x");
  const Error error = ErrorOf([&] { CheckFolder(file, "model.json"); });
  EXPECT_EQ(error.code(), StatusCode::kIoError);
  EXPECT_EQ(error.field(), file);
  EXPECT_CONTAINS(error.message(), "' is a file;");
  EXPECT_CONTAINS(error.message(), "model.json");
  EXPECT_CONTAINS(ErrorOf([&] { CheckFolder(file + "/x", "model.json"); }).message(), "Not a directory");
  EXPECT_CONTAINS(ErrorOf([] { CheckFolder("/dev/null", "model.json"); }).message(), "is a device");
}

}  // namespace
}  // namespace oga
