// The operator com.microsoft::PagedAttention as the runtime sees it: its inputs and outputs, what shapes it promises,
// and the way to its kernel.
//
// Types are left open in the declaration. That is what lets it replace the runtime's own schema, which knows no 32-bit
// activations, and lets the cache have another type than the activations; the kernel checks the types when a model is
// loaded.
#pragma once

#include <array>
#include <cstddef>

#include "ort/abi.h"

namespace oga::operators {

// Positions of the operator's inputs.
enum PagedAttentionInput : size_t {
  kQuery,
  kKey,
  kValue,
  kKeyCache,
  kValueCache,
  kCumulativeLengths,
  kPastLengths,
  kBlockTable,
  kCosCache,
  kSinCache,
  kSlotMapping,
  kHeadSink,
  kQueryNorm,
  kKeyNorm,
  kKeyScale,
  kValueScale,
  kAttentionMetadata,
  kPagedAttentionInputs,
};

// Their names in the operator's documentation, for messages.
inline constexpr std::array<const char*, kPagedAttentionInputs> kPagedAttentionInputNames = {
    "query",         "key",           "value",     "key_cache", "value_cache",       "cumulative_sequence_length",
    "past_seqlens",  "block_table",   "cos_cache", "sin_cache", "slot_mapping",      "head_sink",
    "q_norm_weight", "k_norm_weight", "k_scale",   "v_scale",   "attention_metadata"};

// Immutable. Made for the runtime in use, and for sessions of so many threads.
struct PagedAttentionOp : ort::abi::CustomOp {
  explicit PagedAttentionOp(int session_threads);

  const int session_threads;
};

}  // namespace oga::operators
