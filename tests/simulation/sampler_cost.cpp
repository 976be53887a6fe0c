#include "simulation/sampler_cost.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "search/sampler.h"

namespace oga::testing {

namespace {

constexpr int32_t kVocab = 262144;
constexpr size_t kSequenceTokens = 8192;
constexpr int kRepeats = 31;

struct CostCase {
  const char* name;
  void (*change)(SamplingSettings&);
};

const CostCase kCases[] = {
    {"greedy", [](SamplingSettings&) {}},
    {"greedy, a bias",
     [](SamplingSettings& settings) {
       settings.logit_bias = {{5, 1.0f}};
     }},
    {"greedy, DRY over 8192 tokens", [](SamplingSettings& settings) { settings.dry_multiplier = 0.8f; }},
    {"top_k 50, top_p 0.9",
     [](SamplingSettings& settings) {
       settings.do_sample = true;
       settings.top_k = 50;
       settings.top_p = 0.9f;
     }},
    {"temperature alone", [](SamplingSettings& settings) { settings.do_sample = true; }},
    {"top_p 0.9",
     [](SamplingSettings& settings) {
       settings.do_sample = true;
       settings.top_p = 0.9f;
     }},
    {"typical_p 0.9",
     [](SamplingSettings& settings) {
       settings.do_sample = true;
       settings.typical_p = 0.9f;
     }},
    {"min_p 0.05",
     [](SamplingSettings& settings) {
       settings.do_sample = true;
       settings.min_p = 0.05f;
     }},
};

// The median over some draws from a row without a clear favourite, which leaves the warpers the most to do.
double MedianMicroseconds(const CostCase& cost, int32_t vocab) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (float& logit : logits) logit = normal(random);
  std::vector<TokenId> sequence(kSequenceTokens);
  for (TokenId& token : sequence) token = static_cast<TokenId>(random() % 1000);
  SamplingSettings settings;
  cost.change(settings);
  search::Sampler sampler(vocab);
  sampler.ReserveHistory(sequence.size());
  search::SampleInputs inputs;
  inputs.logits = logits;
  inputs.settings = &settings;
  inputs.sequence = sequence;
  std::vector<double> microseconds;
  for (; inputs.position < kRepeats; ++inputs.position) {
    const auto start = std::chrono::steady_clock::now();
    sampler.Sample(inputs);
    const auto end = std::chrono::steady_clock::now();
    microseconds.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + kRepeats / 2, microseconds.end());
  return microseconds[kRepeats / 2];
}

}  // namespace

void PrintSamplerCost() {
  std::printf("a row of %d logits               us/row  against a quarter of it\n", kVocab);
  for (const CostCase& cost : kCases) {
    const double whole = MedianMicroseconds(cost, kVocab);
    std::printf("%-32s  %8.1f  %8.2f\n", cost.name, whole, whole / MedianMicroseconds(cost, kVocab / 4));
  }
}

}  // namespace oga::testing
