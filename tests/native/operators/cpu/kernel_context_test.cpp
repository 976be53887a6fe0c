#include "operators/cpu/kernel_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "native/operators/cpu/probe_operator.h"
#include "ort/io_binding.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

TEST(KernelTensor, KnowsItsShape) {
  KernelTensor tensor;
  EXPECT_TRUE(tensor.HasShape({}));
  EXPECT_EQ(tensor.ShapeText(), "[]");
  EXPECT_EQ(tensor.Elements(), 1);
  tensor.rank = 3;
  std::iota(tensor.dims, tensor.dims + 3, 2);
  EXPECT_TRUE(tensor.HasShape({2, 3, 4}));
  EXPECT_FALSE(tensor.HasShape({2, 3}));
  EXPECT_FALSE(tensor.HasShape({2, 3, 5}));
  EXPECT_FALSE(tensor.HasShape({2, 3, 4, 0}));
  EXPECT_EQ(tensor.ShapeText(), "[2, 3, 4]");
  EXPECT_EQ(tensor.Elements(), 24);
}

TEST(KernelTensor, OfMoreDimensionsThanItHoldsTellsTheirNumberOnly) {
  KernelTensor tensor;
  tensor.rank = 9;
  EXPECT_EQ(tensor.ShapeText(), "rank 9");
  EXPECT_EQ(tensor.Elements(), -1);
}

// A product of x by [72, 160] weights of 16 bits, with a bias of floats.
class Executions : public test::WithRuntime {
 protected:
  void Run(const std::function<void(const KernelContext&)>& body) {
    int calls = 0;
    Probe probe;
    probe.on_run = [&](const KernelContext& context) {
      ++calls;
      body(context);
    };
    const auto session = LoadWithProbe(test::DataPath("models/matmul/own_bf16.onnx"), &probe);
    ort::IoBinding binding(*session);
    const auto describe = [&](std::vector<float>& values, std::vector<int64_t> dims) {
      return ort::Tensor(*session, AddressOf(values.data()), values.size() * 4, dims, ort::ElementType::kFloat);
    };
    binding.BindInput("x", describe(x_, {3, 160}));
    binding.BindOutput("y", describe(y_, {3, 72}));
    session->Run(binding);
    EXPECT_EQ(calls, 1);
  }

  std::vector<float> x_ = std::vector<float>(3 * 160, 1.0f);
  std::vector<float> y_ = std::vector<float>(3 * 72, 0.0f);
};

TEST_F(Executions, ReadTheirInputsWhereTheyAre) {
  Run([this](const KernelContext& context) {
    const KernelTensor x = context.Input(0), weights = context.Input(1), bias = context.Input(2);
    EXPECT_EQ(x.data, x_.data());
    EXPECT_EQ(x.type, ort::ElementType::kFloat);
    EXPECT_TRUE(x.HasShape({3, 160})) << x.ShapeText();
    EXPECT_EQ(weights.type, ort::ElementType::kBfloat16);
    EXPECT_TRUE(weights.HasShape({72, 160})) << weights.ShapeText();
    EXPECT_TRUE(bias.HasShape({72})) << bias.ShapeText();
  });
}

TEST_F(Executions, WriteTheOutputsThatTheNodeHas) {
  Run([this](const KernelContext& context) {
    const int64_t dims[] = {3, 72};
    EXPECT_EQ(context.Output(0, dims), y_.data());
    EXPECT_EQ(context.Output(1, dims), nullptr);
  });
}

TEST_F(Executions, DoEveryItemOnce) {
  Run([](const KernelContext& context) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}}) {
      std::vector<std::atomic<int>> runs(count);
      context.ParallelFor(count, [&](size_t i) { ++runs[i]; });
      for (const auto& run : runs) ASSERT_EQ(run, 1) << "of " << count;
    }
  });
}

TEST_F(Executions, ReportAnItemThatThrew) {
  Run([](const KernelContext& context) {
    try {
      context.ParallelFor(10, [](size_t i) {
        if (i == 7) throw 1;
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInternal);
    }
  });
}

}  // namespace
}  // namespace oga::operators
