#include "native/kernels/paged_attention_case.h"

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

namespace oga::kernels {

namespace {

size_t ElementBytes(CacheType type) { return type == CacheType::kFloat16 ? 2 : 4; }

// IEEE half to double by its definition.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

std::vector<float> RandomFloats(size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

}  // namespace

std::string CaseSpec::Describe() const {
  std::ostringstream out;
  out << num_heads << "/" << num_kv_heads << " heads of " << head_size << ", blocks of " << block_size << ", "
      << (cache_type == CacheType::kFloat16 ? "fp16" : "fp32") << " cache, window " << window << ", rotary "
      << (rotary ? rotary_dim : -1) << (rotary_interleaved ? " interleaved" : "") << ", rows";
  for (const RowSpec& row : rows) out << " " << row.past << "+" << row.num_new;
  return out.str();
}

std::vector<CpuIsa> AvailableIsas() {
  std::vector<CpuIsa> isas;
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= BestCpuIsa()) isas.push_back(isa);
  }
  return isas;
}

void Serially(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = 0; i < count; ++i) body(i);
}

void Reversed(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = count; i-- > 0;) body(i);
}

void OnFourThreads(size_t count, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

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
  for (int32_t t = 0; t < num_tokens; ++t) {
    packed.insert(packed.end(), query.begin() + t * query_floats, query.begin() + (t + 1) * query_floats);
    packed.insert(packed.end(), key.begin() + t * kv_floats, key.begin() + (t + 1) * kv_floats);
    packed.insert(packed.end(), value.begin() + t * kv_floats, value.begin() + (t + 1) * kv_floats);
  }
  output.assign(query.size(), std::numeric_limits<float>::quiet_NaN());
  for (int32_t p = 0; p < positions; ++p) {
    for (int32_t i = 0; i < RotaryDim() / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / RotaryDim());
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  MapBlocks();
  FillCaches();
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
    cache->assign(bytes, 0xff);  // a NaN in both types
    for (size_t row = 0; row < spec.rows.size(); ++row) {
      const int32_t past = spec.rows[row].past;
      if (spec.rows[row].num_new == 0) continue;
      for (int32_t p = spec.window < 0 ? 0 : std::max(0, past - spec.window + 1); p < past; ++p) {
        const int64_t first = CacheIndex(static_cast<int32_t>(row), p, 0);
        for (size_t i = 0; i < kv_floats; ++i) {
          const float x = uniform(random);
          if (spec.cache_type == CacheType::kFloat32) {
            std::memcpy(cache->data() + 4 * (first + i), &x, 4);
          } else {
            // Any half in [2^-14, 2): the test does not round here.
            const uint16_t half = static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (0x3000 + random() % 0x0c00));
            std::memcpy(cache->data() + 2 * (first + i), &half, 2);
          }
        }
      }
    }
  }
  initial_key_cache_ = key_cache;
  initial_value_cache_ = value_cache;
}

PagedAttentionArgs PagedAttentionCase::Args() {
  PagedAttentionArgs args;
  args.shape = {num_tokens,      static_cast<int32_t>(spec.rows.size()),
                spec.num_heads,  spec.num_kv_heads,
                spec.head_size,  num_blocks,
                spec.block_size, table_columns};
  args.params.scale = spec.scale;
  args.params.window = spec.window;
  args.params.rotary = spec.rotary;
  args.params.rotary_interleaved = spec.rotary_interleaved;
  args.params.rotary_dim = RotaryDim();
  args.params.rotary_positions = static_cast<int32_t>(cosines.size()) / (RotaryDim() / 2);
  args.cache_type = spec.cache_type;
  const int32_t query_floats = spec.num_heads * spec.head_size, kv_floats = spec.num_kv_heads * spec.head_size;
  args.query = spec.packed ? packed.data() : query.data();
  args.key = spec.packed ? packed.data() + query_floats : key.data();
  args.value = spec.packed ? packed.data() + query_floats + kv_floats : value.data();
  args.query_stride = spec.packed ? query_floats + 2 * kv_floats : query_floats;
  args.key_stride = spec.packed ? args.query_stride : kv_floats;
  args.value_stride = args.key_stride;
  args.key_cache = key_cache.data();
  args.value_cache = value_cache.data();
  args.cumulative_lengths = cumulative_lengths.data();
  args.past_lengths = past_lengths.data();
  args.block_table = block_table.data();
  args.cos_cache = spec.rotary ? cosines.data() : nullptr;
  args.sin_cache = spec.rotary ? sines.data() : nullptr;
  args.output = output.data();
  return args;
}

void PagedAttentionCase::Run(CpuIsa isa, const ParallelFor& parallel_for) {
  const PagedAttentionArgs args = Args();
  ASSERT_EQ(ValidatePagedAttention(args), "");
  PagedAttention(isa, args, parallel_for);
}

void PagedAttentionCase::RunInChunks(CpuIsa isa, int32_t chunk_tokens) {
  std::vector<int32_t> done(spec.rows.size(), 0), count(spec.rows.size(), 0);
  for (bool more = true; more;) {
    more = false;
    for (size_t row = 0; row < spec.rows.size(); ++row) {
      count[row] = std::min(chunk_tokens, spec.rows[row].num_new - done[row]);
      more = more || count[row] > 0;
    }
    if (more) RunTokens(isa, done, count);
    for (size_t row = 0; row < spec.rows.size(); ++row) done[row] += count[row];
  }
}

void PagedAttentionCase::RunRowByRow(CpuIsa isa) {
  for (size_t row = 0; row < spec.rows.size(); ++row) {
    std::vector<int32_t> count(spec.rows.size(), 0);
    count[row] = spec.rows[row].num_new;
    RunTokens(isa, std::vector<int32_t>(spec.rows.size(), 0), count);
  }
}

// One call over `count` tokens of each row behind `done`; rows without any are no rows of the call.
void PagedAttentionCase::RunTokens(CpuIsa isa, const std::vector<int32_t>& done, const std::vector<int32_t>& count) {
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
  std::vector<float> out(q.size());
  PagedAttentionArgs args = Args();
  args.shape.num_tokens = static_cast<int32_t>(tokens.size());
  args.shape.num_rows = static_cast<int32_t>(past.size());
  args.query = q.data(), args.key = k.data(), args.value = v.data(), args.output = out.data();
  args.query_stride = query_floats, args.key_stride = args.value_stride = kv_floats;
  args.cumulative_lengths = lengths.data(), args.past_lengths = past.data(), args.block_table = table.data();
  ASSERT_EQ(ValidatePagedAttention(args), "");
  PagedAttention(isa, args, Serially);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::copy_n(out.begin() + i * query_floats, query_floats, output.begin() + tokens[i] * query_floats);
  }
}

int64_t PagedAttentionCase::CacheIndex(int32_t row, int32_t position, int32_t head) const {
  const int64_t block = block_table[row * table_columns + position / spec.block_size];
  const int64_t slot = block * spec.block_size + position % spec.block_size;
  return (slot * spec.num_kv_heads + head) * spec.head_size;
}

double PagedAttentionCase::CacheValue(const std::vector<uint8_t>& cache, int64_t index) const {
  if (spec.cache_type == CacheType::kFloat16) {
    uint16_t half;
    std::memcpy(&half, cache.data() + 2 * index, 2);
    return HalfValue(half);
  }
  float value;
  std::memcpy(&value, cache.data() + 4 * index, 4);
  return value;
}

std::vector<double> PagedAttentionCase::Rotated(const float* head, int32_t position) const {
  std::vector<double> out(head, head + spec.head_size);
  if (!spec.rotary) return out;
  const int32_t half = RotaryDim() / 2;
  for (int32_t i = 0; i < half; ++i) {
    const int32_t a = spec.rotary_interleaved ? 2 * i : i, b = spec.rotary_interleaved ? 2 * i + 1 : half + i;
    const double c = cosines[position * half + i], s = sines[position * half + i];
    out[a] = head[a] * c - head[b] * s;
    out[b] = head[a] * s + head[b] * c;
  }
  return out;
}

std::vector<double> PagedAttentionCase::ExpectedOutput() const {
  std::vector<double> expected;
  const double scale = spec.scale == 0.0f ? 1.0 / std::sqrt(spec.head_size) : spec.scale;
  const int32_t group = spec.num_heads / spec.num_kv_heads;
  for (int32_t row = 0; row < static_cast<int32_t>(spec.rows.size()); ++row) {
    for (int32_t i = 0; i < spec.rows[row].num_new; ++i) {
      const int32_t token = cumulative_lengths[row] + i, position = past_lengths[row] + i;
      const int32_t oldest = spec.window < 0 ? 0 : std::max(0, position - (spec.window - 1));
      for (int32_t head = 0; head < spec.num_heads; ++head) {
        const std::vector<double> q =
            Rotated(&query[(static_cast<size_t>(token) * spec.num_heads + head) * spec.head_size], position);
        std::vector<double> scores;
        for (int32_t p = oldest; p <= position; ++p) {
          const int64_t slot = CacheIndex(row, p, head / group);
          double dot = 0.0;
          for (int32_t d = 0; d < spec.head_size; ++d) dot += q[d] * CacheValue(key_cache, slot + d);
          scores.push_back(dot * scale);
        }
        const double highest = *std::max_element(scores.begin(), scores.end());
        double total = 0.0;
        std::vector<double> sums(spec.head_size, 0.0);
        for (int32_t p = oldest; p <= position; ++p) {
          const double weight = std::exp(scores[p - oldest] - highest);
          const int64_t slot = CacheIndex(row, p, head / group);
          total += weight;
          for (int32_t d = 0; d < spec.head_size; ++d) sums[d] += weight * CacheValue(value_cache, slot + d);
        }
        for (const double sum : sums) expected.push_back(sum / total);
      }
    }
  }
  return expected;
}

// `slack` is how far the exact value before rounding may lie from what the call computed in single precision.
void PagedAttentionCase::ExpectSlot(const std::vector<uint8_t>& cache, int64_t index, double wanted,
                                    double slack) const {
  double rounding = 0.0;
  if (spec.cache_type == CacheType::kFloat16) {
    const int exponent = std::max(wanted == 0.0 ? -14 : std::ilogb(wanted), -14);
    rounding = std::ldexp(1.0, exponent - 11);
  }
  EXPECT_NEAR(CacheValue(cache, index), wanted, rounding + slack) << "cache element " << index;
}

void PagedAttentionCase::ExpectCacheWritten() const {
  std::vector<uint8_t> keys = key_cache, values = value_cache;
  const size_t slot_bytes = spec.head_size * ElementBytes(spec.cache_type);
  for (int32_t row = 0; row < static_cast<int32_t>(spec.rows.size()); ++row) {
    for (int32_t i = 0; i < spec.rows[row].num_new; ++i) {
      for (int32_t head = 0; head < spec.num_kv_heads; ++head) {
        const int64_t slot = CacheIndex(row, past_lengths[row] + i, head);
        const int64_t token_head = static_cast<int64_t>(cumulative_lengths[row] + i) * spec.num_kv_heads + head;
        const float* new_key = &key[token_head * spec.head_size];
        const std::vector<double> rotated = Rotated(new_key, past_lengths[row] + i);
        for (int32_t d = 0; d < spec.head_size; ++d) {
          ExpectSlot(key_cache, slot + d, rotated[d], spec.rotary ? 2e-7 : 0.0);
          ExpectSlot(value_cache, slot + d, value[token_head * spec.head_size + d], 0.0);
        }
        const size_t at = slot * ElementBytes(spec.cache_type);
        std::copy_n(initial_key_cache_.begin() + at, slot_bytes, keys.begin() + at);
        std::copy_n(initial_value_cache_.begin() + at, slot_bytes, values.begin() + at);
      }
    }
  }
  EXPECT_TRUE(keys == initial_key_cache_) << "a key slot that is no new token's has changed";
  EXPECT_TRUE(values == initial_value_cache_) << "a value slot that is no new token's has changed";
}

void PagedAttentionCase::ExpectOutputNear(const std::vector<double>& expected) const {
  ASSERT_EQ(output.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(output[i] - expected[i]);
    if (!(error <= 2e-6 + 1e-5 * std::fabs(expected[i]))) {
      ADD_FAILURE() << "output element " << i << " is " << output[i] << ", wanted " << expected[i];
      return;
    }
  }
}

}  // namespace oga::kernels
