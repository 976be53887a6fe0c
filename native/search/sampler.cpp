#include "search/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "search/random.h"
#include "search/row_scan.h"

namespace oga::search {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Independent lanes, because one running sum is a chain of dependent operations over the whole vocabulary.
constexpr size_t kLanes = 16;

// Of the finite scores; as the mean square of the distances from the highest, whose size is that of the result.
double StandardDeviation(std::span<const float> scores, float highest) {
  double sum[kLanes] = {};
  double squares[kLanes] = {};
  double count[kLanes] = {};
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool finite = scores[i] > -kInfinity;
    const double below = finite ? double{highest} - double{scores[i]} : 0.0;
    const size_t lane = i % kLanes;
    sum[lane] += below;
    squares[lane] += below * below;
    count[lane] += finite ? 1.0 : 0.0;
  }
  double total[3] = {};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    total[0] += count[lane];
    total[1] += sum[lane];
    total[2] += squares[lane];
  }
  const double mean = total[1] / total[0];
  return std::sqrt(std::max(0.0, total[2] / total[0] - mean * mean));
}

}  // namespace

Sampler::Sampler(int32_t vocab_size, int32_t sampleable_tokens)
    : vocab_size_(static_cast<size_t>(vocab_size)),
      sampleable_tokens_(static_cast<size_t>(sampleable_tokens)),
      processors_(sampleable_tokens),
      candidates_(sampleable_tokens_) {
  OGA_CHECK(sampleable_tokens > 0 && sampleable_tokens <= vocab_size);
}

void Sampler::Sample(std::span<const SampleInputs> rows, std::span<SampleOutcome> outcomes) {
  OGA_CHECK(rows.size() == outcomes.size());
  for (size_t i = 0; i < rows.size(); ++i) outcomes[i] = Sample(rows[i]);
}

SampleOutcome Sampler::Sample(const SampleInputs& inputs) {
  OGA_CHECK(inputs.logits.size() == vocab_size_);
  OGA_CHECK(inputs.settings->greedy() || inputs.settings->temperature > 0.0f);

  RowRange range = RangeOf(inputs.logits.first(sampleable_tokens_));
  if (range.bad || range.highest == -kInfinity) return {.status = SampleStatus::kBadLogits};
  const std::span<const float> scores = processors_.Apply(inputs);
  if (scores.data() != inputs.logits.data()) range = RangeOf(scores);
  if (range.highest == -kInfinity) return {.status = SampleStatus::kNoCandidate};
  SampleOutcome outcome;
  if (inputs.settings->greedy()) {
    outcome.token = static_cast<TokenId>(FirstPlaceOf(range.highest, scores));
  } else {
    outcome.token = DrawToken(inputs, scores, range.highest);
  }
  if (const LogprobOptions& wanted = inputs.settings->logprobs; wanted.of_output()) {
    const auto row = wanted.processed ? scores : inputs.logits.first(sampleable_tokens_);
    outcome.logprobs = std::make_shared<const TokenLogprobs>(
        ComputeLogprobs(row, outcome.token, static_cast<size_t>(wanted.top.value_or(0)), wanted.tokens));
  }
  return outcome;
}

TokenId Sampler::DrawToken(const SampleInputs& inputs, std::span<const float> scores, float highest) {
  const SamplingSettings& settings = *inputs.settings;
  const auto random = [&](RandomPurpose purpose) { return Random(inputs.seed, inputs.position, purpose); };
  candidates_.Gather(scores, highest, settings.temperature, static_cast<size_t>(settings.top_k));
  if (settings.typical_p < 1.0f) candidates_.KeepTypical(settings.typical_p);
  if (settings.top_p < 1.0f) candidates_.KeepNucleus(settings.top_p);
  if (settings.min_p > 0.0f) candidates_.KeepMinP(settings.min_p);
  if (settings.top_n_sigma > 0.0f) {
    candidates_.KeepWithin(settings.top_n_sigma, StandardDeviation(scores, highest));
  }
  if (settings.xtc_probability > 0.0f && random(RandomPurpose::kXtc) < settings.xtc_probability) {
    candidates_.ExcludeTopChoices(settings.xtc_threshold);
  }
  return candidates_.Draw(random(RandomPurpose::kTokenDraw));
}

}  // namespace oga::search
