// The operator com.microsoft::MatMulNBits as the runtime sees it, and what its kernels of one session share.
//
// Types are left open in the declaration, so that a graph with others loads as far as our kernel, whose refusal names
// the node and the way out.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/scratch_pool.h"
#include "kernels/weight_arena.h"
#include "ort/abi.h"

namespace oga::ort {

// Positions of the operator's inputs.
enum MatMulNBitsInput : size_t { kActivations, kCodes, kScales, kZeroPoints, kGroupIndex, kBias, kMatMulNBitsInputs };

// Their names in the operator's documentation, for messages.
inline constexpr std::array<const char*, kMatMulNBitsInputs> kMatMulNBitsInputNames = {"A",           "B",     "scales",
                                                                                       "zero_points", "g_idx", "bias"};

// Owned by the session, whose kernels hold on to what is shared. The runtime hands it to them as the CustomOp it is.
struct MatMulNBitsOp : abi::CustomOp {
  MatMulNBitsOp() noexcept;

  mutable kernels::WeightArena weights;  // filled while the session loads, by one thread
  mutable kernels::ScratchPool scratch;
};

}  // namespace oga::ort
