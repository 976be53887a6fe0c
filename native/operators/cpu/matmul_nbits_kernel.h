// One MatMulNBits or GatedMatMulNBits node of a loaded graph: its attributes and inputs checked and its weights packed
// at load, and its computation.
//
// Owned by the session. Compute is const and runs on any number of threads at once, one per execution.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "kernels/product/packed_weights.h"
#include "operators/cpu/kernel_context.h"
#include "operators/cpu/matmul_nbits_op.h"
#include "operators/cpu/node_info.h"
#include "operators/cpu/product_op.h"

namespace oga::operators {

class MatMulNBitsKernel {
 public:
  // `memory` outlives this. Throws Error: kUnsupported for a feature of the operator that is not built,
  // naming the node, the attribute or input, what was found and what is supported; kModelError for a node that
  // contradicts itself.
  MatMulNBitsKernel(NBitsForm form, const ort::abi::KernelInfo* info, ProductMemory* memory);

  // Throws Error{kInvalidArgument} for inputs that do not fit the attributes.
  void Compute(ort::abi::KernelContext* context) const;

 private:
  // The operator's inputs by index; absent ones are null.
  using Inputs = std::array<const KernelTensor*, 7>;

  void CheckTypes(const NodeInfo& info) const;
  void CheckType(const NodeInfo& info, size_t input, ort::ElementType wanted) const;
  void ReadAttributes(const NodeInfo& info);
  void PackConstants(const NodeInfo& info);
  kernels::PackedWeights Pack(const Inputs& inputs, kernels::WeightArena* arena,
                              const kernels::ParallelFor& parallel_for) const;
  // What the inputs hold of a matrix.
  kernels::NBitsSource ReadMatrix(const NBitsMatrixInputs& matrix, const Inputs& inputs) const;
  kernels::PackedWeights PackComputed(const KernelContext& context, kernels::WeightArena* arena,
                                      const kernels::ParallelFor& parallel_for) const;
  const float* ReadBias(const KernelContext& context) const;
  template <typename... Parts>
  [[noreturn]] void Refuse(const Parts&... parts) const;

  const NBitsOperator& operator_;
  std::string node_;  // "MatMulNBits node /layers.3/mlp/up"
  kernels::NBitsSource attributes_;
  bool has_zero_points_ = false;
  bool has_bias_ = false;
  std::unique_ptr<const kernels::PackedWeights> weights_;  // null when a graph computes its weights
  ProductMemory* const memory_;
};

}  // namespace oga::operators
