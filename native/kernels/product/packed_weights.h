// Weights packed once for the matrix product: of 4 or 8 bits in blocks along K, in bfloat16, or in float.
//
// The packed form is a stream that a panel of kPanelColumns output columns reads from its first byte to its last, in
// units of kUnitK. A lane of a vector is a column, so the product needs no sums across lanes.
//
// Blocks come in groups, each behind a header (scales, then zero points). A group is a block, or a unit of two blocks
// of 16.
//
//   panel:   group, group, ...
//   group:   scales [blocks][32]   zero points [blocks][32]   unit, unit, ...
//   unit:    words of 32 bits with the codes of one column, in one of three orders; K rises from a word's lowest bits
//     kColumns  [bits][32 columns]: the words as the source has them
//     kPairs    [bits / 2][32 columns][2]: a word has codes of even positions, its neighbour those of odd ones, as the
//               two halves of a word of bfloat16 in an AMX tile
//     kChains   [bits / 4][even, odd][32 columns][2]: a word has every other code of the even or of the odd positions,
//               beginning with the second, its neighbour the others: of two successive positions of a chain the later
//               one is the lower half of a word of bfloat16, as VDPBF16PS takes them
//
//
// bfloat16 lies as a decoded unit of codes of the same order does, and float as one of kColumns. There are no headers:
//   unit:    [two halves of the columns][steps][words of 16 columns]; a step is an even and an odd position of K
//     kColumns, kPairs  [16 steps][16 words]: the even position's bfloat16 below the odd one's
//     kChains           [8 steps][even, odd][16 words]: a step is two of each chain, the second below the first
//     float             [16 steps][even, odd][16 floats]
//
// Gated weights are two matrices of one form, the gates and what they gate: the first half of a panel's columns is of
// the one, the second half of the same columns of the other. What the product writes is silu(gate) * up of each pair.
//
// Scales are halves times one power of two for all when every scale is within the halves' normal range then: that
// rounding, by 2^-11 at most, is an eighth of the one that the product does to a weight. Other tensors keep floats.
// Codes without zero points are stored as signed numbers, relative to the middle of their range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/parallel_for.h"
#include "kernels/product/weight_arena.h"
#include "kernels/simd/cpu_isa.h"
#include "kernels/simd/float_type.h"

namespace oga::kernels {

inline constexpr int32_t kPanelColumns = 32;
inline constexpr int32_t kUnitK = 32;

// Positive numbers only.
constexpr int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Weights as the operator com.microsoft::MatMulNBits has them: column n of the product is row n here.
struct NBitsSource {
  int64_t k = 0;
  int64_t n = 0;
  int32_t bits = 4;                       // 4 or 8
  int32_t block_size = 32;                // 16, 32, 64, 128 or 256
  const uint8_t* codes = nullptr;         // [n, blocks, block_size * bits / 8], lower bits first
  const float* scales = nullptr;          // [n, blocks]
  const uint8_t* packed_zeros = nullptr;  // [n, bytes of the blocks' codes], or null
  const float* float_zeros = nullptr;     // [n, blocks], or null. Without either the zero is the middle code.
};

// Weights as MatMul and Gemm have them.
struct DenseSource {
  int64_t k = 0;
  int64_t n = 0;
  FloatType type = FloatType::kFloat;
  const void* data = nullptr;  // [k, n], or [n, k] when transposed
  bool transposed = false;
};

// What DenseSource is multiplied in.
enum class DensePrecision { kFloat, kBfloat16 };

enum class CodeOrder : int32_t { kColumns, kPairs, kChains };
// In which the variant for `isa` takes weights of at most 16 bits.
CodeOrder OrderOf(CpuIsa isa);

enum class ZeroKind : int32_t { kNone, kUint8, kFloat };

// Where everything lies in the packed stream. Plain data, read by the variants.
struct PackedLayout {
  int32_t bits = 0;    // 4 or 8, 16 for bfloat16, 32 for float
  int32_t units = 0;   // along K, the last one filled up with zeros by the activations
  int32_t panels = 0;  // along N
  int64_t n = 0;       // columns of the output
  bool gated = false;
  CodeOrder order = CodeOrder::kColumns;
  ZeroKind zero_kind = ZeroKind::kNone;
  bool half_scales = true;
  float unscale = 1.0f;          // times a half is the scale
  int32_t blocks_per_group = 1;  // 2 when a unit has two scales
  int32_t units_per_group = 1;   // the last group of a panel may have fewer
  int32_t zeros_offset = 0;      // in the header
  int32_t header_bytes = 0;
  int32_t unit_bytes = 0;  // codes only
  int64_t panel_bytes = 0;
};

class PackedWeights {
 public:
  // Packs `source` for the products of `isa`, panel by panel on the threads of `parallel_for`. The source is not needed
  // any longer then; the arena outlives this. With `up`, which differs from the source in its contents only, packs both
  // as gated weights.
  PackedWeights(CpuIsa isa, const NBitsSource& source, WeightArena* arena, const ParallelFor& parallel_for,
                const NBitsSource* up = nullptr);
  // The same, rounded to bfloat16 (nearest, ties to even, denormals to zero) or widened to float.
  PackedWeights(CpuIsa isa, const DenseSource& source, DensePrecision precision, WeightArena* arena,
                const ParallelFor& parallel_for);

  // The instruction set of the products: the asked one, but float has no forms above kAvx512.
  CpuIsa isa() const { return isa_; }
  const PackedLayout& layout() const { return layout_; }
  const uint8_t* data() const { return data_; }
  int64_t k() const { return k_; }

 private:
  void Fill(WeightArena* arena, const ParallelFor& parallel_for,
            const std::function<void(int64_t panel, uint8_t* memory)>& pack_panel);

  CpuIsa isa_;
  PackedLayout layout_;
  int64_t k_;
  const uint8_t* data_;
};

}  // namespace oga::kernels
