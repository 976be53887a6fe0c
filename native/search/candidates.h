// The tokens that may still be drawn, and the warpers that thin them out. step/sampling_table.h cites their
// definitions.
//
// Tokens are ranked by score, equal scores by lowest id, everywhere. The time of each warper is proportional to what
// the one before it left, the vocabulary at most: nothing is sorted, sets of most likely tokens are found by selection.
// A warper acts on the distribution that the one before it left, normalised anew. None drops the most likely token, but
// XTC, which exists for that.
// Owned by one Sampler; memory is taken in the constructor.
//
// C1  candidates are in id order, so that sums over them have one order too
// C2  no weight is 0, and there is at least one candidate after Gather
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step/ids.h"

namespace oga::search {

class Candidates {
 public:
  explicit Candidates(size_t tokens);

  // The finite scores of the row, with the weights that `temperature` gives them; of them only the `top_k` most likely,
  // when that is not 0. `highest` is the row's highest score.
  void Gather(std::span<const float> scores, float highest, float temperature, size_t top_k);

  void KeepTypical(double mass);
  void KeepNucleus(double mass);
  void KeepMinP(double share);
  // `deviation` is the standard deviation of the row's finite scores.
  void KeepWithin(double deviations, double deviation);
  void ExcludeTopChoices(double threshold);

  // Inverse of the cumulative distribution over the candidates in id order; `uniform` in [0, 1).
  TokenId Draw(double uniform) const;

 private:
  struct Candidate {
    TokenId token;
    float score;
    double weight;  // its probability relative to the most likely token's
  };
  // The place of a candidate in the order of some key, equal keys by index.
  struct Place {
    double key;
    uint32_t index;

    bool operator<(const Place& other) const { return key != other.key ? key < other.key : index < other.index; }
  };

  // Keeps those for which `keep(index)` is true.
  template <typename Keep>
  void KeepIf(const Keep& keep);
  uint64_t SelectTopK(std::span<const float> scores, size_t top_k);
  Place SelectMass(double mass);
  Place SelectMassAmongPlaces(double mass);
  double TotalWeight() const;
  double Exponent(float score) const;

  std::vector<Candidate> candidates_;
  std::vector<uint64_t> ranks_;  // scratch of SelectTopK
  std::vector<double> keys_;     // by candidate: what SelectMass orders them by
  std::vector<Place> places_;    // scratch of SelectMass
  std::vector<double> buckets_;  // the same
  float highest_ = 0;
  float temperature_ = 1;
};

}  // namespace oga::search
