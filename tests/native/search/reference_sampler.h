// What Sampler promises, written the slow and obvious way: whole arrays, in double, sorted, with every count taken from
// the sequence itself. Shared by the sampler tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "search/bitmask.h"
#include "search/distinct_tokens.h"
#include "search/random.h"
#include "search/sampler.h"
#include "search/token_counts.h"

namespace oga::search {

// A row with everything that its token depends on, in the plainest form.
struct RowCase {
  std::vector<float> logits;
  SamplingSettings settings;
  std::vector<TokenId> sequence;
  size_t output_begin = 0;  // index in the sequence of the turn's first output token
  std::vector<TokenId> eos_token_ids;
  bool may_end = true;
  std::vector<bool> grammar;     // by token; empty: every token
  size_t sampleable_tokens = 0;  // 0: all
  uint64_t seed = 1;
  uint64_t position = 0;

  size_t sampleable() const { return sampleable_tokens == 0 ? logits.size() : sampleable_tokens; }
};

// The views that a Sampler wants, over storage of their own.
class CaseInputs {
 public:
  explicit CaseInputs(const RowCase& row)
      : distinct_(static_cast<int32_t>(row.logits.size())), counts_(static_cast<int32_t>(row.logits.size())) {
    distinct_.Reserve(row.sequence.size());
    counts_.Reserve(row.sequence.size());
    for (const TokenId token : row.sequence) distinct_.Append(token);
    for (size_t i = row.output_begin; i < row.sequence.size(); ++i) counts_.Append(row.sequence[i]);
    if (!row.grammar.empty()) bitmask_.assign(BitmaskWords(row.grammar.size()), 0);
    for (size_t i = 0; i < row.grammar.size(); ++i) {
      if (row.grammar[i]) SetBit(bitmask_, static_cast<TokenId>(i));
    }
    inputs_ = {row.logits,        &row.settings, row.sequence, distinct_.values(), counts_.values(),
               row.eos_token_ids, row.may_end,   bitmask_,     row.seed,           row.position};
  }
  CaseInputs(const CaseInputs&) = delete;
  CaseInputs& operator=(const CaseInputs&) = delete;

  const SampleInputs& get() const { return inputs_; }

 private:
  DistinctTokens distinct_;
  TokenCounts counts_;
  std::vector<uint32_t> bitmask_;
  SampleInputs inputs_;
};

namespace reference {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
using Scores = std::vector<double>;  // each as a float rounds it

inline bool Has(const std::vector<TokenId>& tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

inline void Add(Scores& scores, TokenId token, double difference) {
  const auto index = static_cast<size_t>(token);
  if (index >= scores.size() || scores[index] == -kInf) return;
  const double largest = std::numeric_limits<float>::max();
  scores[index] = static_cast<float>(std::clamp(scores[index] + difference, -largest, largest));
}

inline void Ban(Scores& scores, TokenId token) {
  if (static_cast<size_t>(token) < scores.size()) scores[static_cast<size_t>(token)] = -kInf;
}

inline void Repetition(Scores& scores, const RowCase& row) {
  if (row.settings.repetition_penalty == 1.0f) return;
  for (const TokenId token : std::set<TokenId>(row.sequence.begin(), row.sequence.end())) {
    if (static_cast<size_t>(token) >= scores.size()) continue;
    double& score = scores[static_cast<size_t>(token)];
    const auto exact = static_cast<float>(score);
    score = exact > 0.0f ? exact / row.settings.repetition_penalty : exact * row.settings.repetition_penalty;
  }
}

inline void PresenceAndFrequency(Scores& scores, const RowCase& row) {
  std::map<TokenId, int> counts;
  for (size_t i = row.output_begin; i < row.sequence.size(); ++i) ++counts[row.sequence[i]];
  for (const auto& [token, count] : counts) {
    Add(scores, token, -(double{row.settings.presence_penalty} + double{row.settings.frequency_penalty} * count));
  }
}

inline void Ngrams(Scores& scores, const RowCase& row) {
  const auto size = static_cast<size_t>(row.settings.no_repeat_ngram_size);
  if (size == 0) return;
  for (size_t token = 0; token < scores.size(); ++token) {
    std::vector<TokenId> longer = row.sequence;
    longer.push_back(static_cast<TokenId>(token));
    if (longer.size() < size) continue;
    const std::vector<TokenId> ngram(longer.end() - static_cast<std::ptrdiff_t>(size), longer.end());
    const auto found = std::search(row.sequence.begin(), row.sequence.end(), ngram.begin(), ngram.end());
    if (found != row.sequence.end()) Ban(scores, static_cast<TokenId>(token));
  }
}

// How many tokens right before `at` equal the end of the window, stopping at a breaker.
inline size_t Repeated(const std::vector<TokenId>& window, size_t at, const std::vector<TokenId>& breakers) {
  size_t length = 0;
  while (length < at && window[at - 1 - length] == window[window.size() - 1 - length] &&
         !Has(breakers, window[at - 1 - length])) {
    ++length;
  }
  return length;
}

inline void Dry(Scores& scores, const RowCase& row) {
  const SamplingSettings& settings = row.settings;
  if (settings.dry_multiplier == 0.0f) return;
  std::vector<TokenId> window = row.sequence;
  const auto range = static_cast<size_t>(settings.dry_range);
  if (range > 0 && window.size() > range)
    window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(range));
  std::map<TokenId, size_t> longest;
  for (size_t at = 1; at < window.size(); ++at) {
    const size_t length = Repeated(window, at, settings.dry_breakers);
    if (length >= static_cast<size_t>(settings.dry_allowed_length)) {
      longest[window[at]] = std::max(longest[window[at]], length);
    }
  }
  for (const auto& [token, length] : longest) {
    if (Has(settings.dry_breakers, token)) continue;
    const double exponent = static_cast<double>(length) - settings.dry_allowed_length;
    Add(scores, token, -double{settings.dry_multiplier} * std::pow(double{settings.dry_base}, exponent));
  }
}

inline void BannedSequences(Scores& scores, const RowCase& row) {
  for (const std::vector<TokenId>& banned : row.settings.banned_sequences) {
    std::vector<TokenId> longer = row.sequence;
    longer.push_back(banned.back());
    if (longer.size() < banned.size()) continue;
    if (std::equal(banned.rbegin(), banned.rend(), longer.rbegin())) Ban(scores, banned.back());
  }
}

inline void Masks(Scores& scores, const RowCase& row) {
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    const std::vector<uint32_t>& allowed = row.settings.allowed_bitmask;
    const bool ends = Has(row.eos_token_ids, token) || Has(row.settings.stop_tokens, token);
    const bool excluded = (!allowed.empty() && !HasBit(allowed, token)) || (!row.may_end && ends) ||
                          (!row.grammar.empty() && !row.grammar[i]);
    if (excluded) Ban(scores, token);
  }
}

}  // namespace reference

inline std::vector<double> ReferenceScores(const RowCase& row) {
  reference::Scores scores(row.logits.begin(), row.logits.begin() + static_cast<std::ptrdiff_t>(row.sampleable()));
  reference::Repetition(scores, row);
  reference::PresenceAndFrequency(scores, row);
  reference::Ngrams(scores, row);
  reference::Dry(scores, row);
  for (const TokenBias& bias : row.settings.logit_bias) reference::Add(scores, bias.token, bias.bias);
  reference::BannedSequences(scores, row);
  reference::Masks(scores, row);
  return scores;
}

// The tokens that may be drawn with their probabilities, in id order; empty when there is none.
using Distribution = std::vector<std::pair<TokenId, double>>;

// One row's candidates, most likely first, and the warpers as their papers put them.
class ReferenceWarpers {
 public:
  ReferenceWarpers(const std::vector<double>& scores, double temperature) : scores_(scores) {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (std::isfinite(scores[i])) ranked_.push_back(static_cast<TokenId>(i));
    }
    std::stable_sort(ranked_.begin(), ranked_.end(), [&](TokenId a, TokenId b) { return Score(a) > Score(b); });
    if (ranked_.empty()) return;
    highest_ = Score(ranked_.front());
    temperature_ = temperature;
  }

  bool empty() const { return ranked_.empty(); }
  TokenId most_likely() const { return ranked_.front(); }

  void TopK(size_t k) { ranked_.resize(std::min(k, ranked_.size())); }

  void Typical(double mass) {
    const std::vector<double> probabilities = Probabilities();
    double entropy = 0.0;
    for (const double p : probabilities) entropy -= p > 0.0 ? p * std::log(p) : 0.0;
    std::vector<size_t> order(ranked_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const double log_total = std::log(TotalWeight());
    const auto deviation = [&](size_t i) {
      return std::abs((Score(ranked_[i]) - highest_) / temperature_ - log_total + entropy);
    };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::make_pair(deviation(a), ranked_[a]) < std::make_pair(deviation(b), ranked_[b]);
    });
    std::vector<bool> kept(scores_.size());
    kept[static_cast<size_t>(most_likely())] = true;
    double reached = 0.0;
    for (const size_t i : order) {
      kept[static_cast<size_t>(ranked_[i])] = true;
      reached += probabilities[i];
      if (reached >= mass) break;
    }
    KeepIf([&](TokenId token) { return kept[static_cast<size_t>(token)]; });
  }

  void TopP(double mass) {
    const std::vector<double> probabilities = Probabilities();
    double reached = 0.0;
    size_t kept = 0;
    while (kept < ranked_.size() && reached < mass) reached += probabilities[kept++];
    ranked_.resize(std::max<size_t>(kept, 1));
  }

  void MinP(double share) {
    const double most = Weight(most_likely());
    KeepIf([&](TokenId token) { return Weight(token) >= share * most; });
  }

  void TopNSigma(double n) {
    double mean = 0.0;
    double count = 0.0;
    for (const double score : scores_) {
      if (!std::isfinite(score)) continue;
      mean += score;
      ++count;
    }
    mean /= count;
    double variance = 0.0;
    for (const double score : scores_) variance += std::isfinite(score) ? (score - mean) * (score - mean) / count : 0.0;
    const double lowest = highest_ - n * std::sqrt(variance);
    KeepIf([&](TokenId token) { return Score(token) >= lowest; });
  }

  void ExcludeTopChoices(double threshold) {
    const std::vector<double> probabilities = Probabilities();
    size_t top = 0;
    while (top < ranked_.size() && probabilities[top] >= threshold) ++top;
    if (top > 1) ranked_.erase(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(top - 1));
  }

  Distribution Result() {
    std::sort(ranked_.begin(), ranked_.end());
    const std::vector<double> probabilities = Probabilities();
    Distribution distribution;
    for (size_t i = 0; i < ranked_.size(); ++i) distribution.emplace_back(ranked_[i], probabilities[i]);
    return distribution;
  }

 private:
  double Score(TokenId token) const { return scores_[static_cast<size_t>(token)]; }
  double Weight(TokenId token) const { return std::exp((Score(token) - highest_) / temperature_); }
  double TotalWeight() const {
    double total = 0.0;
    for (const TokenId token : ranked_) total += Weight(token);
    return total;
  }
  std::vector<double> Probabilities() const {
    const double total = TotalWeight();
    std::vector<double> probabilities;
    for (const TokenId token : ranked_) probabilities.push_back(Weight(token) / total);
    return probabilities;
  }
  template <typename Keep>
  void KeepIf(const Keep& keep) {
    std::erase_if(ranked_, [&](TokenId token) { return !keep(token); });
  }

  std::vector<double> scores_;
  std::vector<TokenId> ranked_;
  double highest_ = 0.0;
  double temperature_ = 1.0;
};

// `xtc_acts` decides what XTC's own draw decides.
inline Distribution ReferenceDistribution(const RowCase& row, bool xtc_acts) {
  const SamplingSettings& settings = row.settings;
  ReferenceWarpers warpers(ReferenceScores(row), settings.temperature);
  if (warpers.empty()) return {};
  if (settings.greedy()) return {{warpers.most_likely(), 1.0}};
  if (settings.top_k > 0) warpers.TopK(static_cast<size_t>(settings.top_k));
  if (settings.typical_p < 1.0f) warpers.Typical(settings.typical_p);
  if (settings.top_p < 1.0f) warpers.TopP(settings.top_p);
  if (settings.min_p > 0.0f) warpers.MinP(settings.min_p);
  if (settings.top_n_sigma > 0.0f) warpers.TopNSigma(settings.top_n_sigma);
  if (xtc_acts) warpers.ExcludeTopChoices(settings.xtc_threshold);
  return warpers.Result();
}

inline Distribution ReferenceDistribution(const RowCase& row) {
  const double uniform = Random(row.seed, row.position, RandomPurpose::kXtc);
  return ReferenceDistribution(row, uniform < row.settings.xtc_probability);
}

// The token at which the cumulative distribution passes the uniform number of the draw.
inline TokenId ReferenceDraw(const RowCase& row, const Distribution& distribution) {
  const double uniform = Random(row.seed, row.position, RandomPurpose::kTokenDraw);
  double reached = 0.0;
  for (const auto& [token, probability] : distribution) {
    reached += probability;
    if (reached > uniform) return token;
  }
  return distribution.back().first;
}

}  // namespace oga::search
