// What becomes of numbers too small for a float's full precision: the same on every thread, in any company.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention/paged_attention.h"
#include "native/kernels/attention/paged_attention_case.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

namespace oga::kernels {

namespace {

constexpr unsigned kFlushMode = 0x8040u;

// Everything is so small that norms, rotations, scores' scales and weighted values meet denormals.
CaseSpec TinySpec(CacheType type) {
  CaseSpec spec;
  spec.cache_type = type;
  spec.norm = true;
  spec.norm_epsilon = 1e-38f;
  spec.rows = {{0, 20}, {700, 1}, {30, 3}};
  return spec;
}

void MakeTiny(PagedAttentionCase* run) {
  for (float& x : run->query) x *= 1e-39f;
  for (float& x : run->key) x *= 1e-37f;
  for (float& x : run->value) x *= 1e-38f;
  for (float& x : run->key_scale) x *= 1e-36f;
  for (float& x : run->value_scale) x *= 1e-37f;
}

TEST(PagedAttentionDenormals, DoNotDependOnTheModeOfTheThread) {
  for (const CpuIsa isa : AvailableIsas()) {
    for (const CacheType type : {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16, CacheType::kInt8}) {
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + TinySpec(type).Describe());
      PagedAttentionCase keeping(TinySpec(type)), flushing(TinySpec(type));
      MakeTiny(&keeping);
      MakeTiny(&flushing);
      keeping.Run(isa);
      const unsigned mode = _mm_getcsr();
      _mm_setcsr(mode | kFlushMode);
      flushing.Run(isa);
      EXPECT_EQ(_mm_getcsr() & kFlushMode, kFlushMode) << "the thread's own mode is lost";
      _mm_setcsr(mode);
      EXPECT_TRUE(keeping.key_cache == flushing.key_cache && keeping.value_cache == flushing.value_cache);
      EXPECT_EQ(std::memcmp(keeping.output.data(), flushing.output.data(), 4 * keeping.output.size()), 0);
    }
  }
}

// Adding what a query does not see may turn the sign of a sum that was flushed to zero: which zero it is must not tell
// of later tokens in the tile.
TEST(PagedAttentionDenormals, LeaveNoZeroThatTellsOfLaterTokens) {
  CaseSpec spec;
  spec.num_heads = spec.num_kv_heads = 1;
  spec.head_size = 32;
  spec.rotary = false;
  spec.cache_type = CacheType::kBfloat16;
  for (const AttentionWay& way : AttentionWays(spec)) {
    if (way.pairs == nullptr && way.isa < CpuIsa::kAvx512Bf16) continue;
    float outputs[2];
    for (const int32_t num_new : {1, 40}) {
      spec.rows = {{63, num_new}};
      PagedAttentionCase run(spec);
      for (std::vector<float>* part : {&run.query, &run.key, &run.value}) {
        std::fill(part->begin(), part->end(), part == &run.value ? 1.0f : 0.0f);
      }
      std::fill(run.value.begin(), run.value.begin() + 32, 0.0f);
      std::fill(run.key_cache.begin(), run.key_cache.end(), uint8_t{0});
      std::fill(run.value_cache.begin(), run.value_cache.end(), uint8_t{0});
      const auto set = [&](int32_t position, uint16_t bits) {
        const int64_t slot =
            int64_t{run.block_table[position / spec.block_size]} * spec.block_size + position % spec.block_size;
        for (int64_t d = 0; d < 32; ++d) std::memcpy(&run.value_cache[2 * (32 * slot + d)], &bits, 2);
      };
      set(0, 0x8100);   // -2^-125
      set(32, 0x00c0);  // 1.5 * 2^-126: their sum is flushed
      run.Run(way);
      outputs[num_new == 1 ? 0 : 1] = run.output[0];
    }
    EXPECT_EQ(std::memcmp(&outputs[0], &outputs[1], 4), 0)
        << way.name << ": " << outputs[0] << " alone, " << outputs[1] << " in a chunk";
  }
}

}  // namespace
}  // namespace oga::kernels

#endif
