// Chat templates through a library that stands in for onnxruntime-extensions. tests/python has the real one.
#include "text/extensions.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "support/test_data.h"

namespace oga {
namespace {

const ChatRendering kRendering{.chat_template = "template", .messages = "messages", .settings = "settings"};

Error ErrorOfRendering(const ChatRendering& rendering = kRendering) {
  try {
    RenderChat(rendering);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(StatusCode::kOk, "");
}

void ExpectUnusable(const std::string& path, const std::string& part) {
  SetExtensionsPath(path);
  const Error error = ErrorOfRendering();
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  for (const std::string& wanted : {part, std::string("pip install onnxruntime-extensions"),
                                    std::string("OGA_ORTX_LIBRARY"), std::string("oga.ChatTemplate")}) {
    EXPECT_NE(error.message().find(wanted), std::string::npos) << wanted << " is not in: " << error.message();
  }
}

// One library is used for the life of a process, so this is one test: every way of having none, then one.
TEST(Extensions, AreFoundWhenTheyAreNeededAndNamedWhenTheyAreUnusable) {
  unsetenv("OGA_ORTX_LIBRARY");
  ExpectUnusable("", "which is not known here");
  ExpectUnusable("/does/not/exist.so", "/does/not/exist.so cannot be loaded");
  ExpectUnusable(test::DataPath("_fake.cpython-399-x86_64-linux-gnu.so"), "libpython3.99.so.1.0");
  ExpectUnusable("libm.so.6", "it has no function OrtxGetAPIVersion");
  ExpectUnusable(test::DataPath("libfake_extensions_new.so"), "has API version 2; oga knows version 1");
  ExpectUnusable(test::DataPath("libfake_extensions_bare.so"), "it has no function OrtxApplyChatTemplate");

  setenv("OGA_ORTX_LIBRARY", test::DataPath("libfake_extensions.so").c_str(), 1);
  SetExtensionsPath("/does/not/exist.so");
  EXPECT_EQ(RenderChat(kRendering), "settings|template|messages|no tools|1|0|1");
  EXPECT_EQ(RenderChat({.chat_template = "t", .messages = "m", .settings = "s", .add_generation_prompt = false}),
            "s|t|m|no tools|0|0|1")
      << "every object of the first rendering is given back";

  const Error refusal = ErrorOfRendering({.chat_template = "refuse", .messages = "m", .settings = "s"});
  EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal.message(), "the chat template refused the conversation: roles must alternate");
  EXPECT_EQ(RenderChat({.chat_template = "t", .messages = "m", .settings = "s"}), "s|t|m|no tools|1|0|1");

  EXPECT_THROW(SetExtensionsPath("/another.so"), Error);
  SetExtensionsPath("");
  unsetenv("OGA_ORTX_LIBRARY");
  EXPECT_EQ(RenderChat(kRendering), "settings|template|messages|no tools|1|0|1");
}

}  // namespace
}  // namespace oga
