// One arithmetic: the bits of a row's output do not tell how the work was divided.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/paged_attention.h"
#include "kernels/paged_attention_variant.h"
#include "native/kernels/paged_attention_case.h"

namespace oga::kernels {
#if defined(__x86_64__)
extern const PairAttentionVariant kPairAttentionEmulatedTiles;
#endif
namespace {

void ExpectSameBits(const PagedAttentionCase& a, const PagedAttentionCase& b) {
  EXPECT_TRUE(a.key_cache == b.key_cache) << "key caches differ";
  EXPECT_TRUE(a.value_cache == b.value_cache) << "value caches differ";
  ASSERT_EQ(a.output.size(), b.output.size());
  for (size_t i = 0; i < a.output.size(); ++i) {
    if (std::memcmp(&a.output[i], &b.output[i], 4) != 0) {
      ADD_FAILURE() << "output element " << i << " differs: " << a.output[i] << " and " << b.output[i];
      return;
    }
  }
}

constexpr CacheType kCacheTypes[] = {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16, CacheType::kInt8};

// Prefill, decode, long and short rows.
const std::vector<RowSpec> kMixedRows = {{0, 61}, {700, 1}, {kKvSplit - 20, 41}, {0, 1}, {513, 2}, {3, 16}};

// Every type, each option by itself and all together, with and without a window.
std::vector<CaseSpec> MixedSpecs() {
  std::vector<CaseSpec> specs;
  CaseSpec plain;
  plain.num_heads = 6;
  plain.rows = kMixedRows;
  plain.channel_scales = true;
  for (const CacheType type : kCacheTypes) {
    for (const int32_t window : {-1, 37}) {
      CaseSpec spec = plain;
      spec.head_size = window < 0 ? 64 : 72;
      spec.cache_type = type;
      spec.window = window;
      specs.push_back(spec);
      spec.head_size = window < 0 ? 72 : 64;
      spec.scale = 0.1f;
      spec.softcap = 3.0f;
      spec.sinks = spec.norm = spec.mapped = spec.packed = true;
      spec.rotary_offset = 16;
      spec.activation_type = window < 0 ? ActivationType::kFloat16 : ActivationType::kBfloat16;
      specs.push_back(spec);
    }
  }
  for (const int option : {0, 1, 2}) {
    CaseSpec spec = plain;
    spec.softcap = option == 0 ? 5.0f : 0.0f;
    spec.sinks = option == 1;
    spec.norm = option == 2;
    specs.push_back(spec);
  }
  return specs;
}

TEST(PagedAttentionBits, DoNotDependOnWhoSharesTheCall) {
  for (const CpuIsa isa : AvailableIsas()) {
    for (const CaseSpec& spec : MixedSpecs()) {
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
      PagedAttentionCase together(spec), alone(spec);
      together.Run(isa);
      alone.RunRowByRow(isa);
      ExpectSameBits(together, alone);
    }
  }
}

TEST(PagedAttentionBits, DoNotDependOnChunking) {
  for (const CpuIsa isa : AvailableIsas()) {
    for (const CaseSpec& spec : MixedSpecs()) {
      PagedAttentionCase whole(spec);
      whole.Run(isa);
      for (const int32_t chunk : {1, 3, 7, 61}) {
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ", chunk " + std::to_string(chunk) + ": " + spec.Describe());
        PagedAttentionCase chunked(spec);
        chunked.RunInChunks(isa, chunk);
        ExpectSameBits(whole, chunked);
      }
    }
  }
}

TEST(PagedAttentionBits, DoNotDependOnThreadsOrOrder) {
  for (const CpuIsa isa : AvailableIsas()) {
    for (const CaseSpec& spec : MixedSpecs()) {
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
      PagedAttentionCase serial(spec), reversed(spec);
      serial.Run(isa, Serially);
      reversed.Run(isa, Reversed);
      ExpectSameBits(serial, reversed);
      for (const ParallelFor& threads :
           {ParallelFor(OnThreads<2>), ParallelFor(OnThreads<3>), ParallelFor(OnFourThreads)}) {
        PagedAttentionCase threaded(spec);
        threaded.Run(isa, threads);
        ExpectSameBits(serial, threaded);
      }
    }
  }
}

// Long rows are split among threads when few share the call. With long heads the partial results come in waves, with
// very long rows a thread takes runs of splits; a crowd is not split.
TEST(PagedAttentionBits, DoNotDependOnSplittingLongRows) {
  CaseSpec waves;
  waves.num_heads = 16;
  waves.head_size = 256;
  waves.rows.assign(40, {20, 1});
  waves.rows[7] = {8 * kKvSplit + 17, 1};
  waves.rows[8] = {3 * kKvSplit - 1, 1};
  CaseSpec runs;
  runs.head_size = 32;
  runs.rows.assign(40, {20, 1});
  runs.rows[5] = {70 * kKvSplit, 1};
  runs.rows[6] = {5 * kKvSplit, 3};
  CaseSpec heads;  // many kv heads, whose runs alternate
  heads.num_heads = heads.num_kv_heads = 12;
  heads.head_size = 32;
  heads.rows = {{3 * kKvSplit, 2}, {7 * kKvSplit - 1, 1}, {5, 3}};
  for (const CpuIsa isa : AvailableIsas()) {
    for (CaseSpec spec : {waves, runs, heads}) {
      for (const CacheType type : kCacheTypes) {
        spec.cache_type = type;
        spec.softcap = type == CacheType::kInt8 ? 5.0f : 0.0f;
        spec.sinks = type != CacheType::kFloat32;
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
        PagedAttentionCase crowd(spec), alone(spec);
        crowd.Run(isa, OnFourThreads);
        alone.RunRowByRow(isa);
        ExpectSameBits(crowd, alone);
      }
    }
  }
}

TEST(PagedAttentionBits, AreEqualForWideVariantsWithTheSameProductsAndCloseForOthers) {
  for (const CaseSpec& spec : MixedSpecs()) {
    SCOPED_TRACE(spec.Describe());
    PagedAttentionCase portable(spec);
    portable.Run(CpuIsa::kPortable);
    std::vector<double> wanted(portable.output.begin(), portable.output.end());
    for (const CpuIsa isa : AvailableIsas()) {
      PagedAttentionCase wide(spec);
      wide.Run(isa);
      wide.ExpectOutputNear(wanted, 1.0);
    }
    if (BestCpuIsa() < CpuIsa::kAvx512) continue;
    PagedAttentionCase avx2(spec), avx512(spec);
    avx2.Run(CpuIsa::kAvx2);
    avx512.Run(CpuIsa::kAvx512);
    ExpectSameBits(avx2, avx512);
  }
}

// Every number of queries up to more than two tiles of 16, with rows that begin and end within units.
std::vector<CaseSpec> PairSpecs() {
  std::vector<CaseSpec> specs;
  for (const CaseSpec& spec : MixedSpecs()) {
    if (spec.HoldsPairs()) specs.push_back(spec);
  }
  for (const int32_t group : {1, 7, 16, 17, 33, 71}) {
    CaseSpec spec;
    spec.num_heads = group;
    spec.num_kv_heads = 1;
    spec.cache_type = group % 2 == 0 ? CacheType::kInt8 : CacheType::kBfloat16;
    spec.head_size = group == 16 ? 512 : 24;
    spec.window = group == 33 ? 100 : -1;
    spec.rows = {{600, 1}, {0, 5}, {1, 1}, {286, 3}};
    specs.push_back(spec);
  }
  return specs;
}

#if defined(__x86_64__)

TEST(PagedAttentionBits, AreThoseOfTilesInPlainArithmetic) {
  if (BestCpuIsa() < CpuIsa::kAvx512Bf16) return;  // no CPU with tiles lacks it
  for (const CaseSpec& spec : PairSpecs()) {
    SCOPED_TRACE(spec.Describe());
    PagedAttentionCase wanted(spec), tiles(spec);
    wanted.Run(CpuIsa::kAvx512Bf16);
    tiles.Run(kPairAttentionEmulatedTiles, OnFourThreads);
    ExpectSameBits(wanted, tiles);
    if (BestCpuIsa() < CpuIsa::kAmx) continue;
    PagedAttentionCase amx(spec);
    amx.Run(CpuIsa::kAmx);
    ExpectSameBits(wanted, amx);
  }
}

#endif

}  // namespace
}  // namespace oga::kernels
