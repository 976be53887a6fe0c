// The seam inside the quantised matrix product: packed_matmul.cpp divides a call into pieces of work, a variant
// computes a piece. Plain data and function pointers only, for the reason that paged_attention_variant.h gives.
#pragma once

#include <cstdint>

#include "kernels/product/packed_weights.h"

namespace oga::kernels {

// One call. `staged` holds the activations in the variant's own form and order.
struct PackedCall {
  PackedLayout layout;
  const uint8_t* weights;
  const float* activations;  // [rows, k]
  int64_t k;
  int32_t rows;
  int32_t chunk_rows;  // rows are multiplied in ranges of so many, the last one of fewer
  const float* bias;
  float* output;
  uint8_t* staged;
};

// Half-open ranges, none of them empty. K may be 0: then there is nothing staged, and sums are zeros.
struct RowRange {
  int32_t begin;
  int32_t end;
};
struct PanelRange {
  int32_t begin;
  int32_t end;
};

struct PackedVariant {
  int32_t staged_unit_bytes;  // of a row in `staged`, per unit of K
  int32_t row_multiple;       // borders between row ranges of a call are multiples of this
  int32_t most_rows;          // of one piece of multiplication; a multiple of the same
  // Converts rows into `staged`.
  void (*stage)(const PackedCall& call, RowRange rows);
  // Computes and writes the outputs of rows whose activations are staged.
  void (*multiply)(const PackedCall& call, PanelRange panels, RowRange rows);
};

extern const PackedVariant kPackedPortable;
#if defined(__x86_64__)
extern const PackedVariant kPackedAvx2;
extern const PackedVariant kPackedAvx512;
extern const PackedVariant kPackedAvx512Bf16;
extern const PackedVariant kPackedAmx;
#endif

}  // namespace oga::kernels
