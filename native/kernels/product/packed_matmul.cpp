#include "kernels/product/packed_matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/product/packed_variant.h"

namespace oga::kernels {

namespace {

constexpr int64_t kPassRows = 512;         // their staged activations bound the scratch memory
constexpr int32_t kStageRows = 4;          // of one work item of the staging phase
constexpr int32_t kRowsStagedAtOnce = 4;   // fewer are not worth waking threads for
constexpr int64_t kItemBytes = 128 << 10;  // of weights: long enough a stream
constexpr int64_t kMostItems = 64;         // of a chunk of rows

const PackedVariant& VariantOf(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAmx) return kPackedAmx;
  if (isa == CpuIsa::kAvx512Bf16) return kPackedAvx512Bf16;
  if (isa == CpuIsa::kAvx512) return kPackedAvx512;
  if (isa == CpuIsa::kAvx2) return kPackedAvx2;
#endif
  OGA_CHECK(isa == CpuIsa::kPortable);
  return kPackedPortable;
}

// Hands out items without an allocation: a capture of one reference fits into the function object itself.
template <typename Body>
void ForEach(const ParallelFor& parallel_for, int64_t count, const Body& body) {
  if (count == 1) return body(0);
  parallel_for(static_cast<size_t>(count), [&body](size_t i) { body(static_cast<int32_t>(i)); });
}

void Stage(const PackedVariant& variant, const PackedCall& call, const ParallelFor& parallel_for) {
  if (call.rows <= kRowsStagedAtOnce) return variant.stage(call, {0, call.rows});
  ForEach(parallel_for, DivideUp(call.rows, kStageRows), [&](int32_t i) {
    variant.stage(call, {i * kStageRows, std::min((i + 1) * kStageRows, call.rows)});
  });
}

int32_t ChunkRows(const PackedVariant& variant, int64_t rows) {
  const int64_t chunks = DivideUp(rows, variant.most_rows);
  return static_cast<int32_t>(DivideUp(DivideUp(rows, chunks), variant.row_multiple)) * variant.row_multiple;
}

void Multiply(const PackedVariant& variant, const PackedCall& call, const ParallelFor& parallel_for) {
  const int64_t chunks = DivideUp(call.rows, call.chunk_rows);
  const int64_t panels = call.layout.panels;
  // With few rows an item is a long enough stretch of the weights; with many there are items enough for many threads.
  const int64_t stretch =
      DivideUp(kItemBytes, std::max<int64_t>(call.layout.panel_bytes, 1) * std::max(call.chunk_rows / 8, 1));
  const int64_t item_panels = std::max(std::min(stretch, DivideUp(panels, 2)), DivideUp(panels, kMostItems));
  const int32_t items_per_chunk = static_cast<int32_t>(DivideUp(panels, item_panels));
  ForEach(parallel_for, items_per_chunk * chunks, [&](int32_t i) {
    const int32_t first_row = i / items_per_chunk * call.chunk_rows;
    const int32_t first_panel = static_cast<int32_t>(i % items_per_chunk * item_panels);
    const RowRange rows = {first_row, std::min(first_row + call.chunk_rows, call.rows)};
    const int32_t end_panel = static_cast<int32_t>(std::min<int64_t>(first_panel + item_panels, panels));
    variant.multiply(call, {first_panel, end_panel}, rows);
  });
}

}  // namespace

size_t PackedScratchBytes(const PackedWeights& weights, int64_t rows) {
  return static_cast<size_t>(std::min(rows, kPassRows) * weights.layout().units *
                             VariantOf(weights.isa()).staged_unit_bytes);
}

void PackedMatMul(const PackedWeights& weights, const PackedMatMulArgs& args, const ParallelFor& parallel_for) {
  OGA_CHECK(weights.isa() <= BestCpuIsa());
  PackedMatMul(VariantOf(weights.isa()), weights, args, parallel_for);
}

void PackedMatMul(const PackedVariant& variant, const PackedWeights& weights, const PackedMatMulArgs& args,
                  const ParallelFor& parallel_for) {
  if (weights.layout().n == 0) return;
  for (int64_t first = 0; first < args.rows; first += kPassRows) {
    PackedCall call;
    call.layout = weights.layout();
    call.weights = weights.data();
    call.activations = args.activations + first * weights.k();
    call.k = weights.k();
    call.rows = static_cast<int32_t>(std::min(args.rows - first, kPassRows));
    call.chunk_rows = ChunkRows(variant, call.rows);
    call.bias = args.bias;
    call.output = args.output + first * call.layout.n;
    call.staged = static_cast<uint8_t*>(args.scratch);
    Stage(variant, call, parallel_for);
    Multiply(variant, call, parallel_for);
  }
}

}  // namespace oga::kernels
