#include "search/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "search/random.h"

namespace oga::search {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

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

bool HasBadValue(std::span<const float> logits) {
  bool bad = false;
  for (const float logit : logits) bad |= !(logit < kInfinity);  // false for NaN too
  return bad;
}

float Highest(std::span<const float> scores) {
  // Independent lanes, because one running maximum is a chain of dependent operations over the whole vocabulary.
  constexpr size_t kLanes = 16;
  float lanes[kLanes];
  std::fill(std::begin(lanes), std::end(lanes), -kInfinity);
  const size_t whole = scores.size() - scores.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = scores[i + lane] > lanes[lane] ? scores[i + lane] : lanes[lane];
    }
  }
  float highest = *std::max_element(std::begin(lanes), std::end(lanes));
  for (size_t i = whole; i < scores.size(); ++i) highest = std::max(highest, scores[i]);
  return highest;
}

float Penalize(float score, float penalty) {
  if (score == -kInfinity) return score;
  const float penalized = score > 0.0f ? score / penalty : score * penalty;
  // An extreme penalty must not turn a finite score into a certain or an impossible token.
  return std::clamp(penalized, -kLargest, kLargest);
}

}  // namespace

Sampler::Sampler(int32_t vocab_size) : scores_(static_cast<size_t>(vocab_size)) {
  candidates_.reserve(scores_.size());
  ranks_.reserve(scores_.size());
}

SampleOutcome Sampler::Sample(const SampleInputs& inputs) {
  const SamplingSettings& settings = *inputs.settings;
  OGA_CHECK(inputs.logits.size() == scores_.size());
  OGA_CHECK(settings.greedy || settings.temperature > 0.0f);

  if (HasBadValue(inputs.logits) || Highest(inputs.logits) == -kInfinity) return {SampleStatus::kBadLogits, 0};
  const std::span<const float> scores = AdjustScores(inputs);
  const float highest = Highest(scores);
  if (highest == -kInfinity) return {SampleStatus::kNoCandidate, 0};
  if (settings.greedy) {
    const auto lowest_id = std::find(scores.begin(), scores.end(), highest);
    return {SampleStatus::kOk, static_cast<TokenId>(lowest_id - scores.begin())};
  }

  GatherCandidates(scores, settings.top_k);
  Weigh(highest, settings.temperature);
  if (settings.top_p < 1.0f) KeepNucleus(settings.top_p);
  return {SampleStatus::kOk, Draw(Random(inputs.seed, inputs.position, RandomPurpose::kTokenDraw))};
}

// The row after penalty and mask; the model's own row when neither acts.
std::span<const float> Sampler::AdjustScores(const SampleInputs& inputs) {
  const float penalty = inputs.settings->repetition_penalty;
  const bool penalizes = penalty != 1.0f && !inputs.penalized_tokens.empty();
  if (!penalizes && inputs.masked_tokens.empty()) return inputs.logits;

  std::copy(inputs.logits.begin(), inputs.logits.end(), scores_.begin());
  if (penalizes) {
    for (const TokenId token : inputs.penalized_tokens) {
      float& score = scores_[static_cast<size_t>(token)];
      score = Penalize(score, penalty);
    }
  }
  for (const TokenId token : inputs.masked_tokens) {
    // A model may name an EOS id that its own logits do not reach.
    if (static_cast<size_t>(token) < scores_.size()) scores_[static_cast<size_t>(token)] = -kInfinity;
  }
  return scores_;
}

void Sampler::GatherCandidates(std::span<const float> scores, int32_t top_k) {
  candidates_.clear();
  const auto count = static_cast<size_t>(top_k);
  if (count == 0 || count >= scores.size()) {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] > -kInfinity) candidates_.push_back({static_cast<TokenId>(i), scores[i], 0.0});
    }
    return;
  }
  const uint64_t last = SelectTopK(scores, count);
  const float lowest = ScoreOf(last);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > lowest || (scores[i] == lowest && i <= IndexOf(last))) {
      candidates_.push_back({static_cast<TokenId>(i), scores[i], 0.0});
    }
  }
}

// The rank of the last of the `top_k` most likely tokens. Leaves the rest of the row behind early: once `top_k` tokens
// are known, only a score above the worst of them is worth a look.
uint64_t Sampler::SelectTopK(std::span<const float> scores, size_t top_k) {
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

void Sampler::Weigh(float highest, float temperature) {
  for (Candidate& candidate : candidates_) {
    // The difference first: it is 0 for the most likely token, so no temperature, however small, makes a NaN.
    candidate.weight = std::exp((double{candidate.score} - double{highest}) / double{temperature});
  }
  std::erase_if(candidates_, [](const Candidate& candidate) { return candidate.weight == 0.0; });
}

// Keeps the smallest set of most likely candidates whose probability reaches `top_p`.
void Sampler::KeepNucleus(double top_p) {
  const double total = TotalWeight();
  // Tokens this light weigh less than (1 - top_p) * total all together: the others reach top_p without them. It leaves
  // the selection a few hundred of the vocabulary in ordinary rows.
  const double negligible = (1.0 - top_p) * total / static_cast<double>(candidates_.size());
  std::erase_if(candidates_, [negligible](const Candidate& candidate) { return candidate.weight < negligible; });

  ranks_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) ranks_.push_back(Rank(candidates_[i].score, i));
  const Candidate last = candidates_[IndexOf(SelectMass(top_p * total))];
  std::erase_if(candidates_, [last](const Candidate& candidate) {
    return candidate.score < last.score || (candidate.score == last.score && candidate.token > last.token);
  });
}

// The rank at which the weight of the best candidates reaches `mass`; the last rank if it never does. Halves the range
// that holds it by selection, so all rounds together are linear.
uint64_t Sampler::SelectMass(double mass) {
  auto begin = ranks_.begin();
  auto end = ranks_.end();
  double taken = 0.0;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    double half = 0.0;
    for (auto rank = begin; rank != middle; ++rank) half += candidates_[IndexOf(*rank)].weight;
    if (taken + half >= mass) {
      end = middle;
    } else {
      taken += half;
      begin = middle;
    }
  }
  return *begin;
}

double Sampler::TotalWeight() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

// Inverse of the cumulative distribution over the candidates in id order.
TokenId Sampler::Draw(double uniform) const {
  const double target = uniform * TotalWeight();
  double reached = 0.0;
  for (const Candidate& candidate : candidates_) {
    reached += candidate.weight;
    if (reached > target) return candidate.token;
  }
  return candidates_.back().token;  // the product above may round up to the whole weight
}

}  // namespace oga::search
