#include "cache/block_hash.h"

#include <bit>
#include <random>

namespace oga {

namespace {

class SipState {
 public:
  explicit SipState(const HashKey& key)
      : v0_(0x736f6d6570736575ull ^ key.low),
        v1_(0x646f72616e646f6dull ^ key.high ^ 0xee),
        v2_(0x6c7967656e657261ull ^ key.low),
        v3_(0x7465646279746573ull ^ key.high) {}

  void Absorb(uint64_t word) noexcept {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }

  BlockHash Finish() noexcept {
    BlockHash hash;
    v2_ ^= 0xee;
    for (int i = 0; i < 4; ++i) Round();
    hash.low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    for (int i = 0; i < 4; ++i) Round();
    hash.high = v0_ ^ v1_ ^ v2_ ^ v3_;
    return hash;
  }

 private:
  void Round() noexcept {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
};

}  // namespace

HashKey HashKey::Draw() {
  std::random_device device;
  const auto word = [&device] { return uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

BlockHash SipHashBlock(const HashKey& key, const BlockHash& parent, uint64_t salt,
                       std::span<const TokenId> tokens) noexcept {
  SipState state(key);
  state.Absorb(parent.low);
  state.Absorb(parent.high);
  state.Absorb(salt);
  // The message is these three words and the tokens, 4 bytes each, in little-endian order; its length closes it.
  size_t i = 0;
  for (; i + 1 < tokens.size(); i += 2) {
    state.Absorb(uint64_t{static_cast<uint32_t>(tokens[i])} | uint64_t{static_cast<uint32_t>(tokens[i + 1])} << 32);
  }
  const uint64_t bytes = 3 * sizeof(uint64_t) + tokens.size_bytes();
  const uint64_t rest = i < tokens.size() ? static_cast<uint32_t>(tokens[i]) : 0;
  state.Absorb(rest | bytes << 56);
  return state.Finish();
}

}  // namespace oga
