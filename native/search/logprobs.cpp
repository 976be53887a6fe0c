#include "search/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oga::search {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The order of tokens by likelihood: higher score first, equal scores by lowest id.
struct MoreLikely {
  std::span<const float> scores;

  bool operator()(TokenId a, TokenId b) const {
    const float score_a = scores[static_cast<size_t>(a)];
    const float score_b = scores[static_cast<size_t>(b)];
    return score_a != score_b ? score_a > score_b : a < b;
  }
};

double LogSumExp(std::span<const float> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(double{score} - highest);
  return highest + std::log(sum);
}

// A heap of the best so far, its worst on top: most of the vocabulary is dismissed by one comparison.
std::vector<TokenId> MostLikely(std::span<const float> scores, size_t count) {
  const MoreLikely more_likely{scores};
  std::vector<TokenId> best;
  best.reserve(count + 1);
  for (TokenId token = 0; static_cast<size_t>(token) < scores.size() && count > 0; ++token) {
    if (scores[static_cast<size_t>(token)] == -kInfinity) continue;
    if (best.size() == count && !more_likely(token, best.front())) continue;
    best.push_back(token);
    std::push_heap(best.begin(), best.end(), more_likely);
    if (best.size() <= count) continue;
    std::pop_heap(best.begin(), best.end(), more_likely);
    best.pop_back();
  }
  std::sort_heap(best.begin(), best.end(), more_likely);
  return best;
}

int32_t RankOf(std::span<const float> scores, TokenId token) {
  const float score = scores[static_cast<size_t>(token)];
  int32_t rank = 1;
  for (const float other : scores) rank += other > score;
  for (size_t id = 0; id < static_cast<size_t>(token); ++id) rank += scores[id] == score;
  return rank;
}

}  // namespace

TokenLogprobs ComputeLogprobs(std::span<const float> scores, TokenId token, size_t top,
                              std::span<const TokenId> others) {
  const double log_sum = LogSumExp(scores);
  const std::vector<TokenId> best = MostLikely(scores, top);
  TokenLogprobs result;
  const size_t count = 1 + best.size() + others.size();
  result.tokens.reserve(count);
  result.logprobs.reserve(count);
  result.ranks.reserve(count);
  const auto add = [&](TokenId id, int32_t rank) {
    result.tokens.push_back(id);
    result.logprobs.push_back(static_cast<float>(scores[static_cast<size_t>(id)] - log_sum));
    result.ranks.push_back(rank);
  };
  const auto add_any = [&](TokenId id) {
    if (static_cast<size_t>(id) < scores.size()) return add(id, RankOf(scores, id));
    // Padding of the vocabulary: nothing could have chosen it.
    result.tokens.push_back(id);
    result.logprobs.push_back(-kInfinity);
    result.ranks.push_back(static_cast<int32_t>(scores.size()) + 1);
  };
  add_any(token);
  for (size_t i = 0; i < best.size(); ++i) add(best[i], static_cast<int32_t>(i) + 1);
  for (const TokenId other : others) add_any(other);
  return result;
}

bool IsBadRow(std::span<const float> scores) {
  bool any = false;
  for (const float score : scores) {
    if (!(score < kInfinity)) return true;  // true for NaN too
    any |= score > -kInfinity;
  }
  return !any;
}

}  // namespace oga::search
