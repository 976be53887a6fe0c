// The loops of limits.h over a vector type, for the files that are compiled for an instruction set.
//
// `V` has: Bits, Load(const uint8_t*) -> Bits, Add(Bits, Bits) -> Bits, Sum(Bits) -> uint64_t; Sums (of products),
// Begin(float) -> Sums, Factor, Make(float) -> Factor, MultiplyAdd(Sums, Factor, Factor) -> Sums, First(Sums) -> float;
// kBytes of a vector, kFlops of a multiply-add, and kSums: sums that hide what one takes, and fit the registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "benchmarks/limits.h"

namespace oga::benchmarks {
namespace {

inline constexpr size_t kAheadBytes = 4096;  // the hardware prefetches to the end of a page only
inline constexpr size_t kStrideBytes = 512;

template <class V>
uint64_t ReadLoop(const uint8_t* data, size_t bytes) {
  constexpr size_t kVectors = kStrideBytes / V::kBytes, kChains = kVectors < 8 ? kVectors : 8;
  typename V::Bits sums[kChains] = {};
  for (size_t at = 0; at + kStrideBytes <= bytes; at += kStrideBytes) {
    for (size_t line = 0; line < kStrideBytes; line += 64) __builtin_prefetch(data + at + kAheadBytes + line);
    for (size_t i = 0; i < kVectors; ++i) {
      sums[i % kChains] = V::Add(sums[i % kChains], V::Load(data + at + i * V::kBytes));
    }
  }
  uint64_t sum = 0;
  for (const auto& each : sums) sum += V::Sum(each);
  return sum;
}

template <class V>
float MultiplyLoop(int64_t rounds) {
  const typename V::Factor a = V::Make(0.5f), b = V::Make(0.25f);
  typename V::Sums sums[V::kSums];
  // Each begins with another number, so that none can stand for the others.
  for (int i = 0; i < V::kSums; ++i) sums[i] = V::Begin(static_cast<float>(i));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int i = 0; i < V::kSums; ++i) sums[i] = V::MultiplyAdd(sums[i], a, b);
  }
  float total = 0;
  for (const auto& sum : sums) total += V::First(sum);
  return total;
}

template <class V>
inline constexpr LimitLoops kLoops = {ReadLoop<V>, MultiplyLoop<V>, static_cast<double>(V::kFlops* V::kSums)};

}  // namespace
}  // namespace oga::benchmarks
