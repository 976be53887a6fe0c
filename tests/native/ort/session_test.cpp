#include "ort/session.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"
#include "support/test_data.h"

namespace oga::ort {
namespace {

namespace fs = std::filesystem;

std::string AddOne() { return test::DataPath("models/operators/add_one.onnx"); }

Tensor Floats(const Session& session, std::vector<float>& values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return Tensor(session, AddressOf(values.data()), values.size() * sizeof(float), dims, ElementType::kFloat);
}

using Sessions = test::WithRuntime;

TEST_F(Sessions, ReportNamesTypesAndDimensions) {
  const Session session(test::DataPath("models/packed_float16/model.onnx"), operators::CpuSessionOptions({}));
  const auto text = [](const TensorInfo& tensor) {
    return Message(tensor.name, ' ', ElementTypeName(tensor.type), ' ', ShapeText(tensor.dims));
  };
  ASSERT_EQ(session.inputs().size(), 11u);
  EXPECT_EQ(text(session.inputs()[0]), "input_ids int64 [num_tokens]");
  EXPECT_EQ(text(session.inputs()[4]), "attention_metadata int32 [3]");
  EXPECT_EQ(text(session.inputs()[7]), "past_key_values.0.key float16 [num_blocks, block_size, 2, 8]");
  ASSERT_EQ(session.outputs().size(), 5u);
  EXPECT_EQ(text(session.outputs()[0]), "present.0.key float16 [num_blocks, block_size, 2, 8]");
  EXPECT_EQ(text(session.outputs()[4]), "logits float [num_logits, 61]");
}

TEST_F(Sessions, RunOverTheCallersMemory) {
  const Session session(AddOne(), operators::CpuSessionOptions({}));
  IoBinding binding(session);
  std::vector<float> x = {1, 2, 3};
  std::vector<float> y(3, -1);
  binding.BindInput("x", Floats(session, x));
  binding.BindOutput("y", Floats(session, y));
  session.Run(binding);
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4}));

  x[0] = 10;
  session.Run(binding, ArenaAfterRun::kShrink);
  EXPECT_EQ(y, (std::vector<float>{11, 3, 4}));

  std::vector<float> longer = {5, 6, 7, 8};
  std::vector<float> wider(4);
  binding.BindInput("x", Floats(session, longer));
  binding.BindOutput("y", Floats(session, wider));
  session.Run(binding);
  EXPECT_EQ(wider, (std::vector<float>{6, 7, 8, 9}));
}

TEST_F(Sessions, RunFromSeveralThreadsAtOnce) {
  const Session session(AddOne(), operators::CpuSessionOptions({.intra_op_threads = 2}));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      IoBinding binding(session);
      std::vector<float> x(100, static_cast<float>(t));
      std::vector<float> y(100);
      binding.BindInput("x", Floats(session, x));
      binding.BindOutput("y", Floats(session, y));
      for (int i = 0; i < 50; ++i) {
        session.Run(binding);
        wrong[t] += y != std::vector<float>(100, static_cast<float>(t + 1));
        std::fill(y.begin(), y.end(), -1.0f);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(Sessions, NameTheInputThatDoesNotFit) {
  const Session session(AddOne(), operators::CpuSessionOptions({}));
  IoBinding binding(session);
  std::vector<float> x(4);
  const int64_t matrix[] = {2, 2};
  binding.BindInput("x", Tensor(session, AddressOf(x.data()), sizeof(float) * x.size(), matrix, ElementType::kFloat));
  binding.BindOutput("y", Floats(session, x));
  try {
    session.Run(binding);
    FAIL() << "a matrix was accepted for a vector";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(error.message().find("rank for input: x"), std::string::npos) << error.message();
  }
  try {
    binding.BindInput("no_such_input", Floats(session, x));
    FAIL() << "an unknown name was accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("no_such_input"), std::string::npos) << error.message();
  }
}

// Folders that a careless string conversion would lose: Linux paths are bytes.
TEST_F(Sessions, LoadFromAnyPathTogetherWithExternalWeights) {
  const fs::path root = fs::path(testing::TempDir()) / "oga_paths";
  for (const char* name :
       {"a b", "mod\xC3\xA8le", "\xE6\xA8\xA1\xE5\x9E\x8B", "\xF0\x9F\x99\x82", "#%&';$()", "latin\xE9", "\xFF\xFE"}) {
    fs::remove_all(root);
    const fs::path folder = root / name;
    fs::create_directories(folder);
    for (const char* file : {"model.onnx", "model.onnx.data"}) {
      fs::copy_file(test::DataPath("models/external/") + file, folder / file);
    }
    EXPECT_NO_THROW(Session((folder / "model.onnx").string(), operators::CpuSessionOptions({}))) << name;
  }
  fs::remove_all(root);
}

TEST_F(Sessions, SayWhichFileCannotBeLoaded) {
  const std::string missing = test::DataPath("models/no_such_model.onnx");
  try {
    Session(missing, operators::CpuSessionOptions({}));
    FAIL() << "a missing file was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kNotFound);
    EXPECT_NE(error.message().find(missing), std::string::npos) << error.message();
  }
  const fs::path text = fs::path(testing::TempDir()) / "oga_text.onnx";
  std::ofstream(text) << "this is not a graph";
  try {
    Session(text, operators::CpuSessionOptions({}));
    FAIL() << "a text file was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kModelError);
    EXPECT_NE(error.message().find(text.string()), std::string::npos) << error.message();
  }
  fs::remove(text);
}

}  // namespace
}  // namespace oga::ort
