// Where tests find the ONNX Runtime and the models that were built for them. What is missing fails the test that asks
// for it, with what to do.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace oga::test {

inline std::string RequireEnvironment(const char* name, const char* fallback, const char* what) {
  for (const char* variable : {name, fallback}) {
    const char* const value = variable == nullptr ? nullptr : std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  throw std::runtime_error(std::string(name) + " is not set; it names " + what +
                           ". `make test` sets it; for one binary run it through ctest, or set it by hand.");
}

// The runtime that the tests load.
inline std::string RuntimePath() {
  return RequireEnvironment("OGA_TEST_ORT_LIBRARY", "OGA_ORT_LIBRARY", "the libonnxruntime.so that the tests load");
}

// The folder that the build filled with models and helper libraries.
inline std::string DataPath(const std::string& relative) {
  return RequireEnvironment("OGA_TEST_DATA_DIR", nullptr, "the folder with the test models") + "/" + relative;
}

// The folder with a tokenizer of that kind, one of those in tests/models/text_kinds.py.
inline std::string TextFolder(const std::string& kind) { return DataPath("texts/" + kind); }

// The name of the device on which models run that ask for none: support/device_rows.cpp decides by the same variable.
inline std::string DefaultDevice() {
  const char* const wanted = std::getenv("OGA_TEST_DEVICE");
  return wanted != nullptr && std::string(wanted) == "remote" ? "REMOTE" : "CPU";
}

// Base of every test that uses the runtime: the library under test finds it as a host's would, by OGA_ORT_LIBRARY.
class WithRuntime : public ::testing::Test {
 protected:
  void SetUp() override { setenv("OGA_ORT_LIBRARY", RuntimePath().c_str(), 1); }
};

}  // namespace oga::test
