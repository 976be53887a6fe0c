// One arithmetic: the bits of a row's output do not tell how the work was divided.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/paged_attention.h"
#include "native/kernels/paged_attention_case.h"

namespace oga::kernels {
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

// Prefill, decode, long and short rows, by both cache types, with and without a window.
std::vector<CaseSpec> MixedSpecs() {
  std::vector<CaseSpec> specs;
  for (const CacheType type : {CacheType::kFloat32, CacheType::kFloat16}) {
    for (const int32_t window : {-1, 37}) {
      for (const int32_t head_size : {64, 72}) {
        CaseSpec spec;
        spec.num_heads = 6;
        spec.head_size = head_size;
        spec.cache_type = type;
        spec.window = window;
        spec.rows = {{0, 61}, {700, 1}, {kKvSplit - 20, 41}, {0, 1}, {513, 2}, {3, 16}};
        specs.push_back(spec);
      }
    }
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
      PagedAttentionCase serial(spec), reversed(spec), threaded(spec);
      serial.Run(isa, Serially);
      reversed.Run(isa, Reversed);
      threaded.Run(isa, OnFourThreads);
      ExpectSameBits(serial, reversed);
      ExpectSameBits(serial, threaded);
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
  for (const CpuIsa isa : AvailableIsas()) {
    for (CaseSpec spec : {waves, runs}) {
      for (const CacheType type : {CacheType::kFloat32, CacheType::kFloat16}) {
        spec.cache_type = type;
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
        PagedAttentionCase crowd(spec), alone(spec);
        crowd.Run(isa, OnFourThreads);
        alone.RunRowByRow(isa);
        ExpectSameBits(crowd, alone);
      }
    }
  }
}

TEST(PagedAttentionBits, AreEqualForTheTwoWideVariantsAndCloseForThePortableOne) {
  for (const CaseSpec& spec : MixedSpecs()) {
    SCOPED_TRACE(spec.Describe());
    PagedAttentionCase portable(spec);
    portable.Run(CpuIsa::kPortable);
    std::vector<double> wanted(portable.output.begin(), portable.output.end());
    for (const CpuIsa isa : AvailableIsas()) {
      PagedAttentionCase wide(spec);
      wide.Run(isa);
      wide.ExpectOutputNear(wanted);
    }
    if (BestCpuIsa() < CpuIsa::kAvx512) continue;
    PagedAttentionCase avx2(spec), avx512(spec);
    avx2.Run(CpuIsa::kAvx2);
    avx512.Run(CpuIsa::kAvx512);
    ExpectSameBits(avx2, avx512);
  }
}

}  // namespace
}  // namespace oga::kernels
