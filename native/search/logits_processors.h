// The stages that change logits before anything is chosen, on greedy and on sampled turns, in the order of the
// contract: repetition, presence and frequency penalty, no-repeat n-gram, DRY, logit bias, banned words, allowed
// tokens, minimum length, grammar mask. step/sampling_table.h cites their definitions.
//
// A pure function of its inputs. A finite logit stays finite whatever is added to it, and -infinity stays -infinity:
// only a ban excludes a token, and nothing brings one back. Padding of the vocabulary is cut off the row.
// A stage that is off is skipped; when all are, the row is the model's own and nothing is copied.
// Owned by one Sampler; memory grows in the constructor and in ReserveHistory only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/sample_inputs.h"
#include "search/suffix_matches.h"

namespace oga::search {

class LogitsProcessors {
 public:
  explicit LogitsProcessors(int32_t sampleable_tokens);

  // Makes room for sequences of up to `tokens` tokens, for rows whose settings search theirs. May throw std::bad_alloc;
  // changes nothing then.
  void ReserveHistory(size_t tokens);

  // The row after every stage: [sampleable_tokens] scores, valid until the next call.
  std::span<const float> Apply(const SampleInputs& inputs);

 private:
  void Penalize(const SampleInputs& inputs);
  void PenalizeOutput(const SampleInputs& inputs);
  void SearchSequence(const SampleInputs& inputs);
  void BanRepeatedNgrams(std::span<const TokenId> sequence, size_t ngram_tokens);
  void PenalizeRepetitions(std::span<const TokenId> sequence, size_t searched_tokens, const SamplingSettings& settings);
  void AddBiases(std::span<const TokenBias> biases);
  void BanSequences(const SampleInputs& inputs);
  void Ban(std::span<const TokenId> tokens);
  void BanOutside(std::span<const uint32_t> bitmask);

  bool InRow(TokenId token) const { return static_cast<size_t>(token) < scores_.size(); }
  void Add(TokenId token, double difference);
  void Ban(TokenId token);

  std::vector<float> scores_;
  SuffixMatches matches_;
  std::vector<uint32_t> longest_;  // by token: the longest repetition it would prolong; all 0 between rows
};

}  // namespace oga::search
