// What every variant computes, against the double-precision reference.
#include "kernels/attention/paged_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "native/kernels/attention/paged_attention_case.h"

namespace oga::kernels {
namespace {

// Runs the case by every variant and compares output and caches with the reference. The caches must be equal to the bit
// among variants: the rotation is the same plain arithmetic in all of them.
void ExpectReference(const CaseSpec& spec) {
  SCOPED_TRACE(spec.Describe());
  std::vector<double> expected;
  std::vector<uint8_t> keys, values;
  for (const AttentionWay& way : AttentionWays(spec)) {
    SCOPED_TRACE(way.name);
    PagedAttentionCase run(spec);
    run.Run(way);
    if (expected.empty()) {
      expected = run.ExpectedOutput();
      run.ExpectCacheWritten();
      keys = run.key_cache;
      values = run.value_cache;
    }
    EXPECT_TRUE(run.key_cache == keys && run.value_cache == values) << "caches differ from the first variant's";
    run.ExpectOutputNear(expected);
  }
}

constexpr CacheType kCacheTypes[] = {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16, CacheType::kInt8};
constexpr ActivationType kActivationTypes[] = {ActivationType::kFloat32, ActivationType::kFloat16,
                                               ActivationType::kBfloat16};

TEST(PagedAttention, MatchesTheReferenceForEveryHeadSizeAndGroupOfHeads) {
  for (const int32_t head_size : {32, 64, 80, 96, 128, 256}) {
    for (int32_t group = 1; group <= 8; ++group) {
      CaseSpec spec;
      spec.num_kv_heads = group % 2 == 0 ? 1 : 2;
      spec.num_heads = spec.num_kv_heads * group;
      spec.head_size = head_size;
      spec.cache_type = kCacheTypes[group / 2 % 4];
      spec.channel_scales = group == 7;
      spec.rows = {{40, 1}, {0, 13}, {270, 1}, {5, 9}, {30, 2}};
      spec.seed = static_cast<uint32_t>(head_size + group);
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, MatchesTheReferenceForHeadSizesThatEndInHalfAVector) {
  for (const int32_t head_size : {8, 24, 72, 136, 512}) {
    for (const CacheType type : kCacheTypes) {
      CaseSpec spec;
      spec.head_size = head_size;
      spec.cache_type = type;
      spec.rows = {{19, 1}, {0, 20}, {300, 3}};
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, MatchesTheReferenceWhenManyHeadsShareOneKvHead) {
  for (const int32_t num_heads : {16, 71}) {
    CaseSpec spec;
    spec.num_heads = num_heads;
    spec.num_kv_heads = 1;
    spec.rows = {{600, 1}, {0, 5}};
    ExpectReference(spec);
  }
}

TEST(PagedAttention, MatchesTheReferenceAtTheBordersOfBlocks) {
  for (const int32_t block_size : {1, 4, 16, 256}) {
    for (const CacheType type : kCacheTypes) {
      CaseSpec spec;
      spec.head_size = 32;
      spec.block_size = block_size;
      spec.cache_type = type;
      for (const int32_t length :
           {block_size - 1, block_size, block_size + 1, 3 * block_size - 1, 3 * block_size, 3 * block_size + 1}) {
        if (length > 1) spec.rows.push_back({length - 1, 1});
        if (length > 0) spec.rows.push_back({length / 2, length - length / 2});
      }
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, MatchesTheReferenceAtTheBordersOfSplits) {
  for (const CacheType type : kCacheTypes) {
    CaseSpec spec;
    spec.num_heads = 3;
    spec.num_kv_heads = 1;
    spec.cache_type = type;
    for (const int32_t length : {127, 128, 129, kKvSplit - 1, kKvSplit, kKvSplit + 1, 300, 1000}) {
      spec.rows.push_back({length - 1, 1});
      spec.rows.push_back({length - 5, 5});
    }
    ExpectReference(spec);
    spec.rows = {{0, kKvSplit + 3}, {kKvSplit - 2, 3}, {2 * kKvSplit, 1}};
    ExpectReference(spec);
  }
}

TEST(PagedAttention, RotatesInBothLayoutsAndOnlyTheLeadingDimensions) {
  for (const bool interleaved : {false, true}) {
    for (const int32_t rotary_dim : {2, 16, 18, 40, 80}) {
      CaseSpec spec;
      spec.head_size = 80;
      spec.rotary_interleaved = interleaved;
      spec.rotary_dim = rotary_dim;
      spec.rows = {{100, 1}, {0, 17}};
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, AppliesACustomScaleAndWorksWithoutRotation) {
  for (const float scale : {0.01f, 0.3f}) {
    CaseSpec spec;
    spec.scale = scale;
    spec.rotary = false;
    spec.rows = {{50, 1}, {0, 17}};
    ExpectReference(spec);
  }
}

TEST(PagedAttention, MatchesTheReferenceWithAWindow) {
  constexpr int32_t kBlock = 16;
  for (const int32_t window : {1, 2, kBlock - 1, kBlock, kBlock + 1, kKvSplit, 700, 5000}) {
    for (const CacheType type : kCacheTypes) {
      CaseSpec spec;
      spec.head_size = 32;
      spec.block_size = kBlock;
      spec.window = window;
      spec.cache_type = type;
      spec.rows = {{0, 70}, {33, 1}, {16, 1}, {15, 18}, {900, 1}, {kKvSplit - 3, 40}, {600, 90}};
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, MatchesTheReferenceForEveryTypeOfActivationsAndCache) {
  for (const ActivationType activations : kActivationTypes) {
    for (const CacheType type : kCacheTypes) {
      for (const bool packed : {false, true}) {
        CaseSpec spec;
        spec.head_size = 72;
        spec.rotary_dim = 36;  // half of which is no whole vector
        spec.activation_type = activations;
        spec.cache_type = type;
        spec.channel_scales = packed;
        spec.packed = packed;
        spec.rows = {{40, 1}, {0, 13}, {270, 2}};
        ExpectReference(spec);
      }
    }
  }
}

TEST(PagedAttention, CapsScoresSoftly) {
  for (const float softcap : {0.5f, 5.0f, 50.0f}) {
    for (const int32_t window : {-1, 20}) {
      CaseSpec spec;
      spec.softcap = softcap;
      spec.window = window;
      spec.scale = 0.4f;  // scores on both sides of the cap
      spec.rows = {{40, 1}, {0, 13}, {270, 2}};
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, LetsSinksTakeTheirShareOfTheSoftmax) {
  for (const ActivationType activations : kActivationTypes) {
    CaseSpec spec;
    spec.sinks = true;
    spec.activation_type = activations;
    spec.rows = {{40, 1}, {0, 13}, {700, 1}};
    ExpectReference(spec);
  }
}

// From a sink that is nothing to one that leaves nothing, above and below every score.
TEST(PagedAttention, ReachesTheLimitsOfASink) {
  for (const CpuIsa isa : AvailableIsas()) {
    CaseSpec spec;
    spec.sinks = true;
    spec.rows = {{0, 5}};
    PagedAttentionCase run(spec);
    constexpr float kEndless = std::numeric_limits<float>::infinity();
    run.sinks = {-kEndless, -1e30f, 200.0f, kEndless};
    run.Run(isa);
    CaseSpec plain_spec = spec;
    plain_spec.sinks = false;
    PagedAttentionCase plain(plain_spec);
    plain.Run(isa);
    for (int32_t token = 0; token < 5; ++token) {
      for (int32_t d = 0; d < 4 * spec.head_size; ++d) {
        const size_t i = static_cast<size_t>(token) * 4 * spec.head_size + d;
        EXPECT_EQ(run.output[i], d < 2 * spec.head_size ? plain.output[i] : 0.0f)
            << CpuIsaName(isa) << ", element " << i;
      }
    }
  }
}

TEST(PagedAttention, NormalisesQueriesAndKeysBeforeTheirRotation) {
  for (const ActivationType activations : kActivationTypes) {
    for (const float epsilon : {1e-6f, 0.5f}) {
      for (const int32_t head_size : {64, 72}) {
        CaseSpec spec;
        spec.head_size = head_size;
        spec.norm = true;
        spec.norm_epsilon = epsilon;
        spec.scale = 0.05f;
        spec.activation_type = activations;
        spec.rows = {{40, 1}, {0, 13}, {270, 2}};
        ExpectReference(spec);
      }
    }
  }
}

TEST(PagedAttention, RotatesBehindAnOffset) {
  for (const bool interleaved : {false, true}) {
    for (const int32_t rotary_dim : {0, 18}) {
      CaseSpec spec;
      spec.rotary_offset = 24;
      spec.rotary_dim = rotary_dim;
      spec.rotary_interleaved = interleaved;
      spec.rows = {{40, 1}, {0, 13}};
      ExpectReference(spec);
    }
  }
}

TEST(PagedAttention, WritesWhereASlotMappingSays) {
  for (const CpuIsa isa : AvailableIsas()) {
    CaseSpec spec;
    spec.rows = {{20, 1}, {0, 19}};
    PagedAttentionCase by_table(spec);
    by_table.Run(isa);
    spec.mapped = true;
    PagedAttentionCase by_mapping(spec), again(spec);
    by_mapping.Run(isa);
    EXPECT_EQ(std::memcmp(by_table.output.data(), by_mapping.output.data(), 4 * by_table.output.size()), 0);
    EXPECT_TRUE(by_table.key_cache == by_mapping.key_cache && by_table.value_cache == by_mapping.value_cache);
    // With everything in the cache already, nothing is written, and nothing else changes.
    again.key_cache = by_table.key_cache;
    again.value_cache = by_table.value_cache;
    std::fill(again.key.begin(), again.key.end(), 0.0f);
    std::fill(again.value.begin(), again.value.end(), 0.0f);
    PagedAttentionArgs args = again.Args();
    const std::vector<int32_t> nowhere(again.num_tokens, -1);
    args.slot_mapping = nowhere.data();
    ASSERT_EQ(ValidatePagedAttention(args), "");
    PagedAttention(isa, args, Serially);
    EXPECT_EQ(std::memcmp(by_table.output.data(), again.output.data(), 4 * by_table.output.size()), 0);
    EXPECT_TRUE(by_table.key_cache == again.key_cache && by_table.value_cache == again.value_cache);
  }
}

TEST(PagedAttention, MatchesTheReferenceWithEverythingAtOnce) {
  for (const ActivationType activations : kActivationTypes) {
    for (const CacheType type : kCacheTypes) {
      CaseSpec spec;
      spec.num_heads = 6;
      spec.head_size = 72;
      spec.activation_type = activations;
      spec.cache_type = type;
      spec.channel_scales = true;
      spec.window = 300;
      spec.scale = 0.1f;
      spec.softcap = 4.0f;
      spec.sinks = true;
      spec.norm = true;
      spec.rotary_offset = 8;
      spec.rotary_dim = 30;
      spec.packed = true;
      spec.mapped = true;
      spec.rows = {{40, 1}, {0, 13}, {kKvSplit - 3, 20}, {900, 1}};
      ExpectReference(spec);
    }
  }
}

// Codes are written by hand here: the nearest, ties to even, within the bounds; a NaN and a scale of nothing give zero.
TEST(PagedAttention, RoundsToTheNearestCode) {
  for (const CpuIsa isa : AvailableIsas()) {
    CaseSpec spec;
    spec.num_heads = spec.num_kv_heads = 1;
    spec.head_size = 8;
    spec.rotary = false;
    spec.cache_type = CacheType::kInt8;
    spec.channel_scales = true;
    spec.rows = {{0, 1}};
    PagedAttentionCase run(spec);
    run.key_scale = {0.5f, 0.5f, 0.5f, 0.5f, 1.0f, 1.0f, 0.25f, 0.0f};
    run.key = {0.25f, 0.75f, -0.75f, -63.75f, 500.0f, -500.0f, std::nanf(""), 3.0f};
    run.Run(isa);
    const int8_t wanted[] = {0, 2, -2, -128, 127, -128, 0, 0};
    EXPECT_EQ(std::memcmp(run.key_cache.data() + 8 * spec.block_size * run.block_table[0], wanted, 8), 0)
        << CpuIsaName(isa);
  }
}

TEST(PagedAttention, ReadsPackedActivationsToTheSameBits) {
  for (const CpuIsa isa : AvailableIsas()) {
    CaseSpec spec;
    spec.rows = {{20, 1}, {0, 19}};
    PagedAttentionCase separate(spec);
    separate.Run(isa);
    spec.packed = true;
    PagedAttentionCase packed(spec);
    packed.Run(isa);
    EXPECT_EQ(std::memcmp(separate.output.data(), packed.output.data(), 4 * packed.output.size()), 0);
    EXPECT_TRUE(separate.key_cache == packed.key_cache && separate.value_cache == packed.value_cache);
  }
}

TEST(PagedAttention, LeavesTheWindowsOldestKeyInAndTheOneBeforeOut) {
  constexpr int32_t kWindow = 17;
  constexpr int32_t kMarker = 40;  // a position whose value dwarfs all others'
  for (const CpuIsa isa : AvailableIsas()) {
    for (const int32_t chunk : {1, 3, 7, 16, 120}) {
      CaseSpec spec;
      spec.window = kWindow;
      spec.rows = {{0, 120}};
      PagedAttentionCase run(spec);
      const int32_t kv_floats = spec.num_kv_heads * spec.head_size, query_floats = spec.num_heads * spec.head_size;
      for (int32_t i = 0; i < kv_floats; ++i) run.value[kMarker * kv_floats + i] = 1e20f;
      run.RunInChunks(isa, chunk);
      for (int32_t position = 0; position < 120; ++position) {
        const bool sees = position >= kMarker && position - kMarker < kWindow;
        EXPECT_EQ(run.output[position * query_floats] > 2.0f, sees) << "query at " << position << ", chunk " << chunk;
      }
    }
  }
}

// One-hot values turn the output into the softmax itself.
TEST(PagedAttention, ComputesSoftmaxWeightsToAFewUnitsInTheLastPlace) {
  constexpr int32_t kKeys = 32;
  for (const CpuIsa isa : AvailableIsas()) {
    for (const float step : {0.0f, 0.01f, 0.37f, 1.0f, 2.5f, 40.0f}) {
      CaseSpec spec;
      spec.num_heads = spec.num_kv_heads = 1;
      spec.head_size = kKeys;
      spec.rotary = false;
      spec.scale = 1.0f;
      spec.rows = {{0, kKeys}};
      PagedAttentionCase run(spec);
      std::fill(run.query.begin(), run.query.end(), 0.0f);
      std::fill(run.key.begin(), run.key.end(), 0.0f);
      std::fill(run.value.begin(), run.value.end(), 0.0f);
      for (int32_t i = 0; i < kKeys; ++i) {
        run.query[i * kKeys] = 1.0f;
        run.key[i * kKeys] = -step * static_cast<float>(i);
        run.value[i * kKeys + i] = 1.0f;
      }
      run.Run(isa);
      double total = 0.0;
      for (int32_t i = 0; i < kKeys; ++i) total += std::exp(static_cast<double>(run.key[i * kKeys]));
      for (int32_t i = 0; i < kKeys; ++i) {
        const double score = run.key[i * kKeys], wanted = std::exp(score) / total;
        // Half a unit of the score, which float arithmetic cannot avoid, and a few of the weight. Weights below 2^-125
        // are zero.
        const double slack = wanted * (4e-7 + std::fabs(score) * 1.2e-7) + 2.4e-38;
        EXPECT_NEAR(run.output[(kKeys - 1) * kKeys + i], wanted, slack)
            << CpuIsaName(isa) << ", step " << step << ", key " << i;
      }
    }
  }
}

// Each split's highest score lies far from the others', so that merging in either direction must scale. All tokens but the
// last one are one tile after another; the last one's splits are items of their own.
TEST(PagedAttention, MergesSplitsWhoseScoresRiseAndFall) {
  constexpr float kLevels[] = {-50.0f, 50.0f, -150.0f, 49.0f, 60.0f, 58.0f};
  for (const CacheType type : kCacheTypes) {
    CaseSpec spec;
    spec.num_heads = spec.num_kv_heads = 2;
    spec.head_size = 32;
    spec.rotary = false;
    spec.scale = 1.0f;
    spec.cache_type = type;
    spec.rows = {{0, 6 * kKvSplit}};
    PagedAttentionCase fresh(spec);
    if (type == CacheType::kInt8) fresh.key_scale = {2.0f};
    for (int32_t i = 0; i < 2 * fresh.num_tokens; ++i) {
      for (int32_t d = 0; d < 32; ++d) fresh.query[i * 32 + d] = fresh.key[i * 32 + d] = 0.0f;
      fresh.query[i * 32] = 1.0f;
      fresh.key[i * 32] = kLevels[i / 2 / kKvSplit] + static_cast<float>(i / 2 % 5);
    }
    std::vector<double> expected;
    for (const CpuIsa isa : AvailableIsas()) {
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
      PagedAttentionCase run = fresh;
      run.RunInChunks(isa, run.num_tokens - 1);
      if (expected.empty()) expected = run.ExpectedOutput();
      run.ExpectOutputNear(expected);
    }
  }
}

}  // namespace
}  // namespace oga::kernels
