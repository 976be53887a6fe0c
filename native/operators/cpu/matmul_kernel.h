// One MatMul or Gemm node of a loaded graph. With a constant matrix on its right side it is ours: the weights are
// packed at load. Every other form goes on to the runtime's kernel.
//
// Owned by the session. Compute is const and runs on any number of threads at once, one per execution.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/product/packed_weights.h"
#include "operators/cpu/kernel_context.h"
#include "operators/cpu/matmul_op.h"
#include "operators/cpu/node_info.h"
#include "ort/handles.h"

namespace oga::operators {

class MatMulKernel {
 public:
  // `memory` outlives this. Throws Error: kUnsupported for what neither we nor the runtime compute, naming the node and
  // what was found.
  MatMulKernel(MatMulForm form, CpuMatMul choice, const ort::abi::KernelInfo* info, ProductMemory* memory);

  // Throws Error{kInvalidArgument} for inputs that do not fit together.
  void Compute(ort::abi::KernelContext* context) const;

 private:
  // Why the node is not ours; empty when it is.
  std::string Obstacle(const NodeInfo& info) const;
  std::string BiasObstacle(const NodeInfo& info, const ort::Dimension& columns) const;
  void PackWeights(CpuMatMul choice, const NodeInfo& info);
  void MakeRuntimeOp(const ort::abi::KernelInfo* raw_info, const NodeInfo& info);

  void* ProductOutput(const KernelContext& context, const KernelTensor& a) const;
  void Multiply(const KernelContext& context, const KernelTensor& a) const;
  std::vector<int64_t> OutputDims(const KernelTensor& a, const KernelTensor& b) const;

  std::string node_;  // "MatMul node /layers.3/mlp/up"
  MatMulForm form_;
  bool transposed_a_ = false;  // Gemm's attributes
  bool transposed_b_ = false;
  float alpha_ = 1.0f;
  float beta_ = 1.0f;
  bool has_bias_ = false;
  ProductMemory* const memory_;
  std::unique_ptr<const kernels::PackedWeights> weights_;  // or
  ort::Owned<ort::abi::Op> runtime_op_;
};

}  // namespace oga::operators
