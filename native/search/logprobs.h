// Log-probabilities of tokens under one row of scores, for hosts that ask for them.
//
// Pure functions; they allocate what they return. The distribution is softmax over the row as it is given: the model's
// own logits, or those after the logits processors, where an excluded token has -infinity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "step/ids.h"

namespace oga::search {

// Parallel arrays. Entry 0 is the token that the row was asked about, then come the most likely ones, most likely first
// (equal ones by lowest id), then the tokens that the host named, in its order. A token may be in more than one place.
struct TokenLogprobs {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;  // natural logarithm; -infinity for a token that could not have been chosen
  std::vector<int32_t> ranks;   // 1 is the most likely token
};

// `top` is how many of the most likely tokens are told; fewer when fewer have a probability. O(V + V * log(top)).
TokenLogprobs ComputeLogprobs(std::span<const float> scores, TokenId token, size_t top,
                              std::span<const TokenId> others);

// Whether the row holds NaN or +infinity, or nothing but -infinity: no distribution can be made of it.
bool IsBadRow(std::span<const float> scores);

}  // namespace oga::search
