// Calls of nothing, in whole or in part: no tokens, rows without any, rows without a past.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention/paged_attention.h"
#include "native/kernels/attention/paged_attention_case.h"

namespace oga::kernels {
namespace {

constexpr CacheType kCacheTypes[] = {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16, CacheType::kInt8};
constexpr ActivationType kActivationTypes[] = {ActivationType::kFloat32, ActivationType::kFloat16,
                                               ActivationType::kBfloat16};

// Every type, with and without the options that change what a row sees.
std::vector<CaseSpec> SpecsOf(const std::vector<RowSpec>& rows) {
  std::vector<CaseSpec> specs;
  for (const CacheType cache : kCacheTypes) {
    for (const ActivationType activations : kActivationTypes) {
      for (const int32_t window : {-1, 1, 37}) {
        CaseSpec spec;
        spec.num_heads = 6;
        spec.head_size = window < 0 ? 64 : 72;
        spec.cache_type = cache;
        spec.activation_type = activations;
        spec.window = window;
        spec.sinks = spec.norm = spec.mapped = window == 37;
        spec.rows = rows;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

TEST(PagedAttentionEmpty, TouchesNothingWithoutTokens) {
  for (const CaseSpec& spec : SpecsOf({{0, 0}, {700, 0}})) {
    const PagedAttentionCase fresh(spec);
    for (const AttentionWay& way : AttentionWays(spec)) {
      for (const int32_t rows : {2, 0}) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        PagedAttentionCase run = fresh;
        PagedAttentionArgs args = run.Args();
        args.shape.num_rows = rows;
        args.query = args.key = args.value = args.block_table = nullptr;
        args.key_cache = args.value_cache = args.output = nullptr;
        EXPECT_EQ(ValidatePagedAttention(args), "");
        way.Compute(args, Serially);
      }
    }
  }
}

// First, last, between others, several in turn, with a past and without.
TEST(PagedAttentionEmpty, DoesNotSeeRowsWithoutTokens) {
  for (const CaseSpec& spec : SpecsOf({{0, 0}, {5, 1}, {700, 0}, {0, 0}, {0, 3}, {2 * kKvSplit + 9, 1}, {16, 0}})) {
    const PagedAttentionCase fresh(spec);
    std::vector<double> expected;
    for (const AttentionWay& way : AttentionWays(spec)) {
      SCOPED_TRACE(way.name + ": " + spec.Describe());
      PagedAttentionCase with = fresh, without = fresh;
      without.RunInChunks(way, 3);  // leaves them out
      for (const int32_t num_threads : {1, 64}) {
        with.num_threads = num_threads;
        with.Run(way);
        EXPECT_TRUE(with.key_cache == without.key_cache && with.value_cache == without.value_cache);
        ASSERT_EQ(std::memcmp(with.output.data(), without.output.data(), 4 * with.output.size()), 0);
      }
      if (expected.empty()) expected = with.ExpectedOutput();
      with.ExpectOutputNear(expected);
    }
  }
}

TEST(PagedAttentionEmpty, BeginsRowsThatHaveNoPast) {
  for (const CaseSpec& spec : SpecsOf({{0, 1}, {0, 2}, {0, 17}, {0, 33}, {0, 1}})) {
    const PagedAttentionCase fresh(spec);
    std::vector<double> expected;
    for (const AttentionWay& way : AttentionWays(spec)) {
      SCOPED_TRACE(way.name + ": " + spec.Describe());
      PagedAttentionCase run = fresh;
      run.Run(way);
      if (expected.empty()) expected = run.ExpectedOutput();
      run.ExpectCacheWritten();
      run.ExpectOutputNear(expected);
    }
  }
}

// Softmax of one position is that position's value, as the cache has it: nothing else may have a part in it.
TEST(PagedAttentionEmpty, GivesTheOnlyVisibleValueAsItIs) {
  for (const int32_t group : {1, 3, 16, 17, 40}) {
    CaseSpec spec;
    spec.num_heads = group;
    spec.num_kv_heads = 1;
    spec.head_size = 24;
    spec.window = 1;
    spec.rows = {{0, 1}, {kKvSplit - 1, 3}, {kKvSplit, 1}, {31, 40}};
    for (const CacheType type : {CacheType::kFloat32, CacheType::kBfloat16}) {
      spec.cache_type = type;
      PagedAttentionCase fresh(spec);
      for (float& value : fresh.value) value = value < 0.0f ? -0.5f : 0.75f;
      for (const AttentionWay& way : AttentionWays(spec)) {
        SCOPED_TRACE(way.name + ": " + spec.Describe());
        PagedAttentionCase run = fresh;
        run.Run(way);
        for (size_t i = 0; i < run.output.size(); ++i) {
          const size_t token = i / (static_cast<size_t>(group) * 24);
          ASSERT_EQ(run.output[i], run.value[token * 24 + i % 24]) << "element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace oga::kernels
