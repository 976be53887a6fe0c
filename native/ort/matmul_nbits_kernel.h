// One MatMulNBits node of a loaded graph: its attributes and inputs checked and its weights packed at load, and its
// computation.
//
// Owned by the session. Compute is const and runs on any number of threads at once, one per execution.
#pragma once

#include <memory>
#include <string>

#include "kernels/packed_weights.h"
#include "ort/kernel_context.h"
#include "ort/node_info.h"
#include "ort/product_op.h"

namespace oga::ort {

class MatMulNBitsKernel {
 public:
  // `memory` outlives this. Throws Error: kUnsupported for a feature of the operator that is not built,
  // naming the node, the attribute or input, what was found and what is supported; kModelError for a node that
  // contradicts itself.
  MatMulNBitsKernel(const abi::KernelInfo* info, ProductMemory* memory);

  // Throws Error{kInvalidArgument} for inputs that do not fit the attributes.
  void Compute(abi::KernelContext* context) const;

 private:
  // What the operator's inputs `from` holds them by index say of the weights; absent ones are null.
  kernels::NBitsSource ReadWeights(const KernelTensor* const* inputs) const;
  const float* ReadBias(const KernelContext& context) const;
  void PackConstants(const NodeInfo& info);

  std::string node_;  // "MatMulNBits node /layers.3/mlp/up"
  kernels::NBitsSource attributes_;
  bool has_zero_points_ = false;
  bool has_bias_ = false;
  std::unique_ptr<const kernels::PackedWeights> weights_;  // null when a graph computes its weights
  ProductMemory* const memory_;
};

}  // namespace oga::ort
