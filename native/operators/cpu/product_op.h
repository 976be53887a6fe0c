// What the operators that multiply by packed weights have in common: how they are declared to the runtime, and what the
// kernels of one session share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "kernels/parallel_for.h"
#include "kernels/product/weight_arena.h"
#include "kernels/scratch_pool.h"
#include "memory/ledger.h"
#include "ort/abi.h"
#include "ort/shape.h"
#include "ort/status.h"

namespace oga::operators {

// Charges a lease; nobody when that is null.
class LeaseAccount final : public kernels::MemoryAccount {
 public:
  explicit LeaseAccount(Lease* lease) : lease_(lease) {}
  void Charge(size_t bytes) override {
    if (lease_ != nullptr) lease_->Grow(bytes);
  }
  void Refund(size_t bytes) noexcept override {
    if (lease_ != nullptr) lease_->Shrink(bytes);
  }

 private:
  Lease* const lease_;
};

// Owned by the session's operators, which outlive its kernels. The leases outlive this.
struct ProductMemory {
  ProductMemory(Lease* weights, Lease* workspace) : weights_account(weights), workspace_account(workspace) {}

  kernels::ParallelFor on_load_threads;  // for packing
  LeaseAccount weights_account;          // of the model file's weights and of packed ones in their place
  LeaseAccount workspace_account;
  std::set<const void*> dropped;                   // constants whose bytes were refunded: nodes may share one
  kernels::WeightArena weights{&weights_account};  // filled while the session loads, by one kernel after another
  kernels::ScratchPool scratch{&workspace_account};
};

// Gives back the memory of a constant that was packed: the pages of the model's file that hold it.
void DropPacked(ProductMemory* memory, const void* data, size_t bytes) noexcept;

// An operator of one output for CPU sessions, before its name, inputs and kernel are set. The runtime hands it to its
// callbacks as the CustomOp it is.
struct ProductOp : ort::abi::CustomOp {
  explicit ProductOp(ProductMemory* memory) noexcept;

  ProductMemory* const memory;
};

// The callbacks for a kernel that `Make(op, info)` makes.
template <typename Kernel, auto Make>
void SetKernel(ProductOp* op) noexcept {
  op->CreateKernelV2 = [](const ort::abi::CustomOp* self, const void* const*, const ort::abi::KernelInfo* info,
                          void** kernel) noexcept -> ort::abi::Status* {
    return ort::Guarded([&] { *kernel = std::unique_ptr<Kernel>(Make(self, info)).release(); });
  };
  op->KernelComputeV2 = [](void* kernel, ort::abi::KernelContext* context) noexcept -> ort::abi::Status* {
    return ort::Guarded([&] { static_cast<const Kernel*>(kernel)->Compute(context); });
  };
  op->KernelDestroy = [](void* kernel) noexcept { delete static_cast<Kernel*>(kernel); };
}

// For shape inference. An input is empty when the node lacks it or nothing is known of its shape.
std::optional<ort::TensorInfo> InferredInput(ort::abi::ShapeInferContext* context, size_t input);
int64_t InferredInt(ort::abi::ShapeInferContext* context, const char* attribute);  // 0 when the node does not set it
void PromiseOutput(ort::abi::ShapeInferContext* context, const ort::TensorInfo& output);

}  // namespace oga::operators
