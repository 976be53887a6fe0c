// What a paged attention call must give, in double precision and plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "native/kernels/attention/paged_attention_case.h"

namespace oga::kernels {

namespace {

size_t ElementBytes(CacheType type) { return static_cast<size_t>(CacheElementBytes(type)); }

// IEEE half to double by its definition.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace

double PagedAttentionCase::ScaleAt(bool is_key, int64_t index) const {
  const std::vector<float>& scale = is_key ? key_scale : value_scale;
  return scale.empty() ? 1.0 : scale[index % static_cast<int64_t>(scale.size())];
}

double PagedAttentionCase::CacheValue(bool is_key, int64_t index) const {
  const Bytes& cache = is_key ? key_cache : value_cache;
  const size_t bytes = ElementBytes(spec.cache_type);
  uint32_t bits = 0;
  std::memcpy(&bits, cache.data() + bytes * index, bytes);
  if (spec.cache_type == CacheType::kInt8) return static_cast<int8_t>(bits) * ScaleAt(is_key, index);
  if (spec.cache_type == CacheType::kFloat16) return HalfValue(static_cast<uint16_t>(bits));
  if (spec.cache_type == CacheType::kBfloat16) bits <<= 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// A head after its norm, which there is if there are gains, and its rotation.
std::vector<double> PagedAttentionCase::Prepared(const float* head, const std::vector<float>& gains,
                                                 int32_t position) const {
  std::vector<double> in(head, head + spec.head_size);
  if (!gains.empty()) {
    double squares = 0.0;
    for (const double x : in) squares += x * x;
    const double root = std::sqrt(squares / spec.head_size + spec.norm_epsilon);
    for (int32_t i = 0; i < spec.head_size; ++i) in[i] *= gains[i] / root;
  }
  if (!spec.rotary) return in;
  std::vector<double> out = in;
  const int32_t half = RotaryDim() / 2;
  for (int32_t i = 0; i < half; ++i) {
    const int32_t a = spec.rotary_offset + (spec.rotary_interleaved ? 2 * i : i);
    const int32_t b = spec.rotary_offset + (spec.rotary_interleaved ? 2 * i + 1 : half + i);
    const double c = cosines[position * half + i], s = sines[position * half + i];
    out[a] = in[a] * c - in[b] * s;
    out[b] = in[a] * s + in[b] * c;
  }
  return out;
}

std::vector<double> PagedAttentionCase::ExpectedOutput() const {
  // Each element is wanted by many queries.
  const auto widened = [this](bool is_key) {
    std::vector<double> values((is_key ? key_cache : value_cache).size() / ElementBytes(spec.cache_type));
    for (size_t i = 0; i < values.size(); ++i) values[i] = CacheValue(is_key, static_cast<int64_t>(i));
    return values;
  };
  const std::vector<double> keys = widened(true), values = widened(false);
  std::vector<double> expected;
  const double scale = spec.scale == 0.0f ? 1.0 / std::sqrt(spec.head_size) : spec.scale;
  const int32_t group = spec.num_heads / spec.num_kv_heads;
  for (int32_t row = 0; row < static_cast<int32_t>(spec.rows.size()); ++row) {
    for (int32_t i = 0; i < spec.rows[row].num_new; ++i) {
      const int32_t token = cumulative_lengths[row] + i, position = past_lengths[row] + i;
      const int32_t oldest = spec.window < 0 ? 0 : std::max(0, position - (spec.window - 1));
      for (int32_t head = 0; head < spec.num_heads; ++head) {
        const std::vector<double> q = Prepared(
            &query[(static_cast<size_t>(token) * spec.num_heads + head) * spec.head_size], query_norm, position);
        std::vector<double> scores;
        for (int32_t p = oldest; p <= position; ++p) {
          const int64_t slot = CacheIndex(row, p, head / group);
          double dot = 0.0;
          for (int32_t d = 0; d < spec.head_size; ++d) dot += q[d] * keys[slot + d];
          dot *= scale;
          scores.push_back(spec.softcap == 0.0f ? dot : spec.softcap * std::tanh(dot / spec.softcap));
        }
        const double highest = *std::max_element(scores.begin(), scores.end());
        double total = spec.sinks ? std::exp(sinks[head] - highest) : 0.0;
        std::vector<double> sums(spec.head_size, 0.0);
        for (int32_t p = oldest; p <= position; ++p) {
          const double weight = std::exp(scores[p - oldest] - highest);
          const int64_t slot = CacheIndex(row, p, head / group);
          total += weight;
          for (int32_t d = 0; d < spec.head_size; ++d) sums[d] += weight * values[slot + d];
        }
        for (const double sum : sums) expected.push_back(sum / total);
      }
    }
  }
  return expected;
}

// `slack` is how far the exact value before rounding may lie from what the call computed in single precision, relative
// to values of the size of 1.
void PagedAttentionCase::ExpectSlot(bool is_key, int64_t index, double wanted, double slack) const {
  double rounding = 0.0;
  const double least = std::max(std::fabs(wanted), 0x1p-14);
  switch (spec.cache_type) {
    case CacheType::kFloat32: break;
    case CacheType::kFloat16: rounding = std::ldexp(1.0, std::ilogb(least) - 11); break;
    case CacheType::kBfloat16: rounding = std::ldexp(1.0, std::ilogb(least) - 8); break;
    case CacheType::kInt8: {
      const double step = ScaleAt(is_key, index);
      rounding = step / 2.0;
      slack += 1e-6 * std::fabs(wanted);  // of the quotient
      wanted = std::clamp(wanted, -128.0 * step, 127.0 * step);
      break;
    }
  }
  EXPECT_NEAR(CacheValue(is_key, index), wanted, rounding + slack) << "cache element " << index;
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
        const std::vector<double> wanted = Prepared(new_key, key_norm, past_lengths[row] + i);
        const double slack = spec.norm ? 1e-6 : spec.rotary ? 2e-7 : 0.0;
        for (int32_t d = 0; d < spec.head_size; ++d) {
          ExpectSlot(true, slot + d, wanted[d], slack);
          ExpectSlot(false, slot + d, value[token_head * spec.head_size + d], 0.0);
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

void PagedAttentionCase::ExpectOutputNear(const std::vector<double>& expected, double units) const {
  ASSERT_EQ(output.size(), expected.size());
  const double unit = spec.activation_type == ActivationType::kFloat16    ? 0x1p-10
                      : spec.activation_type == ActivationType::kBfloat16 ? 0x1p-7
                                                                          : 0.0;
  const double slack = in_pairs_ ? 0x1p-6 : 2e-6;
  double squares = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(output[i] - expected[i]), rounding = units * unit * std::fabs(expected[i]);
    if (!(error <= slack + 1e-5 * std::fabs(expected[i]) + rounding)) {
      ADD_FAILURE() << "output element " << i << " is " << output[i] << ", wanted " << expected[i];
      return;
    }
    squares += std::pow(std::max(error - rounding, 0.0), 2.0);
  }
  const double typical = std::sqrt(squares / static_cast<double>(std::max(expected.size(), size_t{1})));
  EXPECT_LE(typical, in_pairs_ ? 0x1p-9 : slack + 1e-5);
}

}  // namespace oga::kernels
