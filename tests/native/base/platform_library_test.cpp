#include "base/platform_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/test_data.h"

namespace oga::platform {
namespace {

TEST(PlatformLibrary, SaysWhyItCannotBeOpened) {
  std::string reason;
  EXPECT_EQ(OpenLibrary("/does/not/exist.so", LibraryScope::kLocal, &reason), nullptr);
  EXPECT_NE(reason.find("/does/not/exist.so"), std::string::npos) << reason;
  EXPECT_EQ(OpenLibrary("/does/not/exist.so", LibraryScope::kGlobal, nullptr), nullptr);
}

// In this order: a library stays, and so does its scope.
TEST(PlatformLibrary, IsSeenAsFarAsItsScope) {
  const std::string path = test::DataPath("libfake_leaf.so");
  std::string reason;
  EXPECT_EQ(OpenLibrary(path, LibraryScope::kLoadedOnly, &reason), nullptr);
  EXPECT_FALSE(reason.empty());
  EXPECT_EQ(FindMappedFile("libfake_leaf"), "") << "a question loaded it";

  void* const library = OpenLibrary(path, LibraryScope::kLocal, &reason);
  ASSERT_NE(library, nullptr) << reason;
  EXPECT_EQ(OpenLibrary(path, LibraryScope::kLoadedOnly, nullptr), library);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "oga_test_leaf"), nullptr) << "others see what is local";

  EXPECT_EQ(OpenLibrary(path, LibraryScope::kGlobal, nullptr), library);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "oga_test_leaf"), FindSymbol(library, "oga_test_leaf"));
}

TEST(PlatformLibrary, FindsItsSymbolsAndTheirFile) {
  const std::string path = test::DataPath("libfake_leaf.so");
  void* const library = OpenLibrary(path, LibraryScope::kLocal, nullptr);
  ASSERT_NE(library, nullptr);
  void* const symbol = FindSymbol(library, "oga_test_leaf");
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(reinterpret_cast<int (*)()>(symbol)(), 42);
  EXPECT_EQ(FindSymbol(library, "no_such_symbol_of_the_tests"), nullptr);

  EXPECT_TRUE(std::filesystem::equivalent(FileOfSymbol(symbol), path));
  int local = 0;
  EXPECT_EQ(FileOfSymbol(&local), "");
  EXPECT_TRUE(std::filesystem::equivalent(FindMappedFile("libfake_leaf"), path));
  EXPECT_EQ(FindMappedFile("fake_leaf"), "") << "names are compared from their beginning";
}

}  // namespace
}  // namespace oga::platform
