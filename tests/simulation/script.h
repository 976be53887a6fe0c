// The model of a simulated world: logits as a pure function of the history, with ends and poisoned rows in it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "step/ids.h"

namespace oga::testing {

inline constexpr int32_t kSimVocab = 48;
inline constexpr TokenId kSimEos[] = {45, 46};
inline constexpr int32_t kSimSampleable = 47;  // the last id is padding

inline uint64_t Mix(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdull;
  value ^= value >> 29;
  value *= 0xc4ceb9fe1a85ec53ull;
  return value ^ (value >> 32);
}

inline uint64_t HistoryHash(std::span<const TokenId> history) {
  uint64_t hash = history.size();
  for (const TokenId token : history) hash = Mix(hash + static_cast<uint64_t>(token) + 1);
  return hash;
}

// Some histories poison their row; the same ones alone and in any batch.
inline bool IsPoisoned(uint64_t hash) { return hash % 1009 == 0; }

inline void FillScriptLogits(std::span<float> logits, std::span<const TokenId> history) {
  const uint64_t hash = HistoryHash(history);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(Mix(hash + i) % 4096) / 512.0f - 4.0f;
  }
  if (IsPoisoned(hash)) logits[hash % kSimSampleable] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace oga::testing
