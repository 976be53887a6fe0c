// The operators MatMul and Gemm of ONNX as the runtime sees them when ours replace its own, and oga::Gemm.
//
// Types are left open in the declarations: integers go on to the runtime's kernel. oga::Gemm is ONNX's Gemm of a
// constant B, which may have another type than A; our exports use it for weights of 16 bits under activations in float.
#pragma once

#include "operators/cpu/cpu_matmul.h"
#include "operators/cpu/product_op.h"

namespace oga::operators {

enum class MatMulForm { kMatMul, kGemm, kOwnGemm };

// Owned by the session.
struct MatMulOp : ProductOp {
  MatMulOp(MatMulForm form, CpuMatMul choice, ProductMemory* memory) noexcept;

  const MatMulForm form;
  const CpuMatMul choice;
};

}  // namespace oga::operators
