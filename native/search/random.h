// Counter-based randomness: a pure function of (seed, position, purpose), so there is no generator state and a draw is
// the same in any batch, after preemption and on retry. Philox 4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace oga::search {

// What a draw decides. Draws of two purposes at one position are independent.
enum class RandomPurpose : uint32_t {
  kTokenDraw = 0,
  kXtc = 1,  // whether XTC acts
};

// Uniform in [0, 1), 53 bits.
double Random(uint64_t seed, uint64_t position, RandomPurpose purpose) noexcept;

// The bijection of the paper: ten rounds over a 128-bit counter under a 64-bit key, least significant word first.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) noexcept;

}  // namespace oga::search
