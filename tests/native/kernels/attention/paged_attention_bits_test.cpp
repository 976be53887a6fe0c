// One arithmetic: the bits of a row's output tell neither how the work was divided nor what lies where it does not see.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention/paged_attention.h"
#include "native/kernels/attention/paged_attention_case.h"

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

constexpr CacheType kCacheTypes[] = {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16, CacheType::kInt8};

// A call joins heads, and makes runs of splits longer, by the threads that it is told of, however many then take part.
constexpr int32_t kNumThreads[] = {1, 2, 3, 8, 64};

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
  // Long enough for heads to be joined, in spite of the window.
  for (const CacheType type : {CacheType::kBfloat16, CacheType::kInt8}) {
    CaseSpec spec = plain;
    spec.num_kv_heads = 3;
    spec.head_size = 72;
    spec.cache_type = type;
    spec.window = 1500;
    spec.rows = {{2000, 1}, {1700, 3}, {1500, 1}};
    specs.push_back(spec);
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
      const PagedAttentionCase fresh(spec);
      PagedAttentionCase serial = fresh;
      serial.Run(isa, Serially);
      for (const int32_t num_threads : kNumThreads) {
        SCOPED_TRACE(num_threads);
        for (const ParallelFor& threads : {ParallelFor(Reversed), ParallelFor(OnThreads<2>), ParallelFor(OnThreads<3>),
                                           ParallelFor(OnFourThreads)}) {
          PagedAttentionCase threaded = fresh;
          threaded.num_threads = num_threads;
          threaded.Run(isa, threads);
          ExpectSameBits(serial, threaded);
        }
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
  CaseSpec many;  // too many to be split, with joined heads or without
  many.num_heads = 6;
  many.head_size = 32;
  many.rows.assign(70, {20, 1});
  many.rows[3] = {3 * kKvSplit + 5, 1};
  for (const CpuIsa isa : AvailableIsas()) {
    for (CaseSpec spec : {waves, runs, heads, many}) {
      for (const CacheType type : kCacheTypes) {
        spec.cache_type = type;
        spec.softcap = type == CacheType::kInt8 ? 5.0f : 0.0f;
        spec.sinks = type != CacheType::kFloat32;
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
        const PagedAttentionCase fresh(spec);
        PagedAttentionCase alone = fresh;
        alone.RunRowByRow(isa);
        for (const int32_t num_threads : kNumThreads) {
          SCOPED_TRACE(num_threads);
          PagedAttentionCase crowd = fresh;
          crowd.num_threads = num_threads;
          crowd.Run(isa, OnFourThreads);
          ExpectSameBits(crowd, alone);
        }
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

// Every number of queries up to more than two tiles of 16, and more in rows that begin and end within units.
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
  for (int32_t group = 1; group <= 35; ++group) {
    CaseSpec spec;
    spec.num_heads = group;
    spec.num_kv_heads = 1;
    spec.cache_type = group % 2 == 0 ? CacheType::kBfloat16 : CacheType::kInt8;
    spec.head_size = 40;
    spec.rows = {{40, 1}};
    specs.push_back(spec);
  }
  return specs;
}

TEST(PagedAttentionBits, AreThoseOfTilesInPlainArithmetic) {
  if (BestCpuIsa() < CpuIsa::kAvx512Bf16) return;  // nothing to compare with
  for (const CaseSpec& spec : PairSpecs()) {
    SCOPED_TRACE(spec.Describe());
    PagedAttentionCase wanted(spec), tiles(spec);
    wanted.Run(CpuIsa::kAvx512Bf16);
    tiles.Run(EmulatedAttention(spec).back(), OnFourThreads);
    ExpectSameBits(wanted, tiles);
    if (BestCpuIsa() < CpuIsa::kAmx) continue;
    PagedAttentionCase amx(spec);
    amx.Run(CpuIsa::kAmx);
    ExpectSameBits(wanted, amx);
  }
}

// One kv head of a token is bad: its whole key, or the last dimension of its value.
struct BadToken {
  int32_t token;
  int32_t kv_head;
  float key;  // 0 is as it was
  float value;
};

PagedAttentionCase WithBadToken(const PagedAttentionCase& clean, const BadToken& bad) {
  PagedAttentionCase poisoned = clean;
  const int32_t head_size = clean.spec.head_size;
  const size_t end = (static_cast<size_t>(bad.token) * clean.spec.num_kv_heads + bad.kv_head + 1) * head_size;
  if (bad.key != 0.0f) std::fill_n(poisoned.key.begin() + (end - head_size), head_size, bad.key);
  poisoned.value[end - 1] = bad.value;
  return poisoned;
}

// Of a call whose first row has the bad token and begins with no past.
void ExpectBadOnlyWhereSeen(const PagedAttentionCase& clean, const PagedAttentionCase& poisoned, const BadToken& bad) {
  const CaseSpec& spec = clean.spec;
  const int32_t group = spec.num_heads / spec.num_kv_heads;
  for (size_t i = 0; i < clean.output.size(); ++i) {
    const int32_t d = static_cast<int32_t>(i % spec.head_size), head = i / spec.head_size % spec.num_heads;
    const int32_t token = static_cast<int32_t>(i / spec.head_size / spec.num_heads);
    const bool sees = token >= bad.token && token < spec.rows[0].num_new &&
                      (spec.window < 0 || token - bad.token < spec.window) && head / group == bad.kv_head;
    const float found = poisoned.output[i];
    bool as_wanted = std::memcmp(&clean.output[i], &found, 4) == 0;
    if (sees && bad.key != 0.0f) as_wanted = std::isnan(found);
    if (sees && bad.key == 0.0f && d == spec.head_size - 1) {
      as_wanted = std::isnan(bad.value) ? std::isnan(found) : found == bad.value;
    }
    if (as_wanted) continue;
    ADD_FAILURE() << "token " << token << ", head " << head << ", dimension " << d << (sees ? " sees" : " does not see")
                  << " the bad token: " << found << ", clean " << clean.output[i];
    return;
  }
}

// Not those before it, nor with a window those behind it, although they share tiles and units with queries that see it.
TEST(PagedAttentionBits, AreNotThoseOfABadTokenWhereItIsNotSeen) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  constexpr BadToken kBadTokens[] = {
      {20, 1, kNan, kInfinity}, {20, 1, 0.0f, kInfinity}, {100, 1, 0.0f, -kInfinity}, {100, 0, 0.0f, kNan}};
  for (const CacheType type : {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16}) {
    for (const int32_t window : {-1, 7, 150}) {
      CaseSpec spec;
      spec.num_heads = 6;
      spec.head_size = window == 7 ? 72 : 64;  // eight units at a time, or fewer
      spec.cache_type = type;
      spec.window = window;
      spec.rows = {{0, kKvSplit + 4}, {3, 4}};
      const PagedAttentionCase fresh(spec);
      for (const AttentionWay& way : AttentionWays(spec)) {
        PagedAttentionCase clean = fresh;
        way.Compute(clean.Args(), Serially);
        for (const BadToken& bad : kBadTokens) {
          SCOPED_TRACE(way.name + ", value " + std::to_string(bad.value) + ": " + spec.Describe());
          PagedAttentionCase poisoned = WithBadToken(fresh, bad);
          way.Compute(poisoned.Args(), Serially);
          ExpectBadOnlyWhereSeen(clean, poisoned, bad);
        }
      }
    }
  }
}

// A copy of a cache, readable and writable in one range of whole pages only.
class GuardedMemory {
 public:
  GuardedMemory(const std::vector<uint8_t>& content, size_t begin, size_t end) : bytes_(content.size()) {
    memory_ = static_cast<uint8_t*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(memory_, content.data(), bytes_);
    EXPECT_EQ(mprotect(memory_, begin, PROT_NONE), 0);
    EXPECT_EQ(mprotect(memory_ + end, bytes_ - end, PROT_NONE), 0);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(memory_, bytes_); }
  uint8_t* data() { return memory_; }

 private:
  size_t bytes_;
  uint8_t* memory_;
};

// A few queries, and one whose heads are joined where a position holds several.
TEST(PagedAttentionBits, TouchNoSlotBeforeTheWindowOrBehindTheLastToken) {
  constexpr int32_t kFirst = 56;  // that is seen
  const int32_t page_bytes = static_cast<int32_t>(sysconf(_SC_PAGESIZE));
  for (const CacheType type : kCacheTypes) {
    for (const RowSpec row : {RowSpec{117, 3}, RowSpec{4 * kKvSplit - 9, 1}}) {
      CaseSpec spec;  // eight slots a page
      spec.head_size = 128;
      spec.num_heads = spec.num_kv_heads = page_bytes / (8 * CacheElementBytes(type) * spec.head_size);
      spec.block_size = 4 * kKvSplit;
      spec.cache_type = type;
      spec.rows = {row};
      spec.window = row.past - kFirst + 1;
      const PagedAttentionCase fresh(spec);
      const size_t block = static_cast<size_t>(fresh.block_table[0]) * spec.block_size / 8;
      const size_t begin = (block + kFirst / 8) * page_bytes, end = (block + (row.past + row.num_new) / 8) * page_bytes;
      for (const AttentionWay& way : AttentionWays(spec)) {
        SCOPED_TRACE(way.name + ": " + spec.Describe());
        PagedAttentionCase plain = fresh, guarded = fresh;
        way.Compute(plain.Args(), Serially);
        GuardedMemory keys(guarded.key_cache, begin, end), values(guarded.value_cache, begin, end);
        PagedAttentionArgs args = guarded.Args();
        args.key_cache = keys.data();
        args.value_cache = values.data();
        way.Compute(args, Serially);
        EXPECT_EQ(std::memcmp(plain.output.data(), guarded.output.data(), 4 * plain.output.size()), 0);
      }
    }
  }
}

}  // namespace
}  // namespace oga::kernels
