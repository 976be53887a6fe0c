// Chooses the next token of every row of a step: logits processors, then argmax or the warpers and a draw:
//
//   logits -> LogitsProcessors -> greedy: highest score, lowest id
//                              -> sampled: temperature, top-k, typical, top-p, min-p, top-n-sigma, XTC, draw
//                              (Candidates)
//
// A pure function of its inputs: nothing is remembered between calls, so there is nothing to check-point or roll back,
// and the batch a row sits in cannot matter. Draws use Random(seed, position, purpose); see random.h.
// Owned by one Engine; scratch is taken in the constructor and in ReserveHistory. Sample allocates
// log-probabilities where they are asked for, and nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "search/candidates.h"
#include "search/logits_processors.h"
#include "search/sample_inputs.h"

namespace oga::search {

class Sampler {
 public:
  // Rows are `vocab_size` logits wide; ids from `sampleable_tokens` up are never chosen and their logits not looked at.
  Sampler(int32_t vocab_size, int32_t sampleable_tokens);
  explicit Sampler(int32_t vocab_size) : Sampler(vocab_size, vocab_size) {}

  // Makes room for sequences of up to `tokens` tokens, for rows whose settings search theirs. May throw std::bad_alloc;
  // changes nothing then.
  void ReserveHistory(size_t tokens) { processors_.ReserveHistory(tokens); }

  // One outcome per row; rows may have any settings. What is wrong with one row does not touch the others.
  void Sample(std::span<const SampleInputs> rows, std::span<SampleOutcome> outcomes);
  SampleOutcome Sample(const SampleInputs& inputs);

 private:
  TokenId DrawToken(const SampleInputs& inputs, std::span<const float> scores, float highest);

  size_t vocab_size_;
  size_t sampleable_tokens_;
  LogitsProcessors processors_;
  Candidates candidates_;
};

}  // namespace oga::search
