// The operator com.microsoft::MatMulNBits as the runtime sees it, and the gated one of our own domain.
//
// Types are left open in the declaration, so that a graph with others loads as far as our kernel, whose refusal names
// the node and the way out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "operators/cpu/product_op.h"

namespace oga::operators {

enum class NBitsForm {
  kPlain,  // MatMulNBits
  kGated,  // oga's GatedMatMulNBits: silu(A x gate) * (A x up), two matrices of one form
};

// Where an operator's inputs hold a matrix.
struct NBitsMatrixInputs {
  size_t codes;
  size_t scales;
  size_t zero_points;  // optional
};

// What the two forms differ in.
struct NBitsOperator {
  const char* name;
  std::span<const char* const> inputs;  // their names in the documentation, for messages; the first are the activations
  std::span<const NBitsMatrixInputs> matrices;
  std::optional<size_t> group_index;  // optional inputs
  std::optional<size_t> bias;

  bool IsOptional(size_t input) const;
};

const NBitsOperator& OperatorOf(NBitsForm form);

// Owned by the session.
struct MatMulNBitsOp : ProductOp {
  MatMulNBitsOp(NBitsForm form, ProductMemory* memory) noexcept;

  const NBitsForm form;
};

}  // namespace oga::operators
