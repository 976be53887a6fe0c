#include "native/kernels/attention/paged_attention_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"
#include "native/kernels/poison.h"

namespace oga::kernels {

#if defined(__x86_64__)
extern const PairAttentionVariant kPairAttentionEmulatedTiles;
extern const PairAttentionVariant kPairAttentionEmulatedEverywhere;
#endif

namespace {

size_t ElementBytes(CacheType type) { return static_cast<size_t>(CacheElementBytes(type)); }

const char* Name(CacheType type) {
  constexpr const char* kNames[] = {"fp32", "fp16", "bf16", "int8"};
  return kNames[static_cast<int>(type)];
}

const char* Name(ActivationType type) {
  constexpr const char* kNames[] = {"fp32", "fp16", "bf16"};
  return kNames[static_cast<int>(type)];
}

uint16_t NarrowBits(ActivationType type, float value) {
  return type == ActivationType::kFloat16 ? ToFloat16(value).bits : ToBfloat16(value).bits;
}

float WidenBits(ActivationType type, uint16_t bits) {
  return type == ActivationType::kFloat16 ? ToFloat(Float16{bits}) : ToFloat(Bfloat16{bits});
}

void RoundTo(ActivationType type, std::vector<float>& values) {
  if (type == ActivationType::kFloat32) return;
  for (float& value : values) value = WidenBits(type, NarrowBits(type, value));
}

std::vector<float> RandomFloats(size_t count, std::mt19937& random, float low = -1.0f, float high = 1.0f) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

}  // namespace

std::string CaseSpec::Describe() const {
  std::ostringstream out;
  out << num_heads << "/" << num_kv_heads << " heads of " << head_size << ", blocks of " << block_size << ", "
      << Name(activation_type) << " over a " << Name(cache_type) << " cache" << (channel_scales ? " (channels)" : "")
      << ", window " << window << ", softcap " << softcap << (sinks ? ", sinks" : "") << (norm ? ", norm" : "")
      << ", rotary " << (rotary ? rotary_dim : -1) << " from " << rotary_offset
      << (rotary_interleaved ? " interleaved" : "") << (mapped ? ", mapped" : "") << ", rows";
  for (const RowSpec& row : rows) out << " " << row.past << "+" << row.num_new;
  return out.str();
}

std::vector<CpuIsa> AvailableIsas() {
  std::vector<CpuIsa> isas;
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    if (isa <= BestCpuIsa()) isas.push_back(isa);
  }
  return isas;
}

void AttentionWay::Compute(const PagedAttentionArgs& args, const ParallelFor& parallel_for) const {
  if (pairs == nullptr) return PagedAttention(isa, args, parallel_for);
  PagedAttention(isa, *pairs, args, parallel_for);
}

std::vector<AttentionWay> EmulatedAttention(const CaseSpec& spec) {
  std::vector<AttentionWay> ways;
  if (!spec.HoldsPairs()) return ways;
#if defined(__x86_64__)
  ways.emplace_back("tiles in plain arithmetic", CpuIsa::kPortable, &kPairAttentionEmulatedEverywhere);
  if (BestCpuIsa() >= CpuIsa::kAvx512Bf16) {
    ways.emplace_back("tiles in plain arithmetic under avx512_bf16", CpuIsa::kAvx512Bf16, &kPairAttentionEmulatedTiles);
  }
#endif
  return ways;
}

std::vector<AttentionWay> AttentionWays(const CaseSpec& spec) {
  std::vector<AttentionWay> ways;
  for (const CpuIsa isa : AvailableIsas()) ways.emplace_back(isa);
  for (const AttentionWay& way : EmulatedAttention(spec)) ways.push_back(way);
  return ways;
}

void Serially(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = 0; i < count; ++i) body(i);
}

void Reversed(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = count; i-- > 0;) body(i);
}

template <int num_threads>
void OnThreads(size_t count, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

template void OnThreads<2>(size_t count, const std::function<void(size_t)>& body);
template void OnThreads<3>(size_t count, const std::function<void(size_t)>& body);

void OnFourThreads(size_t count, const std::function<void(size_t)>& body) { OnThreads<4>(count, body); }

PagedAttentionCase::PagedAttentionCase(const CaseSpec& case_spec) : spec(case_spec) {
  std::mt19937 random(spec.seed);
  cumulative_lengths = {0};
  int32_t positions = 1;
  for (const RowSpec& row : spec.rows) {
    num_tokens += row.num_new;
    cumulative_lengths.push_back(num_tokens);
    past_lengths.push_back(row.past);
    positions = std::max(positions, row.past + row.num_new);
  }
  const int32_t query_floats = spec.num_heads * spec.head_size, kv_floats = spec.num_kv_heads * spec.head_size;
  query = RandomFloats(static_cast<size_t>(num_tokens) * query_floats, random);
  for (float& x : query) x *= 4.0f;  // scores spread wide enough that the softmax is far from uniform
  key = RandomFloats(static_cast<size_t>(num_tokens) * kv_floats, random);
  value = RandomFloats(static_cast<size_t>(num_tokens) * kv_floats, random);
  output.assign(query.size(), std::numeric_limits<float>::quiet_NaN());
  for (int32_t p = 0; p < positions; ++p) {
    for (int32_t i = 0; i < RotaryDim() / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / RotaryDim());
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  DrawOptions();
  for (std::vector<float>* part : {&query, &key, &value, &cosines, &sines, &query_norm, &key_norm, &sinks}) {
    RoundTo(spec.activation_type, *part);
  }
  MapBlocks();
  FillCaches();
}

void PagedAttentionCase::DrawOptions() {
  std::mt19937 random(spec.seed + 3);
  if (spec.norm) {
    query_norm = RandomFloats(spec.head_size, random, 0.5f, 2.0f);
    key_norm = RandomFloats(spec.head_size, random, 0.5f, 2.0f);
  }
  if (spec.sinks) sinks = RandomFloats(spec.num_heads, random, -3.0f, 6.0f);
  if (spec.cache_type == CacheType::kInt8) {
    const size_t count = spec.channel_scales ? static_cast<size_t>(spec.num_kv_heads) * spec.head_size : 1;
    key_scale = RandomFloats(count, random, 0.004f, 0.009f);
    value_scale = RandomFloats(count, random, 0.004f, 0.009f);
  }
}

// Blocks in shuffled order, a third of them nobody's.
void PagedAttentionCase::MapBlocks() {
  int32_t used = 0;
  for (const RowSpec& row : spec.rows) {
    const int32_t blocks = (row.past + row.num_new + spec.block_size - 1) / spec.block_size;
    used += blocks;
    table_columns = std::max(table_columns, blocks + 1);
  }
  num_blocks = used + used / 2 + 1;
  std::vector<int32_t> free(num_blocks);
  std::iota(free.begin(), free.end(), 0);
  std::mt19937 random(spec.seed + 1);
  std::shuffle(free.begin(), free.end(), random);
  for (const RowSpec& row : spec.rows) {
    const int32_t oldest = spec.window < 0 ? 0 : std::max(0, row.past - spec.window + 1);
    for (int32_t column = 0; column < table_columns; ++column) {
      const bool touched = row.num_new > 0 && (column + 1) * spec.block_size > oldest &&
                           column * spec.block_size < row.past + row.num_new;
      block_table.push_back(touched ? free.back() : column % 2 == 0 ? -1 : INT32_MAX);
      if (touched) free.pop_back();
    }
  }
}

void PagedAttentionCase::FillCaches() {
  const size_t kv_floats = static_cast<size_t>(spec.num_kv_heads) * spec.head_size;
  const size_t bytes = num_blocks * spec.block_size * kv_floats * ElementBytes(spec.cache_type);
  std::mt19937 random(spec.seed + 2);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (std::vector<uint8_t>* cache : {&key_cache, &value_cache}) {
    cache->assign(bytes, kPoison);
    for (size_t row = 0; row < spec.rows.size(); ++row) {
      const int32_t past = spec.rows[row].past;
      if (spec.rows[row].num_new == 0) continue;
      for (int32_t p = spec.window < 0 ? 0 : std::max(0, past - spec.window + 1); p < past; ++p) {
        const int64_t first = CacheIndex(static_cast<int32_t>(row), p, 0);
        for (size_t i = 0; i < kv_floats; ++i) FillElement(first + i, uniform(random), cache->data());
      }
    }
  }
  initial_key_cache_ = key_cache;
  initial_value_cache_ = value_cache;
}

// Nothing is rounded as the kernel rounds: any number near will do.
void PagedAttentionCase::FillElement(int64_t index, float x, uint8_t* cache) const {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  switch (spec.cache_type) {
    case CacheType::kFloat32: std::memcpy(cache + 4 * index, &bits, 4); return;
    case CacheType::kFloat16: {
      // Between 2^-3 and 2, as the lowest bits of the number will have it.
      const uint16_t half = static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (0x3000 + bits % 0x0c00));
      std::memcpy(cache + 2 * index, &half, 2);
      return;
    }
    case CacheType::kBfloat16: {
      const uint16_t upper = static_cast<uint16_t>(bits >> 16);
      std::memcpy(cache + 2 * index, &upper, 2);
      return;
    }
    case CacheType::kInt8: cache[index] = static_cast<uint8_t>(static_cast<int8_t>(x * 128.0f));
  }
}

const void* PagedAttentionCase::Narrow(const std::vector<float>& values, Bytes* memory) const {
  if (spec.activation_type == ActivationType::kFloat32) return values.data();
  memory->resize(2 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = NarrowBits(spec.activation_type, values[i]);
    std::memcpy(memory->data() + 2 * i, &bits, 2);
  }
  return memory->data();
}

void PagedAttentionCase::Widen(const Bytes& memory, std::vector<float>* values) const {
  for (size_t i = 0; i < values->size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, memory.data() + 2 * i, 2);
    (*values)[i] = WidenBits(spec.activation_type, bits);
  }
}

void PagedAttentionCase::FetchOutput() {
  if (spec.activation_type != ActivationType::kFloat32) Widen(output_memory_, &output);
}

PagedAttentionArgs PagedAttentionCase::Args() {
  PagedAttentionArgs args;
  args.shape = {num_tokens,      static_cast<int32_t>(spec.rows.size()),
                spec.num_heads,  spec.num_kv_heads,
                spec.head_size,  num_blocks,
                spec.block_size, table_columns};
  args.params = {.scale = spec.scale,
                 .window = spec.window,
                 .softcap = spec.softcap,
                 .norm_epsilon = spec.norm_epsilon,
                 .rotary = spec.rotary,
                 .rotary_interleaved = spec.rotary_interleaved,
                 .rotary_offset = spec.rotary_offset,
                 .rotary_dim = RotaryDim(),
                 .rotary_positions = static_cast<int32_t>(cosines.size()) / (RotaryDim() / 2)};
  args.cache_type = spec.cache_type;
  args.activation_type = spec.activation_type;
  args.num_threads = num_threads;
  PointToActivations(query, key, value, &args);
  args.key_cache = key_cache.data();
  args.value_cache = value_cache.data();
  args.cumulative_lengths = cumulative_lengths.data();
  args.past_lengths = past_lengths.data();
  args.block_table = block_table.data();
  if (spec.rotary) {
    args.cos_cache = Narrow(cosines, &cos_memory_);
    args.sin_cache = Narrow(sines, &sin_memory_);
  }
  if (spec.norm) {
    args.query_norm = Narrow(query_norm, &query_norm_memory_);
    args.key_norm = Narrow(key_norm, &key_norm_memory_);
  }
  if (spec.sinks) args.head_sink = Narrow(sinks, &sink_memory_);
  if (spec.cache_type == CacheType::kInt8) {
    args.key_scale = {key_scale.data(), spec.channel_scales};
    args.value_scale = {value_scale.data(), spec.channel_scales};
  }
  args.output = output.data();
  if (spec.activation_type != ActivationType::kFloat32) {
    output_memory_.assign(2 * output.size(), kPoison);
    args.output = output_memory_.data();
  }
  if (spec.mapped) MapSlots(&args);
  return args;
}

void PagedAttentionCase::PointToActivations(const std::vector<float>& q, const std::vector<float>& k,
                                            const std::vector<float>& v, PagedAttentionArgs* args) {
  const int32_t query_floats = spec.num_heads * spec.head_size, kv_floats = spec.num_kv_heads * spec.head_size;
  args->query_stride = query_floats;
  args->key_stride = args->value_stride = kv_floats;
  if (!spec.packed) {
    args->query = Narrow(q, &query_memory_);
    args->key = Narrow(k, &key_memory_);
    args->value = Narrow(v, &value_memory_);
    return;
  }
  packed_.clear();
  for (int32_t t = 0; t < args->shape.num_tokens; ++t) {
    packed_.insert(packed_.end(), q.begin() + t * query_floats, q.begin() + (t + 1) * query_floats);
    packed_.insert(packed_.end(), k.begin() + t * kv_floats, k.begin() + (t + 1) * kv_floats);
    packed_.insert(packed_.end(), v.begin() + t * kv_floats, v.begin() + (t + 1) * kv_floats);
  }
  const uint8_t* const base = static_cast<const uint8_t*>(Narrow(packed_, &query_memory_));
  const int32_t bytes = ActivationBytes(spec.activation_type);
  args->query = base;
  args->key = base + bytes * query_floats;
  args->value = base + bytes * (query_floats + kv_floats);
  args->query_stride = args->key_stride = args->value_stride = query_floats + 2 * kv_floats;
}

// What the call would do without a mapping.
void PagedAttentionCase::MapSlots(PagedAttentionArgs* args) {
  slot_mapping_.clear();
  for (int32_t row = 0; row < args->shape.num_rows; ++row) {
    for (int32_t i = 0; i < args->cumulative_lengths[row + 1] - args->cumulative_lengths[row]; ++i) {
      const int32_t position = args->past_lengths[row] + i;
      const int32_t block = args->block_table[row * table_columns + position / spec.block_size];
      slot_mapping_.push_back(block * spec.block_size + position % spec.block_size);
    }
  }
  args->slot_mapping = slot_mapping_.data();
}

void PagedAttentionCase::Compute(const AttentionWay& way, const PagedAttentionArgs& args,
                                 const ParallelFor& parallel_for) {
  ASSERT_EQ(ValidatePagedAttention(args), "");
  PoisonStack();
  way.Compute(args, parallel_for);
  in_pairs_ = spec.HoldsPairs() && (way.pairs != nullptr || way.isa >= CpuIsa::kAvx512Bf16);
}

void PagedAttentionCase::Run(const AttentionWay& way, const ParallelFor& parallel_for) {
  std::fill(output.begin(), output.end(), std::numeric_limits<float>::quiet_NaN());
  Compute(way, Args(), parallel_for);
  FetchOutput();
}

void PagedAttentionCase::RunInChunks(const AttentionWay& way, int32_t chunk_tokens) {
  std::vector<int32_t> done(spec.rows.size(), 0), count(spec.rows.size(), 0);
  for (bool more = true; more;) {
    more = false;
    for (size_t row = 0; row < spec.rows.size(); ++row) {
      count[row] = std::min(chunk_tokens, spec.rows[row].num_new - done[row]);
      more = more || count[row] > 0;
    }
    if (more) RunTokens(way, done, count);
    for (size_t row = 0; row < spec.rows.size(); ++row) done[row] += count[row];
  }
}

void PagedAttentionCase::RunRowByRow(const AttentionWay& way) {
  for (size_t row = 0; row < spec.rows.size(); ++row) {
    std::vector<int32_t> count(spec.rows.size(), 0);
    count[row] = spec.rows[row].num_new;
    RunTokens(way, std::vector<int32_t>(spec.rows.size(), 0), count);
  }
}

// One call over `count` tokens of each row behind `done`; rows without any are no rows of the call.
void PagedAttentionCase::RunTokens(const AttentionWay& way, const std::vector<int32_t>& done,
                                   const std::vector<int32_t>& count) {
  const int32_t query_floats = spec.num_heads * spec.head_size, kv_floats = spec.num_kv_heads * spec.head_size;
  std::vector<float> q, k, v;
  std::vector<int32_t> lengths = {0}, past, table, tokens;
  for (size_t row = 0; row < count.size(); ++row) {
    if (count[row] == 0) continue;
    for (int32_t i = 0; i < count[row]; ++i) {
      const int32_t t = cumulative_lengths[row] + done[row] + i;
      tokens.push_back(t);
      q.insert(q.end(), query.begin() + t * query_floats, query.begin() + (t + 1) * query_floats);
      k.insert(k.end(), key.begin() + t * kv_floats, key.begin() + (t + 1) * kv_floats);
      v.insert(v.end(), value.begin() + t * kv_floats, value.begin() + (t + 1) * kv_floats);
    }
    lengths.push_back(static_cast<int32_t>(tokens.size()));
    past.push_back(past_lengths[row] + done[row]);
    table.insert(table.end(), block_table.begin() + row * table_columns,
                 block_table.begin() + (row + 1) * table_columns);
  }
  std::vector<float> out(q.size(), std::numeric_limits<float>::quiet_NaN());
  PagedAttentionArgs args = Args();
  Bytes out_memory(2 * q.size(), kPoison);
  args.shape.num_tokens = static_cast<int32_t>(tokens.size());
  args.shape.num_rows = static_cast<int32_t>(past.size());
  PointToActivations(q, k, v, &args);
  const bool narrow = spec.activation_type != ActivationType::kFloat32;
  args.output = narrow ? static_cast<void*>(out_memory.data()) : out.data();
  args.cumulative_lengths = lengths.data(), args.past_lengths = past.data(), args.block_table = table.data();
  if (spec.mapped) MapSlots(&args);
  Compute(way, args, Serially);
  if (narrow) Widen(out_memory, &out);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::copy_n(out.begin() + i * query_floats, query_floats, output.begin() + tokens[i] * query_floats);
  }
}

int64_t PagedAttentionCase::CacheIndex(int32_t row, int32_t position, int32_t head) const {
  const int64_t block = block_table[row * table_columns + position / spec.block_size];
  const int64_t slot = block * spec.block_size + position % spec.block_size;
  return (slot * spec.num_kv_heads + head) * spec.head_size;
}

}  // namespace oga::kernels
