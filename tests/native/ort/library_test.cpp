#include "ort/library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "ort/abi.h"
#include "support/test_data.h"

namespace oga::ort {
namespace {

namespace fs = std::filesystem;

// The error that opening `path` throws; every one of them must say what to do.
Error OpenError(const std::string& path) {
  try {
    OpenLibrary(path, "from the test");
  } catch (const Error& error) {
    for (const char* part :
         {path.c_str(), "from the test", "1.23 or newer", "pip install 'oga[cpu]'", "OGA_ORT_LIBRARY"}) {
      EXPECT_NE(error.message().find(part), std::string::npos) << part << " is not in: " << error.message();
    }
    return error;
  }
  ADD_FAILURE() << path << " was accepted";
  return Error(StatusCode::kOk, "");
}

TEST(OpenLibrary, OpensTheInstalledRuntime) {
  const Library library = OpenLibrary(test::RuntimePath(), "from the test");
  EXPECT_NE(library.api, nullptr);
  EXPECT_TRUE(library.IsAtLeast(1, 23)) << library.version;
  EXPECT_EQ(library.path, fs::canonical(test::RuntimePath()));
}

TEST(OpenLibrary, RefusesAFileThatDoesNotExist) {
  EXPECT_EQ(OpenError("/does/not/exist/libonnxruntime.so").code(), StatusCode::kNotFound);
}

TEST(OpenLibrary, RefusesWhatIsNoSharedLibrary) {
  const fs::path text = fs::path(testing::TempDir()) / "libonnxruntime_text.so";
  std::ofstream(text) << "not a library\n";
  EXPECT_EQ(OpenError(text).code(), StatusCode::kIoError);
  std::ofstream(text, std::ios::trunc).close();
  EXPECT_EQ(OpenError(text).code(), StatusCode::kIoError);
  fs::remove(text);
  EXPECT_EQ(OpenError(testing::TempDir()).code(), StatusCode::kIoError);
}

TEST(OpenLibrary, RefusesAnotherLibrary) {
  const Error error = OpenError("libm.so.6");
  EXPECT_EQ(error.code(), StatusCode::kIoError);
  EXPECT_NE(error.message().find("OrtGetApiBase"), std::string::npos);
}

TEST(OpenLibrary, RefusesAnOldRuntimeNamingBothVersions) {
  const Error error = OpenError(test::DataPath("libfake_runtime_old.so"));
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_NE(error.message().find("1.19.2"), std::string::npos) << error.message();
}

TEST(OpenLibrary, RefusesARuntimeOfUnknownVersion) {
  const Error error = OpenError(test::DataPath("libfake_runtime_no_version.so"));
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_NE(error.message().find("unknown"), std::string::npos) << error.message();
}

TEST(OpenLibrary, RefusesARuntimeWithoutTheApi) {
  const Error error = OpenError(test::DataPath("libfake_runtime_no_api.so"));
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_NE(error.message().find("API version 18"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("1.99.0"), std::string::npos) << error.message();
}

TEST(Library, ComparesVersionsAsNumbers) {
  const auto at_least = [](const char* version) { return Library{nullptr, version, "", ""}.IsAtLeast(1, 23); };
  EXPECT_TRUE(at_least("1.23.0"));
  EXPECT_TRUE(at_least("1.100"));
  EXPECT_TRUE(at_least("2.0.0"));
  EXPECT_TRUE(at_least("1.24.0-dev+abc"));
  EXPECT_FALSE(at_least("1.22.9"));
  EXPECT_FALSE(at_least("1.3.0"));
  EXPECT_FALSE(at_least("0.99.0"));
  EXPECT_FALSE(at_least("1"));
  EXPECT_FALSE(at_least("1."));
  EXPECT_FALSE(at_least(""));
}

TEST(FindLibrary, PrefersTheEnvironmentOverThePathOfTheApi) {
  const Library library = FindLibrary({test::RuntimePath(), "/does/not/exist.so"});
  EXPECT_EQ(library.path, fs::canonical(test::RuntimePath()));
  EXPECT_EQ(FindLibrary({"", test::RuntimePath()}).path, library.path);
}

TEST(FindLibrary, DoesNotFallBackFromAPathThatWasGiven) {
  try {
    FindLibrary({"/does/not/exist.so", test::RuntimePath()});
    FAIL() << "the mistake in OGA_ORT_LIBRARY was hidden";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("from OGA_ORT_LIBRARY"), std::string::npos) << error.message();
  }
  try {
    FindLibrary({"", "/does/not/exist.so"});
    FAIL() << "the mistake in the given path was hidden";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("from OgaSetOrtLibrary"), std::string::npos) << error.message();
  }
}

TEST(FindLibrary, TakesTheRuntimeThatTheProcessAlreadyLoaded) {
  const Library loaded = OpenLibrary(test::RuntimePath(), "from the test");
  EXPECT_EQ(FindLibrary({}).path, loaded.path);
}

// A process of its own, in which no runtime is loaded and the system loader has none.
TEST(FindLibraryDeathTest, ListsEveryCandidateWhenThereIsNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        try {
          FindLibrary({});
          std::fprintf(stderr, "found one\n");
        } catch (const Error& error) {
          std::fprintf(stderr, "%d %s\n", static_cast<int>(error.code()), error.what());
        }
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "3 no usable ONNX Runtime was found: oga needs 1.23 or newer.*libonnxruntime.so.1 .already loaded in the "
      "process.: not loaded.*libonnxruntime.so .system loader.: libonnxruntime.so: cannot open");
}

using LoadedRuntime = test::WithRuntime;

TEST_F(LoadedRuntime, ReportsVersionAndPath) {
  const std::string path = fs::canonical(test::RuntimePath());
  const std::string text = VersionString();
  EXPECT_EQ(text, LoadedLibrary().version + " (" + path + ")");
  EXPECT_EQ(text.rfind("1.", 0), 0u) << text;
}

TEST_F(LoadedRuntime, CannotBeExchanged) {
  LoadedLibrary();
  EXPECT_NO_THROW(SetLibraryPath(test::RuntimePath()));
  EXPECT_NO_THROW(SetLibraryPath(""));
  try {
    SetLibraryPath("/elsewhere/libonnxruntime.so");
    FAIL() << "a second runtime was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidState);
    EXPECT_NE(error.message().find("/elsewhere/libonnxruntime.so"), std::string::npos);
    EXPECT_NE(error.message().find(LoadedLibrary().path), std::string::npos);
  }
}

}  // namespace
}  // namespace oga::ort
