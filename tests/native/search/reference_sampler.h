// What Sampler promises, written the slow and obvious way: sort the whole row, in double. Shared by the sampler tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "search/random.h"
#include "search/sampler.h"

namespace oga::search {

// The tokens that may be drawn with their probabilities, in id order; empty when there is none.
using Distribution = std::vector<std::pair<TokenId, double>>;

inline std::vector<float> ReferenceScores(const SampleInputs& inputs) {
  std::vector<float> scores(inputs.logits.begin(), inputs.logits.end());
  for (const TokenId token : inputs.penalized_tokens) {
    float& score = scores[static_cast<size_t>(token)];
    score = score > 0.0f ? score / inputs.settings->repetition_penalty : score * inputs.settings->repetition_penalty;
  }
  for (const TokenId token : inputs.masked_tokens) {
    scores[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
  return scores;
}

inline Distribution ReferenceDistribution(const SampleInputs& inputs) {
  const SamplingSettings& settings = *inputs.settings;
  const std::vector<float> scores = ReferenceScores(inputs);
  std::vector<TokenId> ranked;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isfinite(scores[i])) ranked.push_back(static_cast<TokenId>(i));
  }
  if (ranked.empty()) return {};
  const auto score_of = [&](TokenId token) { return scores[static_cast<size_t>(token)]; };
  std::stable_sort(ranked.begin(), ranked.end(), [&](TokenId a, TokenId b) { return score_of(a) > score_of(b); });
  if (settings.greedy) return {{ranked.front(), 1.0}};

  if (settings.top_k > 0 && ranked.size() > static_cast<size_t>(settings.top_k)) {
    ranked.resize(static_cast<size_t>(settings.top_k));
  }
  const double highest = score_of(ranked.front());
  const auto weight_of = [&](TokenId token) { return std::exp((score_of(token) - highest) / settings.temperature); };
  if (settings.top_p < 1.0f) {
    double total = 0.0;
    for (const TokenId token : ranked) total += weight_of(token);
    double reached = 0.0;
    size_t kept = 0;
    while (kept < ranked.size() && reached < settings.top_p * total) reached += weight_of(ranked[kept++]);
    ranked.resize(std::max<size_t>(kept, 1));
  }
  std::sort(ranked.begin(), ranked.end());
  double total = 0.0;
  for (const TokenId token : ranked) total += weight_of(token);
  Distribution distribution;
  for (const TokenId token : ranked) distribution.emplace_back(token, weight_of(token) / total);
  return distribution;
}

// The token at which the cumulative distribution passes the uniform number of the draw.
inline TokenId ReferenceDraw(const SampleInputs& inputs, const Distribution& distribution) {
  const double uniform = Random(inputs.seed, inputs.position, RandomPurpose::kTokenDraw);
  double reached = 0.0;
  for (const auto& [token, probability] : distribution) {
    reached += probability;
    if (reached > uniform) return token;
  }
  return distribution.back().first;
}

}  // namespace oga::search
