// Sixteen float lanes without a named instruction set: four-lane vectors of the compiler, which become whatever the
// target's baseline has. Multiplication and addition round separately, so results agree with the FMA variants to a
// tolerance only.
//
// The three simd_*.h headers define the same `Simd` in an unnamed namespace. One kernel source includes one of them,
// and every template that takes `Simd` thereby has internal linkage; see float16.h for why that matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {
namespace {

struct Simd {
  typedef float Four __attribute__((vector_size(16)));
  typedef uint32_t FourWords __attribute__((vector_size(16)));
  struct Vec {
    Four part[4];
  };

  // The largest register tile, in query vectors and in Vecs per query vector.
  static constexpr int kMaxRows = 3;
  static constexpr int Columns(int rows) { return rows == 1 ? 2 : 1; }
  static constexpr uint32_t kOneBits = 0x3f800000u;

  template <typename Op>
  static inline Vec Each(Op op) {
    return Vec{{op(0), op(1), op(2), op(3)}};
  }
  static inline Four Four1(float x) { return Four{x, x, x, x}; }
  static inline Four LoadFour(const float* p) {
    Four four;
    std::memcpy(&four, p, sizeof(four));
    return four;
  }
  // ToFloat of four at a time.
  static inline Four LoadFour(const Float16* p) {
    typedef uint16_t FourHalves __attribute__((vector_size(8)));
    FourHalves halves;
    std::memcpy(&halves, p, sizeof(halves));
    const FourWords bits = __builtin_convertvector(halves, FourWords);
    const FourWords magnitude = bits & 0x7fffu;
    // A half denormal is rebiased as if it had a leading one, which the difference takes away again.
    const FourWords denormal = (FourWords)(magnitude < 0x0400u), endless = (FourWords)(magnitude > 0x7bffu);
    const FourWords quiet = (FourWords)(magnitude > 0x7c00u) & 0x00400000u;
    const FourWords rebiased = (magnitude << 13) + 0x38000000u + (denormal & 0x00800000u);
    const Four finite = (Four)rebiased - (Four)(denormal & 0x38800000u);
    const FourWords value = (FourWords)finite | (endless & 0x7f800000u) | quiet;
    return (Four)(value | ((bits & 0x8000u) << 16));
  }
  static inline Four LoadFour(const Bfloat16* p) {
    return Four{ToFloat(p[0]), ToFloat(p[1]), ToFloat(p[2]), ToFloat(p[3])};
  }
  static inline Four LoadFour(const int8_t* p) {
    typedef int8_t FourBytes __attribute__((vector_size(4)));
    FourBytes bytes;
    std::memcpy(&bytes, p, sizeof(bytes));
    return __builtin_convertvector(bytes, Four);
  }
  static inline void StoreFour(float* p, Four four) { std::memcpy(p, &four, sizeof(four)); }
  static inline void StoreFour(Float16* p, Four four) {
    for (int i = 0; i < 4; ++i) p[i] = ToFloat16(four[i]);
  }
  static inline void StoreFour(Bfloat16* p, Four four) {
    for (int i = 0; i < 4; ++i) p[i] = ToBfloat16(four[i]);
  }

  static inline Vec Broadcast(float x) {
    return Each([=](int) { return Four1(x); });
  }
  template <typename Element>
  static inline Vec Load(const Element* p) {
    return Each([=](int i) { return LoadFour(p + 4 * i); });
  }
  // Eight lanes from memory, zeros above.
  template <typename Element>
  static inline Vec LoadLow(const Element* p) {
    return Each([=](int i) { return i < 2 ? LoadFour(p + 4 * i) : Four1(0.0f); });
  }
  template <typename Element>
  static inline void Store(Element* p, Vec v) {
    for (int i = 0; i < 4; ++i) StoreFour(p + 4 * i, v.part[i]);
  }
  template <typename Element>
  static inline void StoreLow(Element* p, Vec v) {
    for (int i = 0; i < 2; ++i) StoreFour(p + 4 * i, v.part[i]);
  }

  static inline Vec Add(Vec a, Vec b) {
    return Each([&](int i) { return a.part[i] + b.part[i]; });
  }
  static inline Vec Sub(Vec a, Vec b) {
    return Each([&](int i) { return a.part[i] - b.part[i]; });
  }
  static inline Vec Mul(Vec a, Vec b) {
    return Each([&](int i) { return a.part[i] * b.part[i]; });
  }
  static inline Vec Div(Vec a, Vec b) {
    return Each([&](int i) { return a.part[i] / b.part[i]; });
  }
  // a * b + c
  static inline Vec MulAdd(Vec a, Vec b, Vec c) {
    return Each([&](int i) { return a.part[i] * b.part[i] + c.part[i]; });
  }
  // The second operand where the two do not compare, as the x86 instruction has it.
  static inline Vec Max(Vec a, Vec b) {
    return Each([&](int i) { return a.part[i] > b.part[i] ? a.part[i] : b.part[i]; });
  }
  // `below` where x < limit, `above` elsewhere and where the two do not compare.
  static inline Vec WhereLess(Vec x, Vec limit, Vec below, Vec above) {
    return Each([&](int i) { return x.part[i] < limit.part[i] ? below.part[i] : above.part[i]; });
  }
  static inline Vec ZeroWhereLess(Vec v, Vec x, Vec limit) {
    return Each([&](int i) { return x.part[i] < limit.part[i] ? Four1(0.0f) : v.part[i]; });
  }
  // v * 2^n, where the low bits of `n_bits` hold the integer n and the result is a normal number. A product, so that a
  // NaN stays one.
  static inline Vec ScaleByPowerOfTwo(Vec v, Vec n_bits) {
    return Each([&](int i) { return v.part[i] * (Four)(((FourWords)n_bits.part[i] << 23) + kOneBits); });
  }
  // Lanes [begin, end) of v, `fill` elsewhere.
  static inline Vec KeepLanes(Vec v, int begin, int end, Vec fill) {
    for (int lane = 0; lane < 16; ++lane) {
      if (lane < begin || lane >= end) v.part[lane / 4][lane % 4] = fill.part[lane / 4][lane % 4];
    }
    return v;
  }
  static inline float First(Vec v) { return v.part[0][0]; }
  static inline float ReduceAdd(Vec v) {
    const Four four = (v.part[0] + v.part[2]) + (v.part[1] + v.part[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
  static inline float ReduceMax(Vec v) {
    const Vec a = Max(v, Vec{{v.part[2], v.part[3], v.part[2], v.part[3]}});
    const Four four = a.part[0] > a.part[1] ? a.part[0] : a.part[1];
    const float low = four[0] > four[2] ? four[0] : four[2];
    const float high = four[1] > four[3] ? four[1] : four[3];
    return low > high ? low : high;
  }

  // Eight elements of each of sixteen rows, transposed: out[16 * i + lane] = base[offsets[lane] + i].
  template <typename Element>
  static inline void Transpose(const Element* base, const int64_t* offsets, float* out) {
    for (int lane = 0; lane < 16; ++lane) {
      const Element* row = base + offsets[lane];
      const Four low = LoadFour(row);
      const Four high = LoadFour(row + 4);
      for (int i = 0; i < 4; ++i) {
        out[16 * i + lane] = low[i];
        out[16 * (i + 4) + lane] = high[i];
      }
    }
  }
};

}  // namespace
}  // namespace oga::kernels
