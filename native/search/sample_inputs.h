// What the choice of one row's token reads, and what comes out. Plain views: the caller keeps the memory for the call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "search/logprobs.h"
#include "search/token_counts.h"
#include "step/ids.h"
#include "step/sampling.h"

namespace oga::search {

struct SampleInputs {
  std::span<const float> logits;  // [vocab]
  const SamplingSettings* settings = nullptr;
  std::span<const TokenId> sequence;          // prompt and output so far; read when the settings search it or ban words
  std::span<const TokenId> distinct_tokens;   // of the sequence; read when a repetition penalty acts
  std::span<const TokenCount> output_counts;  // of the turn's output; read when it is counted
  std::span<const TokenId> eos_token_ids;     // those that would end the turn
  bool may_end = true;                        // false keeps EOS ids and stop tokens from being chosen
  std::span<const uint32_t> allowed_bitmask;  // of a grammar, laid out as in search/bitmask.h; empty: every token
  uint64_t seed = 0;
  uint64_t position = 0;  // absolute index the new token gets in the sequence
};

enum class SampleStatus {
  kOk,
  kBadLogits,   // NaN, +infinity, or nothing but -infinity in the row as the model gave it
  kNoCandidate  // every token is excluded, or -infinity
};

struct SampleOutcome {
  SampleStatus status = SampleStatus::kOk;
  TokenId token = 0;
  std::shared_ptr<const TokenLogprobs> logprobs{};  // null unless the settings ask for them
};

}  // namespace oga::search
