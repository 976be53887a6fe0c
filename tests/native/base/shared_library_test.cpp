#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/test_data.h"

namespace oga {
namespace {

TEST(SharedLibrary, SaysWhyItCannotBeOpened) {
  std::string reason;
  EXPECT_FALSE(SharedLibrary::Open("/does/not/exist.so", &reason));
  EXPECT_NE(reason.find("/does/not/exist.so"), std::string::npos) << reason;
}

TEST(SharedLibrary, IsFoundWhereTheProcessHasItAndOpensNothingOtherwise) {
  std::string reason;
  const SharedLibrary library = SharedLibrary::FindLoaded("libc.so.6", &reason);
  ASSERT_TRUE(library) << reason;
  EXPECT_NE(library.Find("malloc"), nullptr);
  EXPECT_EQ(library.Find("no_such_symbol_of_the_tests"), nullptr);
  EXPECT_FALSE(SharedLibrary::FindLoaded("libno_such_library.so", &reason));
}

TEST(SharedLibrary, NamesTheFileOfASymbol) {
  std::string reason;
  const SharedLibrary library = SharedLibrary::FindLoaded("libc.so.6", &reason);
  const std::string path = PathOfSymbol(library.Find("malloc"), "fallback");
  EXPECT_TRUE(std::filesystem::path(path).is_absolute()) << path;
  int local = 0;
  EXPECT_EQ(PathOfSymbol(&local, "fallback"), "fallback");
}

// In this order: once a libpython is there, every module finds its symbols.
TEST(ExtensionModule, TakesTheLibpythonThatItsNameTellsOrAnyThatServesIt) {
  std::string reason;
  EXPECT_FALSE(SharedLibrary::OpenExtensionModule("/does/not/exist.abi3.so", &reason));
  EXPECT_EQ(reason.find("libpython3"), std::string::npos) << "nothing is said of what is not the cause: " << reason;

  EXPECT_FALSE(SharedLibrary::OpenExtensionModule(test::DataPath("_fake.cpython-399-x86_64-linux-gnu.so"), &reason));
  EXPECT_NE(reason.find("libpython3.99.so.1.0"), std::string::npos) << reason;

  EXPECT_FALSE(SharedLibrary::OpenExtensionModule(test::DataPath("_fake.so"), &reason));
  EXPECT_NE(reason.find("a libpython3 shared library"), std::string::npos) << reason;

  const SharedLibrary module = SharedLibrary::OpenExtensionModule(test::DataPath("_fake.abi3.so"), &reason);
  ASSERT_TRUE(module) << reason;
  EXPECT_EQ(reinterpret_cast<int (*)()>(module.Find("module_answer"))(), 0);
}

struct Loaded {
  std::string path;
  std::string name = "a library";
};

class Choices : public testing::Test {
 protected:
  void TearDown() override { unsetenv("OGA_TEST_CHOICE"); }

  const Loaded& Load() {
    return choice_.Get([this](const std::string& environment_path, const std::string& host_path) {
      ++loads_;
      if (environment_path.empty() && host_path.empty()) Throw(StatusCode::kNotFound, "nothing was given");
      return Loaded{environment_path.empty() ? host_path : environment_path};
    });
  }

  ChosenLibrary<Loaded> choice_{"OGA_TEST_CHOICE", "the first test"};
  int loads_ = 0;
};

TEST_F(Choices, AreTheEnvironmentsOrElseTheHosts) {
  choice_.Choose("/of/the/host.so");
  setenv("OGA_TEST_CHOICE", "/of/the/environment.so", 1);
  EXPECT_EQ(Load().path, "/of/the/environment.so");
}

TEST_F(Choices, AreLoadedOnceAndSearchedAgainAfterAFailure) {
  EXPECT_THROW(Load(), Error);
  choice_.Choose("/of/the/host.so");
  EXPECT_EQ(Load().path, "/of/the/host.so");
  EXPECT_EQ(Load().path, "/of/the/host.so");
  EXPECT_EQ(loads_, 2);
}

TEST_F(Choices, AreFinalOnceTheyAreLoaded) {
  choice_.Choose("/of/the/host.so");
  Load();
  choice_.Choose("/of/the/host.so");
  choice_.Choose("");
  try {
    choice_.Choose("/another.so");
    FAIL() << "the library of a process was exchanged";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidState);
    EXPECT_EQ(error.field(), "/another.so");
    for (const char* part : {"a library", "/of/the/host.so", "/another.so", "before the first test"}) {
      EXPECT_NE(error.message().find(part), std::string::npos) << part << " is not in: " << error.message();
    }
  }
}

}  // namespace
}  // namespace oga
