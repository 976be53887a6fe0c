// The lists of token ids among the options of a turn: what is legal, and what they resolve to.
//
// As in sampling_rules.h, setters refuse what is illegal whatever the model, and Resolve what depends on it; all throw
// Error{kInvalidArgument} naming the id found and what is legal.
#pragma once

#include <span>
#include <vector>

#include "step/sampling.h"

namespace oga::search {

// No id is negative. `option` is the name for the message.
void CheckTokens(std::span<const TokenId> tokens, const char* option);

// Ids are not negative and none comes twice; biases are finite.
void CheckBiases(std::span<const TokenBias> biases);

// Every sequence has a token, and no id is negative.
void CheckBannedSequences(std::span<const std::vector<TokenId>> sequences);

// A number of most likely tokens to tell is from 0 to LogprobOptions::kMaxTop. `option` is the name for the message.
void CheckTopLogprobs(int32_t top, const char* option);

// No id is negative, and there are at most LogprobOptions::kMaxTokens.
void CheckLogprobTokens(std::span<const TokenId> tokens);

// Takes the lists over into `settings`, whose scalars are resolved. Refuses an id beyond the vocabulary, and bans that
// leave no token to begin with.
void ResolveTokens(const SamplingOptions& options, const Vocabulary& vocabulary, SamplingSettings& settings);

}  // namespace oga::search
