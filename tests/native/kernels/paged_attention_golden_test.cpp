// Every variant against the NumPy oracle: the calls that tests/models/paged_attention_golden.py wrote at build time.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/float16.h"
#include "kernels/paged_attention.h"
#include "native/kernels/paged_attention_case.h"

namespace oga::kernels {
namespace {

template <typename T>
std::vector<T> Read(std::istream& in, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  EXPECT_TRUE(in.good() || count == 0) << "the golden file ends within a record; build it again";
  return values;
}

struct GoldenCall {
  PagedAttentionArgs args;  // pointers into the vectors below
  std::vector<int32_t> cumulative, past, table;
  std::vector<float> cos, sin, query, key, value, wanted, output;
  std::vector<uint8_t> key_cache, value_cache, wanted_key_cache, wanted_value_cache;
};

// Puts query, key and value of each token side by side in `call.query`.
void Pack(GoldenCall& call) {
  const PagedAttentionArgs& args = call.args;
  std::vector<float> packed;
  for (int32_t t = 0; t < args.shape.num_tokens; ++t) {
    for (const auto& [part, width] : {std::pair(&call.query, args.query_stride), std::pair(&call.key, args.key_stride),
                                      std::pair(&call.value, args.value_stride)}) {
      packed.insert(packed.end(), part->begin() + t * width, part->begin() + (t + 1) * width);
    }
  }
  call.query = packed;
  call.args.query = call.query.data();
  call.args.key = call.args.query + args.query_stride;
  call.args.value = call.args.key + args.key_stride;
  const int64_t stride = args.query_stride + args.key_stride + args.value_stride;
  call.args.query_stride = call.args.key_stride = call.args.value_stride = stride;
}

void ReadCall(std::istream& in, GoldenCall& call) {
  const std::vector<int32_t> f = Read<int32_t>(in, 14);
  PagedAttentionArgs& args = call.args;
  args.shape = {f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]};
  args.cache_type = f[8] != 0 ? CacheType::kFloat16 : CacheType::kFloat32;
  args.params.window = f[9];
  args.params.rotary = f[10] > 0;
  args.params.rotary_dim = f[10];
  args.params.rotary_interleaved = f[11] != 0;
  args.params.rotary_positions = f[12];
  args.params.scale = Read<float>(in, 1)[0];
  args.query_stride = f[2] * f[4];
  args.key_stride = args.value_stride = f[3] * f[4];
  const int64_t cache_bytes = int64_t{f[5]} * f[6] * f[3] * f[4] * (f[8] != 0 ? 2 : 4);
  args.cumulative_lengths = (call.cumulative = Read<int32_t>(in, f[1] + 1)).data();
  args.past_lengths = (call.past = Read<int32_t>(in, f[1])).data();
  args.block_table = (call.table = Read<int32_t>(in, f[1] * f[7])).data();
  args.cos_cache = (call.cos = Read<float>(in, f[12] * f[10] / 2)).data();
  args.sin_cache = (call.sin = Read<float>(in, f[12] * f[10] / 2)).data();
  args.query = (call.query = Read<float>(in, f[0] * args.query_stride)).data();
  args.key = (call.key = Read<float>(in, f[0] * args.key_stride)).data();
  args.value = (call.value = Read<float>(in, f[0] * args.value_stride)).data();
  call.key_cache = Read<uint8_t>(in, cache_bytes);
  call.value_cache = Read<uint8_t>(in, cache_bytes);
  call.wanted = Read<float>(in, int64_t{f[0]} * f[2] * f[4]);
  call.wanted_key_cache = Read<uint8_t>(in, cache_bytes);
  call.wanted_value_cache = Read<uint8_t>(in, cache_bytes);
  args.output = (call.output = std::vector<float>(call.wanted.size())).data();
  if (f[13] != 0) Pack(call);
}

float Element(const std::vector<uint8_t>& cache, CacheType type, size_t i) {
  if (type == CacheType::kFloat16) {
    Float16 half;
    std::memcpy(&half, &cache[2 * i], 2);
    return ToFloat(half);
  }
  float value;
  std::memcpy(&value, &cache[4 * i], 4);
  return value;
}

// NaN, which fills the slots of nobody, equals itself here.
void ExpectCacheNear(const std::vector<uint8_t>& cache, const std::vector<uint8_t>& wanted, CacheType type) {
  const double relative = type == CacheType::kFloat16 ? 0x1p-10 : 1e-6;
  for (size_t i = 0; i < cache.size() / (type == CacheType::kFloat16 ? 2 : 4); ++i) {
    const float a = Element(cache, type, i), b = Element(wanted, type, i);
    if (std::isnan(a) != std::isnan(b) || std::fabs(a - b) > 1e-6 + relative * std::fabs(b)) {
      ADD_FAILURE() << "cache element " << i << " is " << a << ", wanted " << b;
      return;
    }
  }
}

void ExpectGolden(GoldenCall& call, CpuIsa isa) {
  PagedAttentionArgs args = call.args;
  std::vector<uint8_t> keys = call.key_cache, values = call.value_cache;
  args.key_cache = keys.data();
  args.value_cache = values.data();
  ASSERT_EQ(ValidatePagedAttention(args), "");
  PagedAttention(isa, args, OnFourThreads);
  ExpectCacheNear(keys, call.wanted_key_cache, args.cache_type);
  ExpectCacheNear(values, call.wanted_value_cache, args.cache_type);
  // The oracle rounds a rotated key to half from double; a key that rounds the other way shifts its score.
  const double slack = args.cache_type == CacheType::kFloat16 ? 5e-4 : 2e-6;
  for (size_t i = 0; i < call.wanted.size(); ++i) {
    ASSERT_NEAR(call.output[i], call.wanted[i], slack + 1e-5 * std::fabs(call.wanted[i])) << "output element " << i;
  }
}

TEST(PagedAttention, MatchesTheNumpyOracle) {
  const char* folder = std::getenv("OGA_TEST_DATA_DIR");
  ASSERT_NE(folder, nullptr) << "run the tests through ctest, which says where the golden file is";
  std::ifstream in(std::string(folder) + "/paged_attention.golden", std::ios::binary);
  ASSERT_TRUE(in.good()) << "no golden file in " << folder;
  int calls = 0;
  for (; in.peek() != std::ifstream::traits_type::eof(); ++calls) {
    GoldenCall call;
    ReadCall(in, call);
    for (const CpuIsa isa : AvailableIsas()) {
      SCOPED_TRACE("call " + std::to_string(calls) + ", " + CpuIsaName(isa));
      ExpectGolden(call, isa);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_EQ(calls, 35);
}

}  // namespace
}  // namespace oga::kernels
