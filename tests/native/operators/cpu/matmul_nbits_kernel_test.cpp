#include "operators/cpu/matmul_nbits_kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "base/error.h"
#include "native/operators/cpu/product_case.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"
#include "ort/library.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

constexpr int64_t kRows = ProductCase::kRows;

std::string Path(const std::string& name) { return "models/matmul_nbits/" + name; }

std::unique_ptr<const ort::Session> Load(const ProductCase& product, int threads = 2) {
  return std::make_unique<const ort::Session>(product.path(), CpuSessionOptions({.intra_op_threads = threads}));
}

class MatMulNBitsNodes : public test::WithRuntime {
 protected:
  void TearDown() override { unsetenv("OGA_CPU_MATMUL"); }
};

class MatMulNBitsForms : public MatMulNBitsNodes, public testing::WithParamInterface<const char*> {};

TEST_P(MatMulNBitsForms, AreTheProductAndNoWorseThanTheRuntimesAtAccuracyLevel4) {
  const ProductCase product(Path(GetParam()));
  const double ours = product.ErrorOf(product.Run(*Load(product), 0, kRows));
  EXPECT_LT(ours, 3e-3);
  // These the runtime computes with floats, whatever the accuracy level.
  if (GetParam() == std::string("float_zeros") || GetParam() == std::string("computed")) return;
  setenv("OGA_CPU_MATMUL", "runtime", 1);
  const std::vector<float> runtime = product.Run(*Load(product), 0, kRows);
  EXPECT_LE(ours, product.ErrorOf(runtime));
}

TEST_P(MatMulNBitsForms, GiveARowTheSameBitsInAnyCompanyAndOnAnyThreads) {
  const ProductCase product(Path(GetParam()));
  const std::vector<float> together = product.Run(*Load(product), 0, kRows);
  for (const int threads : {1, 3, 4}) {
    const auto session = Load(product, threads);
    for (int64_t count = 1; count <= kRows; ++count) {
      const std::vector<float> some = product.Run(*session, kRows - count, count);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), together.end() - count * product.n())) << count << " rows";
    }
  }
}

class GatedForms : public MatMulNBitsNodes, public testing::WithParamInterface<const char*> {};

TEST_P(GatedForms, AreSiluOfOneProductTimesTheOtherInAnyCompany) {
  const ProductCase product(Path(GetParam()));
  const auto session = Load(product);
  const std::vector<float> together = product.Run(*session, 0, kRows);
  EXPECT_LT(product.ErrorOf(together), 6e-3) << "each product has half of it";
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<float> alone = product.Run(*session, row, 1);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * product.n())) << "row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, GatedForms, testing::Values("gated", "gated_eight_bits", "gated_computed"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Every, MatMulNBitsForms,
                         testing::Values("plain", "eight_bits", "everything", "float_zeros", "large_blocks", "computed",
                                         "outliers", "eight_bit_outliers"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(MatMulNBitsNodes, RunForSeveralThreadsAtOnce) {
  const ProductCase product(Path("plain"));
  const auto session = Load(product);
  const std::vector<float> wanted = product.Run(*session, 0, kRows);
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (auto& output : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) output = product.Run(*session, 0, kRows);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& output : found) EXPECT_EQ(output, wanted);
}

TEST_F(MatMulNBitsNodes, AcceptNoRows) {
  const ProductCase product(Path("plain"));
  EXPECT_TRUE(product.Run(*Load(product), 0, 0).empty());
}

TEST_F(MatMulNBitsNodes, RefuseActivationsOfAnotherWidth) {
  const auto session = Load(ProductCase(Path("computed")));
  std::vector<float> in(64, 1.0f), out(72);
  const int64_t in_dims[] = {1, 1, 64}, out_dims[] = {1, 1, 72};
  ort::IoBinding binding(*session);
  binding.BindInput("x", ort::Tensor(*session, AddressOf(in.data()), in.size() * 4, in_dims, ort::ElementType::kFloat));
  binding.BindOutput("y",
                     ort::Tensor(*session, AddressOf(out.data()), out.size() * 4, out_dims, ort::ElementType::kFloat));
  EXPECT_THROW(session->Run(binding), Error);
}

struct Refusal {
  const char* name;
  StatusCode code;
  const char* part;  // of the message, besides the node's name
  bool by_type = false;
};

class MatMulNBitsRefusals : public MatMulNBitsNodes, public testing::WithParamInterface<Refusal> {};

TEST_P(MatMulNBitsRefusals, NameTheNodeWhatWasFoundAndWhatIsSupported) {
  const auto& [name, code, part, by_type] = GetParam();
  if (by_type && !ort::LoadedLibrary().IsAtLeast(1, 24)) {
    // That release checks the types of an operator which cannot infer shapes itself, before it asks the kernel.
    EXPECT_THROW(ort::Session(test::DataPath(Path(std::string("refused/") + name + ".onnx")), CpuSessionOptions({})),
                 Error);
    return;
  }
  try {
    const ort::Session session(test::DataPath(Path(std::string("refused/") + name + ".onnx")), CpuSessionOptions({}));
    FAIL() << "the graph was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    const bool is_gated = std::string_view(name).starts_with("gated");
    EXPECT_EQ(error.message().rfind(is_gated ? "GatedMatMulNBits node /mlp: " : "MatMulNBits node /mlp: ", 0), 0u)
        << error.message();
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    const bool has_way_out = error.message().find("OGA_CPU_MATMUL=runtime") != std::string::npos;
    EXPECT_EQ(has_way_out, code == StatusCode::kUnsupported && !is_gated) << error.message();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, MatMulNBitsRefusals,
    testing::Values(Refusal{"group_index", StatusCode::kUnsupported, "input g_idx is given"},
                    Refusal{"float16", StatusCode::kUnsupported, "input A has element type float16", true},
                    Refusal{"float16_zeros", StatusCode::kUnsupported, "zero_points has element type float16"},
                    Refusal{"two_bits", StatusCode::kUnsupported, "attribute bits is 2"},
                    Refusal{"odd_block", StatusCode::kUnsupported, "attribute block_size is 48"},
                    Refusal{"prepacked", StatusCode::kUnsupported, "attribute weight_prepacked is 1"},
                    Refusal{"no_columns", StatusCode::kModelError, "attribute N is 0"},
                    Refusal{"few_codes", StatusCode::kModelError, "input B has shape [71, 5, 16]"},
                    Refusal{"few_zeros", StatusCode::kModelError, "input zero_points has shape [72, 2]"},
                    Refusal{"gated_few_codes", StatusCode::kModelError, "input up has shape [69, 5, 16]"},
                    Refusal{"gated_one_zero", StatusCode::kModelError, "gate_zero_points and up_zero_points must both"},
                    Refusal{"gated_two_bits", StatusCode::kUnsupported, "attribute bits is 2"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace oga::operators
