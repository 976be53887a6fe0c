// The operator com.microsoft::MatMulNBits as the runtime sees it.
//
// Types are left open in the declaration, so that a graph with others loads as far as our kernel, whose refusal names
// the node and the way out.
#pragma once

#include <array>
#include <cstddef>

#include "ort/product_op.h"

namespace oga::ort {

// Positions of the operator's inputs.
enum MatMulNBitsInput : size_t { kActivations, kCodes, kScales, kZeroPoints, kGroupIndex, kBias, kMatMulNBitsInputs };

// Their names in the operator's documentation, for messages.
inline constexpr std::array<const char*, kMatMulNBitsInputs> kMatMulNBitsInputNames = {"A",           "B",     "scales",
                                                                                       "zero_points", "g_idx", "bias"};

// Owned by the session.
struct MatMulNBitsOp : ProductOp {
  explicit MatMulNBitsOp(ProductMemory* memory) noexcept;
};

}  // namespace oga::ort
