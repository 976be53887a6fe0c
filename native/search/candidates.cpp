#include "search/candidates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace oga::search {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kBuckets = 2048;
constexpr size_t kLanes = 8;

// One integer that orders tokens by descending score, then ascending index: selections compare a single word, and no
// two tokens are ever equal, so what they select does not depend on how they go about it.
uint64_t Rank(float score, size_t index) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // + 0.0f: -0 and 0 are the same score
  const uint32_t ascending = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
  return (uint64_t{~ascending} << 32) | static_cast<uint32_t>(index);
}

size_t IndexOf(uint64_t rank) { return static_cast<uint32_t>(rank); }

float ScoreOf(uint64_t rank) {
  const auto ascending = ~static_cast<uint32_t>(rank >> 32);
  return std::bit_cast<float>((ascending & 0x80000000u) ? ascending & 0x7fffffffu : ~ascending);
}

}  // namespace

Candidates::Candidates(size_t tokens) : buckets_(kBuckets) {
  candidates_.reserve(tokens);
  ranks_.reserve(tokens);
  keys_.reserve(tokens);
  places_.reserve(tokens);
}

void Candidates::Gather(std::span<const float> scores, float highest, float temperature, size_t top_k) {
  highest_ = highest;
  temperature_ = temperature;
  float lowest = -kInfinity;
  size_t last_index = 0;
  if (top_k > 0 && top_k < scores.size()) {
    const uint64_t last = SelectTopK(scores, top_k);
    lowest = ScoreOf(last);
    last_index = IndexOf(last) + 1;
  }
  candidates_.clear();
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] > lowest || (scores[i] == lowest && i < last_index))) continue;
    const double weight = std::exp(Exponent(scores[i]));
    if (weight > 0.0) candidates_.push_back({static_cast<TokenId>(i), scores[i], weight});
  }
}

// The difference first: it is 0 for the most likely token, so no temperature, however small, makes a NaN.
double Candidates::Exponent(float score) const { return (double{score} - double{highest_}) / double{temperature_}; }

// The rank of the last of the `top_k` most likely tokens. Leaves the rest of the row behind early: once `top_k` tokens
// are known, only a score above the worst of them is worth a look.
uint64_t Candidates::SelectTopK(std::span<const float> scores, size_t top_k) {
  const size_t room = std::min(2 * top_k + 64, scores.size());
  const auto keep_best = [this, top_k] {
    std::nth_element(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(top_k - 1), ranks_.end());
    ranks_.resize(top_k);
  };

  ranks_.clear();
  float floor = -kInfinity;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] > floor)) continue;
    ranks_.push_back(Rank(scores[i], i));
    if (ranks_.size() == room) {
      keep_best();
      floor = ScoreOf(ranks_.back());
    }
  }
  if (ranks_.size() > top_k) keep_best();
  return *std::max_element(ranks_.begin(), ranks_.end());
}

template <typename Keep>
void Candidates::KeepIf(const Keep& keep) {
  // Without a branch: which candidates go looks random to the processor.
  size_t kept = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    candidates_[kept] = candidates_[i];
    kept += keep(i) ? 1 : 0;
  }
  candidates_.resize(kept);
}

// Typical is what surprises as much as is to be expected: the surprise of a token is -log p, and the entropy its
// expectation. Both hold the logarithm of the total weight, which their difference does not.
void Candidates::KeepTypical(double mass) {
  const double total = TotalWeight();
  double expected = 0.0;
  for (const Candidate& candidate : candidates_) expected += candidate.weight * Exponent(candidate.score);
  expected /= total;
  keys_.clear();
  size_t most_likely = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    keys_.push_back(std::abs(Exponent(candidates_[i].score) - expected));
    if (candidates_[i].score > candidates_[most_likely].score) most_likely = i;
  }
  const Place last = SelectMass(mass * total);
  KeepIf([&](size_t i) { return !(last < Place{keys_[i], static_cast<uint32_t>(i)}) || i == most_likely; });
}

void Candidates::KeepNucleus(double mass) {
  const double total = TotalWeight();
  // Tokens this light weigh less than (1 - mass) * total all together: the others reach the mass without them. It leaves
  // the selection a few hundred of the vocabulary in ordinary rows.
  const double negligible = (1.0 - mass) * total / static_cast<double>(candidates_.size());
  KeepIf([&](size_t i) { return candidates_[i].weight >= negligible; });

  keys_.clear();
  for (const Candidate& candidate : candidates_) keys_.push_back(-double{candidate.score});
  const Place last = SelectMass(mass * total);
  KeepIf([&](size_t i) { return !(last < Place{keys_[i], static_cast<uint32_t>(i)}); });
}

void Candidates::KeepMinP(double share) {
  // Weights are relative to the most likely token's, which is still there.
  KeepIf([&](size_t i) { return candidates_[i].weight >= share; });
}

void Candidates::KeepWithin(double deviations, double deviation) {
  const double lowest = double{highest_} - deviations * deviation;
  KeepIf([&](size_t i) { return double{candidates_[i].score} >= lowest; });
}

void Candidates::ExcludeTopChoices(double threshold) {
  const double lightest = threshold * TotalWeight();
  const Candidate* spared = nullptr;  // the least likely of the top choices
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight < lightest) continue;
    if (spared == nullptr || candidate.score <= spared->score) spared = &candidate;
  }
  if (spared == nullptr) return;
  const TokenId kept = spared->token;
  KeepIf([&](size_t i) { return candidates_[i].weight < lightest || candidates_[i].token == kept; });
}

// The place at which the weight of the candidates that come first by key reaches `mass`; the last one if it never does.
// Of many, the range of keys is cut into buckets, and only the bucket in which the mass is reached is looked at closely.
Candidates::Place Candidates::SelectMass(double mass) {
  places_.clear();
  if (keys_.size() <= kBuckets) {
    for (size_t i = 0; i < keys_.size(); ++i) places_.push_back({keys_[i], static_cast<uint32_t>(i)});
    return SelectMassAmongPlaces(mass);
  }
  const auto [least, most] = std::minmax_element(keys_.begin(), keys_.end());
  const double first = *least;
  const double scale = static_cast<double>(kBuckets) / (*most - first);
  const bool usable = scale <= std::numeric_limits<double>::max();  // not when all keys are (nearly) one
  const auto bucket_of = [=](double key) {
    return usable ? std::min(static_cast<size_t>((key - first) * scale), kBuckets - 1) : size_t{0};
  };
  std::fill(buckets_.begin(), buckets_.end(), 0.0);
  for (size_t i = 0; i < keys_.size(); ++i) buckets_[bucket_of(keys_[i])] += candidates_[i].weight;

  size_t reached = 0;
  double taken = 0.0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (buckets_[bucket] == 0.0) continue;
    taken += buckets_[bucket];
    reached = bucket;
    if (taken >= mass) break;
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (bucket_of(keys_[i]) == reached) places_.push_back({keys_[i], static_cast<uint32_t>(i)});
  }
  return SelectMassAmongPlaces(mass - (taken - buckets_[reached]));
}

// Halves the range of places that holds the one by selection, so all rounds together are linear.
Candidates::Place Candidates::SelectMassAmongPlaces(double mass) {
  auto begin = places_.begin();
  auto end = places_.end();
  double taken = 0.0;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    double half = 0.0;
    for (auto place = begin; place != middle; ++place) half += candidates_[place->index].weight;
    if (taken + half >= mass) {
      end = middle;
    } else {
      taken += half;
      begin = middle;
    }
  }
  return *begin;
}

double Candidates::TotalWeight() const {
  // Independent lanes: one running sum is a chain of dependent additions.
  double lanes[kLanes] = {};
  const size_t whole = candidates_.size() - candidates_.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += candidates_[i + lane].weight;
  }
  for (size_t i = whole; i < candidates_.size(); ++i) lanes[i - whole] += candidates_[i].weight;
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

TokenId Candidates::Draw(double uniform) const {
  const double target = uniform * TotalWeight();
  double reached = 0.0;
  for (const Candidate& candidate : candidates_) {
    reached += candidate.weight;
    if (reached > target) return candidate.token;
  }
  return candidates_.back().token;  // the two sums may differ in their last bits
}

}  // namespace oga::search
