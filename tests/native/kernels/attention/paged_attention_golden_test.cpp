// Every variant against the NumPy oracle: the calls that tests/models/paged_attention_golden.py wrote at build time.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/attention/paged_attention.h"
#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"
#include "native/kernels/attention/paged_attention_case.h"

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
  std::vector<int32_t> cumulative, past, table, slots;
  std::vector<float> key_scale, value_scale, wanted;
  std::vector<uint8_t> cos, sin, query, key, value, query_norm, key_norm, sinks, output;  // of the activation type
  std::vector<uint8_t> key_cache, value_cache, wanted_key_cache, wanted_value_cache;
};

// Puts query, key and value of each token side by side in `call.query`.
void Pack(GoldenCall& call) {
  PagedAttentionArgs& args = call.args;
  const int64_t bytes = ActivationBytes(args.activation_type);
  std::vector<uint8_t> packed;
  for (int32_t t = 0; t < args.shape.num_tokens; ++t) {
    for (const auto& [part, width] : {std::pair(&call.query, args.query_stride), std::pair(&call.key, args.key_stride),
                                      std::pair(&call.value, args.value_stride)}) {
      packed.insert(packed.end(), part->begin() + t * width * bytes, part->begin() + (t + 1) * width * bytes);
    }
  }
  call.query = packed;
  args.query = call.query.data();
  args.key = call.query.data() + args.query_stride * bytes;
  args.value = call.query.data() + (args.query_stride + args.key_stride) * bytes;
  const int64_t stride = args.query_stride + args.key_stride + args.value_stride;
  args.query_stride = args.key_stride = args.value_stride = stride;
}

void ReadFields(const std::vector<int32_t>& f, const std::vector<float>& numbers, PagedAttentionArgs& args) {
  args.shape = {f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]};
  args.cache_type = static_cast<CacheType>(f[8]);
  args.activation_type = static_cast<ActivationType>(f[14]);
  args.params = {.scale = numbers[0],
                 .window = f[9],
                 .softcap = numbers[1],
                 .norm_epsilon = numbers[2],
                 .rotary = f[10] > 0,
                 .rotary_interleaved = f[11] != 0,
                 .rotary_offset = f[15],
                 .rotary_dim = f[10],
                 .rotary_positions = f[12]};
  args.query_stride = f[2] * f[4];
  args.key_stride = args.value_stride = f[3] * f[4];
}

void ReadCall(std::istream& in, GoldenCall& call) {
  const std::vector<int32_t> f = Read<int32_t>(in, 20);
  PagedAttentionArgs& args = call.args;
  ReadFields(f, Read<float>(in, 3), args);
  const auto activations = [&](std::vector<uint8_t>& memory, int64_t count) {
    memory = Read<uint8_t>(in, count * ActivationBytes(args.activation_type));
    return count == 0 ? nullptr : memory.data();
  };
  args.cumulative_lengths = (call.cumulative = Read<int32_t>(in, f[1] + 1)).data();
  args.past_lengths = (call.past = Read<int32_t>(in, f[1])).data();
  args.block_table = (call.table = Read<int32_t>(in, f[1] * f[7])).data();
  call.slots = Read<int32_t>(in, f[19] != 0 ? f[0] : 0);
  if (f[19] != 0) args.slot_mapping = call.slots.data();
  args.cos_cache = activations(call.cos, f[12] * f[10] / 2);
  args.sin_cache = activations(call.sin, f[12] * f[10] / 2);
  args.query = activations(call.query, f[0] * args.query_stride);
  args.key = activations(call.key, f[0] * args.key_stride);
  args.value = activations(call.value, f[0] * args.value_stride);
  args.query_norm = activations(call.query_norm, f[16] != 0 ? f[4] : 0);
  args.key_norm = activations(call.key_norm, f[16] != 0 ? f[4] : 0);
  args.head_sink = activations(call.sinks, f[17] != 0 ? f[2] : 0);
  const int64_t scales = f[18] == 0 ? 0 : f[18] == 1 ? 1 : f[3] * f[4];
  call.key_scale = Read<float>(in, scales);
  call.value_scale = Read<float>(in, scales);
  if (scales > 0) args.key_scale = {call.key_scale.data(), f[18] == 2};
  if (scales > 0) args.value_scale = {call.value_scale.data(), f[18] == 2};
  const int64_t cache_bytes = int64_t{f[5]} * f[6] * f[3] * f[4] * CacheElementBytes(args.cache_type);
  call.key_cache = Read<uint8_t>(in, cache_bytes);
  call.value_cache = Read<uint8_t>(in, cache_bytes);
  call.wanted = Read<float>(in, int64_t{f[0]} * f[2] * f[4]);
  call.wanted_key_cache = Read<uint8_t>(in, cache_bytes);
  call.wanted_value_cache = Read<uint8_t>(in, cache_bytes);
  call.output.resize(call.wanted.size() * ActivationBytes(args.activation_type));
  args.output = call.output.data();
  if (f[13] != 0) Pack(call);
}

// Of an int8 cache the code itself.
float Element(const std::vector<uint8_t>& cache, CacheType type, size_t i) {
  const size_t bytes = static_cast<size_t>(CacheElementBytes(type));
  uint32_t bits = 0;
  std::memcpy(&bits, &cache[bytes * i], bytes);
  switch (type) {
    case CacheType::kFloat32: break;
    case CacheType::kFloat16: return ToFloat(Float16{static_cast<uint16_t>(bits)});
    case CacheType::kBfloat16: return ToFloat(Bfloat16{static_cast<uint16_t>(bits)});
    case CacheType::kInt8: return static_cast<float>(static_cast<int8_t>(bits));
  }
  return FloatFromBits(bits);
}

struct Slack {
  double absolute, relative;
};

// A cached number that lies between two of its type may be rounded to either, here and by the oracle.
Slack CacheSlack(CacheType type) {
  switch (type) {
    case CacheType::kFloat32: break;
    case CacheType::kFloat16: return {1e-6, 0x1p-10};
    case CacheType::kBfloat16: return {1e-6, 0x1p-7};
    case CacheType::kInt8: return {1.0, 0.0};
  }
  return {1e-6, 1e-6};
}

// NaN, which fills the slots of nobody, equals itself here.
void ExpectCacheNear(const std::vector<uint8_t>& cache, const std::vector<uint8_t>& wanted, CacheType type) {
  const Slack slack = CacheSlack(type);
  size_t differing = 0;
  const size_t count = cache.size() / static_cast<size_t>(CacheElementBytes(type));
  for (size_t i = 0; i < count; ++i) {
    const float a = Element(cache, type, i), b = Element(wanted, type, i);
    if (std::isnan(a) != std::isnan(b) || std::fabs(a - b) > slack.absolute + slack.relative * std::fabs(b)) {
      ADD_FAILURE() << "cache element " << i << " is " << a << ", wanted " << b;
      return;
    }
    differing += a != b && !std::isnan(a);
  }
  if (type == CacheType::kFloat32) return;
  EXPECT_LE(differing, 3 + count / 1000) << "of " << count << " elements";
}

float OutputAt(const std::vector<uint8_t>& output, ActivationType type, size_t i) {
  if (type == ActivationType::kFloat32) return Element(output, CacheType::kFloat32, i);
  return Element(output, type == ActivationType::kFloat16 ? CacheType::kFloat16 : CacheType::kBfloat16, i);
}

// The oracle rounds a key from double; one that rounds the other way shifts its score.
Slack OutputSlack(const PagedAttentionArgs& args, CpuIsa isa) {
  Slack slack = {2e-6, 1e-5};
  if (args.cache_type == CacheType::kFloat16) slack.absolute = 5e-4;
  if (args.cache_type == CacheType::kBfloat16 || args.cache_type == CacheType::kInt8) {
    slack.absolute = isa >= CpuIsa::kAvx512Bf16 ? 0x1p-6 : 4e-3;  // of products in bfloat16
  }
  if (args.activation_type == ActivationType::kFloat16) slack.relative += 0x1p-11;
  if (args.activation_type == ActivationType::kBfloat16) slack.relative += 0x1p-8;
  return slack;
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
  const Slack slack = OutputSlack(args, isa);
  for (size_t i = 0; i < call.wanted.size(); ++i) {
    ASSERT_NEAR(OutputAt(call.output, args.activation_type, i), call.wanted[i],
                slack.absolute + slack.relative * std::fabs(call.wanted[i]))
        << "output element " << i;
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
  EXPECT_EQ(calls, 73);
}

}  // namespace
}  // namespace oga::kernels
