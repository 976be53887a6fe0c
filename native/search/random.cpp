#include "search/random.h"

namespace oga::search {

namespace {
constexpr int kRounds = 10;
constexpr uint32_t kMultiplier0 = 0xD2511F53u;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kKeyStep0 = 0x9E3779B9u;  // golden ratio
constexpr uint32_t kKeyStep1 = 0xBB67AE85u;  // square root of three, minus one

constexpr uint32_t Low(uint64_t value) noexcept { return static_cast<uint32_t>(value); }
constexpr uint32_t High(uint64_t value) noexcept { return static_cast<uint32_t>(value >> 32); }
}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) noexcept {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1), High(product0) ^ counter[3] ^ key[1],
               Low(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
  }
  return counter;
}

double Random(uint64_t seed, uint64_t position, RandomPurpose purpose) noexcept {
  const auto words =
      Philox4x32({Low(position), High(position), static_cast<uint32_t>(purpose), 0}, {Low(seed), High(seed)});
  const uint64_t bits = (uint64_t{words[1]} << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace oga::search
