// Chooses the next token of one row: repetition penalty, mask, then argmax or temperature -> top-k -> top-p -> draw.
//
// A pure function of its inputs: nothing is remembered between calls, so there is nothing to check-point or roll back,
// and the batch a row sits in cannot matter. The draw uses Random(seed, position); see random.h.
// Tokens are ranked by score, equal scores by lowest id, everywhere. The time is proportional to the vocabulary:
// nothing is sorted, sets of most likely tokens are found by selection.
// Owned by one Engine; scratch is allocated in the constructor and reused (no allocation in Sample).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "step/ids.h"
#include "step/sampling.h"

namespace oga::search {

struct SampleInputs {
  std::span<const float> logits;  // [vocab]
  const SamplingSettings* settings = nullptr;
  std::span<const TokenId> penalized_tokens;  // distinct tokens of the sequence; used when the penalty is not 1
  std::span<const TokenId> masked_tokens;     // never chosen (EOS ids below the minimum length)
  uint64_t seed = 0;
  uint64_t position = 0;  // absolute index the new token gets in the sequence
};

enum class SampleStatus {
  kOk,
  kBadLogits,   // NaN, +infinity, or nothing but -infinity in the row as the model gave it
  kNoCandidate  // every token is masked, or -infinity
};

struct SampleOutcome {
  SampleStatus status = SampleStatus::kOk;
  TokenId token = 0;
};

class Sampler {
 public:
  explicit Sampler(int32_t vocab_size);

  SampleOutcome Sample(const SampleInputs& inputs);

 private:
  // A token that may still be drawn. Lists of candidates are in id order, so sums over them have one order too.
  struct Candidate {
    TokenId token;
    float score;
    double weight;  // its probability relative to the most likely token's
  };

  std::span<const float> AdjustScores(const SampleInputs& inputs);
  void GatherCandidates(std::span<const float> scores, int32_t top_k);
  uint64_t SelectTopK(std::span<const float> scores, size_t top_k);
  void Weigh(float highest, float temperature);
  void KeepNucleus(double top_p);
  uint64_t SelectMass(double mass);
  double TotalWeight() const;
  TokenId Draw(double uniform) const;

  std::vector<float> scores_;  // the row after penalty and mask
  std::vector<Candidate> candidates_;
  std::vector<uint64_t> ranks_;  // scratch of the selections
};

}  // namespace oga::search
