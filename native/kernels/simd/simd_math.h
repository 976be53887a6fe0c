// What the kernels build from a `Simd`: powers of two, tanh, and the register-tiled product under both halves of
// attention. Included after one of the simd_*.h headers; the `Simd` parameter keeps every instantiation local to that
// source file.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__clang__)
#define OGA_UNROLL _Pragma("unroll")
#else
#define OGA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace oga::kernels {
namespace {

// 2^x for x <= 0, within 1.5 units in the last place; zero below 2^-125, so that no denormal arises whose bits would
// depend on the thread's denormal mode. Exactly 1 at 0; a NaN stays one.
template <class S>
typename S::Vec Exp2(typename S::Vec x) {
  using Vec = typename S::Vec;
  const Vec lowest = S::Broadcast(-125.0f);
  const Vec rounder = S::Broadcast(0x1.8p23f);  // its sum with x has round(x) in the low bits
  const Vec clamped = S::Max(lowest, x);
  const Vec shifted = S::Add(clamped, rounder);
  const Vec r = S::Sub(clamped, S::Sub(shifted, rounder));
  // (2^r - 1) / r on [-1/2, 1/2], least relative error of 2^r: 2e-9 before rounding.
  Vec p = S::Broadcast(0x1.41fb84p-13f);
  p = S::MulAdd(p, r, S::Broadcast(0x1.5f3e7cp-10f));
  p = S::MulAdd(p, r, S::Broadcast(0x1.3b2d4ep-7f));
  p = S::MulAdd(p, r, S::Broadcast(0x1.c6aee8p-5f));
  p = S::MulAdd(p, r, S::Broadcast(0x1.ebfbdcp-3f));
  p = S::MulAdd(p, r, S::Broadcast(0x1.62e43p-1f));
  p = S::MulAdd(p, r, S::Broadcast(1.0f));
  return S::ZeroWhereLess(S::ScaleByPowerOfTwo(p, shifted), x, lowest);
}

// tanh(x) within 4 units in the last place; a NaN stays one. Small arguments go through an odd polynomial (least
// relative error up to 0.625: 4e-9 before rounding), since the quotient of powers would cancel there.
template <class S>
typename S::Vec Tanh(typename S::Vec x) {
  using Vec = typename S::Vec;
  const Vec zero = S::Broadcast(0.0f), one = S::Broadcast(1.0f);
  const Vec size = S::Max(x, S::Sub(zero, x));
  const Vec z = S::Mul(x, x);
  Vec p = S::Broadcast(-0x1.75e1cp-8f);
  p = S::MulAdd(p, z, S::Broadcast(0x1.522698p-6f));
  p = S::MulAdd(p, z, S::Broadcast(-0x1.b83c5ap-5f));
  p = S::MulAdd(p, z, S::Broadcast(0x1.110726p-3f));
  p = S::MulAdd(p, z, S::Broadcast(-0x1.555532p-2f));
  const Vec small = S::MulAdd(S::Mul(p, z), x, x);
  const Vec power = Exp2<S>(S::Mul(size, S::Broadcast(-0x1.715476p1f)));  // e^(-2 |x|)
  const Vec quotient = S::Div(S::Sub(one, power), S::Add(one, power));
  const Vec large = S::WhereLess(x, zero, S::Sub(zero, quotient), quotient);
  return S::WhereLess(size, S::Broadcast(0.625f), small, large);
}

// The left operand and the result of a product: rows of floats, a stride apart.
struct RowBlock {
  const float* left;
  ptrdiff_t left_stride;
  float* result;
  ptrdiff_t result_stride;
};

// result[row][16 * column ...] (+)= sum over k in [first, last) of left[row][k] * right.Load(k, column), for kRows rows
// and kColumns columns from `column` on. Each lane is one chain over k: the tile's shape never shows in the bits.
template <class S, int kRows, int kColumns, bool kAccumulate, class Right>
inline void MultiplyTile(const RowBlock& block, const Right& right, int first, int last, int column) {
  using Vec = typename S::Vec;
  Vec sum[kRows][kColumns];
  OGA_UNROLL for (int row = 0; row < kRows; ++row) {
    OGA_UNROLL for (int c = 0; c < kColumns; ++c) {
      const float* start = block.result + row * block.result_stride + 16 * (column + c);
      sum[row][c] = kAccumulate ? S::Load(start) : S::Broadcast(0.0f);
    }
  }
  for (int k = first; k < last; ++k) {
    Vec operand[kColumns];
    OGA_UNROLL for (int c = 0; c < kColumns; ++c) operand[c] = right.Load(k, column + c);
    OGA_UNROLL for (int row = 0; row < kRows; ++row) {
      const Vec factor = S::Broadcast(block.left[row * block.left_stride + k]);
      OGA_UNROLL for (int c = 0; c < kColumns; ++c) sum[row][c] = S::MulAdd(factor, operand[c], sum[row][c]);
    }
  }
  OGA_UNROLL for (int row = 0; row < kRows; ++row) {
    OGA_UNROLL for (int c = 0; c < kColumns; ++c) {
      S::Store(block.result + row * block.result_stride + 16 * (column + c), sum[row][c]);
    }
  }
}

template <class S, int kRows, bool kAccumulate, class Right>
inline void MultiplyColumns(const RowBlock& block, const Right& right, int first, int last, int column,
                            int end_column) {
  constexpr int kColumns = S::Columns(kRows);
  for (; column + kColumns <= end_column; column += kColumns) {
    MultiplyTile<S, kRows, kColumns, kAccumulate>(block, right, first, last, column);
  }
  if constexpr (kColumns == 4) {
    if (column + 2 <= end_column) {
      MultiplyTile<S, kRows, 2, kAccumulate>(block, right, first, last, column);
      column += 2;
    }
  }
  if constexpr (kColumns > 1) {
    if (column < end_column) MultiplyTile<S, kRows, 1, kAccumulate>(block, right, first, last, column);
  }
}

// The same for a number of rows known at run time, at most S::kMaxRows, and columns [column, end_column).
template <class S, bool kAccumulate, int kRows = S::kMaxRows, class Right>
inline void Multiply(int rows, const RowBlock& block, const Right& right, int first, int last, int column,
                     int end_column) {
  if (rows == kRows) {
    MultiplyColumns<S, kRows, kAccumulate>(block, right, first, last, column, end_column);
  } else if constexpr (kRows > 1) {
    Multiply<S, kAccumulate, kRows - 1>(rows, block, right, first, last, column, end_column);
  }
}

// How many of `remaining` rows the next register tile takes: as many as fit, but no lone row behind a full tile.
template <class S>
inline int TileRows(int remaining) {
  if (remaining <= S::kMaxRows) return remaining;
  return remaining < 2 * S::kMaxRows ? (remaining + 1) / 2 : S::kMaxRows;
}

}  // namespace
}  // namespace oga::kernels
