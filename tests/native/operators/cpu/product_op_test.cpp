#include "operators/cpu/product_op.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "native/operators/cpu/probe_operator.h"
#include "ort/io_binding.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

// Its bias is missing, its weights are not transposed.
constexpr const char* kGraph = "models/matmul/own_fp16.onnx";

class ProductOps : public test::WithRuntime {
 protected:
  static StatusCode LoadingFails(Probe* probe) {
    try {
      LoadWithProbe(test::DataPath(kGraph), probe);
    } catch (const Error& error) {
      return error.code();
    }
    return StatusCode::kOk;
  }
};

TEST_F(ProductOps, CarryTheErrorsOfAKernelThroughTheRuntime) {
  Probe probe;
  probe.on_load = [](const NodeInfo&) { Throw(StatusCode::kUnsupported, "not built"); };
  EXPECT_EQ(LoadingFails(&probe), StatusCode::kUnsupported);
  EXPECT_EQ(probe.kernels, 0);

  probe.on_load = [](const NodeInfo&) {};
  probe.on_run = [](const KernelContext&) { Throw(StatusCode::kInvalidArgument, "does not fit"); };
  const auto session = LoadWithProbe(test::DataPath(kGraph), &probe);
  std::vector<float> x(160), y(72);
  const int64_t x_dims[] = {1, 160}, y_dims[] = {1, 72};
  ort::IoBinding binding(*session);
  binding.BindInput("x", ort::Tensor(*session, AddressOf(x.data()), x.size() * 4, x_dims, ort::ElementType::kFloat));
  binding.BindOutput("y", ort::Tensor(*session, AddressOf(y.data()), y.size() * 4, y_dims, ort::ElementType::kFloat));
  try {
    session->Run(binding);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(ProductOps, HaveKernelsForAsLongAsTheirSession) {
  Probe probe;
  auto session = LoadWithProbe(test::DataPath(kGraph), &probe);
  EXPECT_EQ(probe.kernels, 1);
  session.reset();
  EXPECT_EQ(probe.kernels, 0);
}

TEST_F(ProductOps, InferFromInputsAndAttributesThatTheNodeHas) {
  int calls = 0;
  Probe probe;
  probe.on_inference = [&](ort::abi::ShapeInferContext* context) {
    ++calls;
    const auto x = InferredInput(context, 0), weights = InferredInput(context, 1);
    ASSERT_TRUE(x && weights);
    EXPECT_EQ(ort::ShapeText(x->dims), "[rows, 160]");
    EXPECT_EQ(ort::ShapeText(weights->dims), "[160, 72]");
    EXPECT_EQ(weights->type, ort::ElementType::kFloat16);
    EXPECT_FALSE(InferredInput(context, 2)) << "the node has no bias";
    EXPECT_EQ(InferredInt(context, "transA"), 0) << "not set";
  };
  LoadWithProbe(test::DataPath(kGraph), &probe);
  EXPECT_GE(calls, 1);

  probe.on_inference = [](ort::abi::ShapeInferContext* context) { EXPECT_EQ(InferredInt(context, "transB"), 1); };
  LoadWithProbe(test::DataPath("models/matmul/own_bf16.onnx"), &probe);
}

// The graph says [rows, 72], which the runtime merges with it.
TEST_F(ProductOps, TellTheRuntimeWhatTheyPromise) {
  Probe probe;
  probe.on_inference = [](ort::abi::ShapeInferContext* context) {
    PromiseOutput(context, {.name = "", .type = ort::ElementType::kFloat, .dims = {{5, ""}, {72, ""}}});
  };
  EXPECT_EQ(ort::ShapeText(LoadWithProbe(test::DataPath(kGraph), &probe)->outputs()[0].dims), "[5, 72]");
}

TEST(LeaseAccount, ChargesItsLeaseOrNobody) {
  Lease lease = Ledger::Cpu().Open(MemoryRole::kWorkspace, BeyondMemory::kRefuse);
  LeaseAccount account(&lease);
  account.Charge(1000);
  account.Charge(24);
  EXPECT_EQ(lease.bytes(), 1024u);
  account.Refund(1000);
  EXPECT_EQ(lease.bytes(), 24u);
  LeaseAccount nobody(nullptr);
  nobody.Charge(size_t{1} << 60);
  nobody.Refund(size_t{1} << 60);
}

// Memory that is no file's stays, and is still charged.
TEST(DropPacked, RefundsWhatLeft) {
  constexpr size_t kBytes = size_t{1} << 20;
  const std::vector<char> own(kBytes, 1);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(own.data(), 1, kBytes, file), kBytes);
  ASSERT_EQ(std::fflush(file), 0);
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
  std::fclose(file);
  ASSERT_NE(mapped, MAP_FAILED);

  Lease lease = Ledger::Cpu().Open(MemoryRole::kWeights, BeyondMemory::kRefuse);
  ProductMemory memory(&lease, nullptr);
  memory.weights_account.Charge(3 * kBytes);
  DropPacked(&memory, own.data(), own.size());
  EXPECT_EQ(lease.bytes(), 3 * kBytes);
  DropPacked(&memory, mapped, kBytes);
  EXPECT_EQ(lease.bytes(), 2 * kBytes);
  EXPECT_EQ(std::memcmp(mapped, own.data(), kBytes), 0);
  munmap(mapped, kBytes);
}

}  // namespace
}  // namespace oga::operators
