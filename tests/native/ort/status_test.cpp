#include "ort/status.h"

#include <gtest/gtest.h>

#include <new>

#include "ort/abi.h"
#include "ort/library.h"
#include "support/test_data.h"

namespace oga::ort {
namespace {

constexpr int kFail = static_cast<int>(abi::ErrorCode::kFail);

TEST(DecodeError, KeepsCodeAndSentenceOfOurOwnErrorInsideTheRuntimesText) {
  const Error thrown(StatusCode::kUnsupported, "node /attn: attribute softcap is 50");
  const std::string wrapped = "Non-zero status code returned. Status Message: " + EncodeError(thrown) + " (tail)";
  const Error seen = DecodeError(kFail, wrapped, "cannot load m.onnx");
  EXPECT_EQ(seen.code(), StatusCode::kUnsupported);
  EXPECT_EQ(seen.message(), "node /attn: attribute softcap is 50");
}

TEST(DecodeError, KeepsTheFieldOfOurOwnErrorWhateverItHolds) {
  for (const char* field : {"", "OGA_CPU_MATMUL", "model.decoder", "/m/a file {/oga} , } {oga:1,2}", "é"}) {
    const Error thrown(StatusCode::kInvalidArgument, Field{field}, "what was wrong");
    const Error seen =
        DecodeError(kFail, "Node 3: " + EncodeError(thrown) + " at 5", "cannot load m.onnx", Field{"m.onnx"});
    EXPECT_EQ(seen.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(seen.field(), field);
    EXPECT_EQ(seen.message(), "what was wrong");
  }
}

TEST(DecodeError, OfTheRuntimesOwnIsAboutWhatTheCallWasAbout) {
  EXPECT_EQ(DecodeError(kFail, "Protobuf parsing failed.", "cannot load m.onnx", Field{"m.onnx"}).field(), "m.onnx");
  EXPECT_EQ(DecodeError(kFail, "Got invalid dimensions", "run").field(), "");
}

TEST(DecodeError, TreatsABrokenMarkAsPlainText) {
  for (const char* text :
       {"{oga:4,0} no end", "{oga:x,0} sentence{/oga}", "{oga:} sentence{/oga}", "{oga:4} sentence{/oga}",
        "{oga:4,99}field sentence{/oga}", "{oga:4,2}field sentence{/oga}", "{oga:4,-1} x{/oga}", "{oga:4", "{/oga}"}) {
    const Error seen = DecodeError(kFail, text, "cannot load m.onnx");
    EXPECT_EQ(seen.code(), StatusCode::kModelError) << text;
    EXPECT_EQ(seen.message(), std::string("cannot load m.onnx: onnxruntime says: ") + text);
  }
}

TEST(DecodeError, IsOneLineOfText) {
  EXPECT_EQ(DecodeError(kFail, "first\nsecond \xFF\n", "run").message(), "run: onnxruntime says: first second \\xff");
}

TEST(DecodeError, TellsMemoryThatRanOutFromOtherFailures) {
  for (const char* text : {"std::bad_alloc", "Failed to allocate memory for requested buffer of size 9",
                           "bfc_arena.cc BFCArena::AllocateRawInternal failed"}) {
    EXPECT_EQ(DecodeError(kFail, text, "run").code(), StatusCode::kResourceExhausted) << text;
  }
  EXPECT_EQ(DecodeError(kFail, "Got invalid dimensions", "run").code(), StatusCode::kModelError);
}

TEST(DecodeError, MapsTheRuntimesCodes) {
  const auto code = [](abi::ErrorCode runtime) { return DecodeError(static_cast<int>(runtime), "x", "y").code(); };
  EXPECT_EQ(code(abi::ErrorCode::kNoSuchFile), StatusCode::kNotFound);
  EXPECT_EQ(code(abi::ErrorCode::kInvalidArgument), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(abi::ErrorCode::kNotImplemented), StatusCode::kUnsupported);
  EXPECT_EQ(code(abi::ErrorCode::kInvalidProtobuf), StatusCode::kModelError);
  EXPECT_EQ(code(abi::ErrorCode::kInvalidGraph), StatusCode::kModelError);
  EXPECT_EQ(code(static_cast<abi::ErrorCode>(99)), StatusCode::kModelError);
}

using Statuses = test::WithRuntime;

template <typename Body>
Error ThroughTheRuntime(Body body) {
  try {
    Check(Guarded(body), "running");
  } catch (const Error& error) {
    return error;
  }
  return Error(StatusCode::kOk, "");
}

TEST_F(Statuses, CarryWhatACallbackThrows) {
  const Error ours = ThroughTheRuntime([] { Throw(StatusCode::kInvalidArgument, Field{"block"}, "block 9 of 4"); });
  EXPECT_EQ(ours.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ours.field(), "block");
  EXPECT_EQ(ours.message(), "block 9 of 4");
  EXPECT_EQ(ThroughTheRuntime([] { throw std::bad_alloc(); }).code(), StatusCode::kResourceExhausted);
  const Error standard = ThroughTheRuntime([] { throw std::runtime_error("odd"); });
  EXPECT_EQ(standard.code(), StatusCode::kInternal);
  EXPECT_EQ(standard.message(), "odd");
  EXPECT_EQ(ThroughTheRuntime([] { throw 1; }).code(), StatusCode::kInternal);
  EXPECT_EQ(ThroughTheRuntime([] {}).code(), StatusCode::kOk);
}

TEST_F(Statuses, AnswerQuestionsWithoutThrowing) {
  EXPECT_TRUE(Succeeded(nullptr));
  EXPECT_FALSE(Succeeded(Api().CreateStatus(abi::ErrorCode::kFail, "no such attribute")));
}

}  // namespace
}  // namespace oga::ort
