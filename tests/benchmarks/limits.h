// What the machine can do at most, by the simplest code that gets there: reading memory, a stream triad, and
// multiplying what is in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "benchmarks/thread_team.h"
#include "kernels/product/weight_arena.h"
#include "kernels/simd/cpu_isa.h"

namespace oga::benchmarks {

// The loops of one instruction set. Plain data and function pointers, for the reason that
// kernels/attention/paged_attention_variant.h gives.
struct LimitLoops {
  // Reads `bytes`, a multiple of 512, from a multiple of 64. Returns what it read, so that reading cannot be left out.
  uint64_t (*read)(const uint8_t* data, size_t bytes);
  // `rounds` times the widest multiply-add of the instruction set on each of several independent sums: of bfloat16
  // where it has them, else of floats.
  float (*multiply)(int64_t rounds);
  double flops_per_round;
};

extern const LimitLoops kLimitsPortable;
#if defined(__x86_64__)
extern const LimitLoops kLimitsAvx2;
extern const LimitLoops kLimitsAvx512;
extern const LimitLoops kLimitsAvx512Bf16;
extern const LimitLoops kLimitsAmx;
#endif

const LimitLoops& LimitsOf(kernels::CpuIsa isa);

// Memory too large for the caches, so that reading it is reading memory; in the pages that weights lie in.
class BigMemory {
 public:
  BigMemory();

  size_t bytes() const { return bytes_; }

  // Every thread reads a part of the first `bytes` of its own.
  void Read(ThreadTeam* team, size_t bytes) const;

  // a = b + 3 c over three thirds of the memory, the stores going the way that stores usually go.
  void Triad(ThreadTeam* team);
  // What it reads and writes, the lines that a store reads first not counted.
  size_t triad_bytes() const { return bytes_ / 3 / kPart * kPart * 3; }

 private:
  static constexpr size_t kPart = size_t{1} << 18;  // of one work item, in bytes

  kernels::WeightArena arena_;
  const size_t bytes_;
  uint8_t* const data_;
};

// `rounds` of the loop on each thread.
void Multiply(ThreadTeam* team, const LimitLoops& loops, int64_t rounds);

// Memory that the caches cannot hold: what a benchmark must walk through to see memory and not a cache.
size_t BeyondCachesBytes();

}  // namespace oga::benchmarks
