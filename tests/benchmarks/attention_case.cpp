#include "benchmarks/attention_case.h"

#include <cstring>

#include "base/check.h"
#include "benchmarks/limits.h"

namespace oga::benchmarks {

namespace {

constexpr int32_t kHeads = 14, kKvHeads = 2, kHeadSize = 64, kBlockSlots = 16;
constexpr float kCodeScale = 0.01f;  // of an int8 cache

}  // namespace

AttentionCase::AttentionCase(const AttentionStep& step) : step_(step) {
  const int32_t length = step.past + step.new_tokens;
  const int32_t tokens = step.rows * step.new_tokens;
  auto& shape = args_.shape;
  shape.num_tokens = tokens;
  shape.num_rows = step.rows;
  shape.num_heads = kHeads;
  shape.num_kv_heads = kKvHeads;
  shape.head_size = kHeadSize;
  shape.block_size = kBlockSlots;
  shape.table_columns = (length + kBlockSlots - 1) / kBlockSlots;
  shape.num_blocks = step.rows * shape.table_columns;
  args_.params.rotary = true;
  args_.params.rotary_dim = kHeadSize;
  args_.params.rotary_positions = length;
  args_.cache_type = step.cache;
  if (step.cache == CacheType::kInt8) args_.key_scale = args_.value_scale = {&kCodeScale, false};

  if (step.layers == 0) {
    const auto beyond_bytes = static_cast<int64_t>(BeyondCachesBytes());
    step_.layers = static_cast<int32_t>(beyond_bytes / (2 * LayerBytes()) + 1);
  }

  constexpr int32_t kTokenFloats = (kHeads + 2 * kKvHeads) * kHeadSize;
  activations_.assign(static_cast<size_t>(tokens) * kTokenFloats, 0.25f);
  output_.resize(static_cast<size_t>(tokens) * kHeads * kHeadSize);
  angles_.assign(static_cast<size_t>(length) * kHeadSize / 2, 0.5f);
  // As halves and as floats alike: bytes that make small ordinary numbers.
  const auto bytes = static_cast<size_t>(LayerBytes() * step_.layers);
  for (uint8_t** const cache : {&keys_, &values_}) {
    *cache = caches_.Allocate(bytes);
    std::memset(*cache, 0x2c, bytes);
  }
  // Blocks of a row lie apart, as those of conversations that grew side by side.
  for (int32_t row = 0; row < step.rows; ++row) {
    cumulative_lengths_.push_back(row * step.new_tokens);
    past_lengths_.push_back(step.past);
    for (int32_t column = 0; column < shape.table_columns; ++column) block_table_.push_back(column * step.rows + row);
  }
  cumulative_lengths_.push_back(tokens);

  args_.query = activations_.data();
  args_.key = activations_.data() + kHeads * kHeadSize;
  args_.value = activations_.data() + (kHeads + kKvHeads) * kHeadSize;
  args_.query_stride = args_.key_stride = args_.value_stride = kTokenFloats;
  args_.cumulative_lengths = cumulative_lengths_.data();
  args_.past_lengths = past_lengths_.data();
  args_.block_table = block_table_.data();
  args_.cos_cache = angles_.data();
  args_.sin_cache = angles_.data();
  args_.output = output_.data();
  args_.key_cache = keys_;
  args_.value_cache = values_;
  OGA_CHECK(kernels::ValidatePagedAttention(args_).empty());
}

int64_t AttentionCase::LayerBytes() const {
  return int64_t{args_.shape.num_blocks} * kBlockSlots * kKvHeads * kHeadSize * CacheElementBytes(step_.cache);
}

double AttentionCase::cache_bytes() const {
  const double positions = static_cast<double>(step_.rows) * (step_.past + step_.new_tokens);
  return positions * kKvHeads * kHeadSize * CacheElementBytes(step_.cache) * 2 * step_.layers;
}

double AttentionCase::flops() const {
  const double keys = step_.new_tokens * (step_.past + (step_.new_tokens + 1) / 2.0);  // of all queries of a row
  return 4.0 * kHeads * kHeadSize * keys * step_.rows * step_.layers;
}

void AttentionCase::Run(kernels::CpuIsa isa, ThreadTeam* team) {
  const kernels::ParallelFor parallel_for = [team](size_t count, const std::function<void(size_t)>& body) {
    team->ForEach(count, body);
  };
  args_.num_threads = team->size();
  for (int32_t layer = 0; layer < step_.layers; ++layer) {
    args_.key_cache = keys_ + layer * LayerBytes();
    args_.value_cache = values_ + layer * LayerBytes();
    kernels::PagedAttention(isa, args_, parallel_for);
  }
}

}  // namespace oga::benchmarks
