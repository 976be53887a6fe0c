// Finding llguidance. A process uses one library for its life, so what must not be loaded is tried in a child process.
#include "grammar/grammar_library.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "grammar/grammar_tokenizer.h"
#include "native/grammar/grammar_world.h"
#include "support/test_data.h"

namespace oga::grammar {
namespace {

// Prints what the library says when `path` is named, and exits.
[[noreturn]] void ReportLoading(const std::string& path) {
  unsetenv("OGA_LLGUIDANCE_LIBRARY");
  try {
    SetLibraryPath(path);
    std::fprintf(stderr, "loaded %s\n", LibraryVersion().c_str());
    std::exit(0);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    std::exit(static_cast<int>(error.code()));
  }
}

class GrammarLibrary : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

const auto kUnsupported = ::testing::ExitedWithCode(static_cast<int>(StatusCode::kUnsupported));

TEST_F(GrammarLibrary, SaysWhatToInstallWhenNoneIsKnown) {
  EXPECT_EXIT(ReportLoading(""), kUnsupported, "not known here: pip install 'llguidance.*OGA_LLGUIDANCE_LIBRARY");
}

TEST_F(GrammarLibrary, NamesTheFileThatCannotBeLoaded) {
  EXPECT_EXIT(ReportLoading("/does/not/exist.so"), kUnsupported,
              "/does/not/exist.so cannot be loaded: .*pip install 'llguidance");
}

TEST_F(GrammarLibrary, NamesTheFunctionThatAnotherLibraryLacks) {
  EXPECT_EXIT(ReportLoading("libm.so.6"), kUnsupported, "no function llg_get_version.*pip install 'llguidance");
}

TEST_F(GrammarLibrary, RefusesAnOldRelease) {
  EXPECT_EXIT(ReportLoading(::oga::test::DataPath("libfake_llguidance_old.so")), kUnsupported,
              "is llguidance '1.7.6'; oga works with 1.8 and later releases of 1");
}

TEST_F(GrammarLibrary, RefusesSettingsThatGrew) {
  EXPECT_EXIT(ReportLoading(::oga::test::DataPath("libfake_llguidance_grown.so")), kUnsupported,
              "lays out its settings in a way that this oga does not know");
}

TEST_F(GrammarLibrary, TakesALaterReleaseWithTheSameLayout) {
  EXPECT_EXIT(ReportLoading(::oga::test::DataPath("libfake_llguidance.so")), ::testing::ExitedWithCode(0),
              "loaded 1.99.0 ");
}

TEST_F(GrammarLibrary, StaysTheOneInUse) {
  test::UseLibrary();
  const std::string version = LibraryVersion();
  EXPECT_NE(version.find("_lib"), std::string::npos) << version;
  try {
    SetLibraryPath("/another.so");
    FAIL() << "a second library was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidState);
    EXPECT_NE(error.message().find("is already in use from"), std::string::npos) << error.message();
  }
  SetLibraryPath("");
  EXPECT_EQ(LibraryVersion(), version);
}

}  // namespace
}  // namespace oga::grammar
