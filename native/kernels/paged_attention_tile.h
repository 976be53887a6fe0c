// Second half of a paged attention call: causal attention of one tile of queries over the cache. Included by the variant
// sources only; see simd_math.h for linkage.
//
// For each split of kKvSplit positions: keys are transposed sixteen at a time, so that a query's scores are one chain of
// products per key in a lane of its own; the softmax runs over the visible lanes only; the values are weighted in
// position order, one chain per output element. Positions a query does not see take no part in any of its chains, not
// even times zero: a NaN that a later token wrote must not reach an earlier one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/paged_attention_heads.h"
#include "kernels/paged_attention_variant.h"
#include "kernels/paged_attention_write.h"
#include "kernels/simd_math.h"

namespace oga::kernels {
namespace {

// Positions relative to the split, or to a group of sixteen.
struct Span {
  int32_t begin;
  int32_t end;
};

inline int32_t Lower(int32_t a, int32_t b) { return a < b ? a : b; }
inline int32_t Higher(int32_t a, int32_t b) { return a > b ? a : b; }

// Right operand of the scores: groups of sixteen transposed keys.
template <class S>
struct KeyGroups {
  const float* data;
  ptrdiff_t group_floats;
  inline typename S::Vec Load(int k, int column) const { return S::Load(data + column * group_floats + 16 * k); }
};

// Right operands of the output: the whole vectors of value rows in the cache, and at the end the half vectors.
template <class S, class Element>
struct ValueRows {
  const Element* base;
  const int64_t* offsets;
  inline typename S::Vec Load(int k, int column) const { return S::Load(base + offsets[k] + 16 * column); }
};
// The same while rows that come `distance` later are on their way: a line of them for each vector of values, since a
// burst of prefetches would only wait for free miss buffers.
template <class S, class Element>
struct ValueRowsAhead {
  const Element* base;
  const int64_t* offsets;
  const Element* ahead_base;
  const int64_t* ahead_offsets;
  int distance;
  inline typename S::Vec Load(int k, int column) const {
    if (16 * static_cast<int>(sizeof(Element)) * column % 64 == 0) {  // a vector of narrow values is no whole line
      __builtin_prefetch(ahead_base + ahead_offsets[k + distance] + 16 * column, 0, 2);
    }
    return S::Load(base + offsets[k] + 16 * column);
  }
};

template <class S, class Element>
struct ValueTails {
  const Element* base;
  const int64_t* offsets;
  inline typename S::Vec Load(int k, int column) const { return S::LoadLow(base + offsets[k] + 16 * column); }
};

// Views a partial, whose layout paged_attention_variant.h describes.
struct Partial {
  Partial(const PagedAttentionCall& call, const QueryTile& tile, float* memory)
      : highest(memory),
        weight(memory + tile.num_queries),
        values(memory + kPartialHeaderFloats * tile.num_queries),
        stride(call.padded_head_size) {}
  float* highest;
  float* weight;
  float* values;
  ptrdiff_t stride;
};

template <class S>
inline void MergeQuery(const PagedAttentionCall& call, float highest, float weight, const float* values,
                       const Partial& running, int32_t query) {
  using Vec = typename S::Vec;
  if (weight == 0.0f) return;
  float* sums = running.values + query * running.stride;
  if (running.weight[query] == 0.0f) {
    running.highest[query] = highest;
    running.weight[query] = weight;
    for (int32_t i = 0; i < call.padded_head_size; i += 16) S::Store(sums + i, S::Load(values + i));
    return;
  }
  // Whichever side has the lower maximum is scaled down; the other one's factor is 1.
  const bool rises = !(highest <= running.highest[query]);
  const float drop = rises ? running.highest[query] - highest : highest - running.highest[query];
  const Vec factor = Exp2<S>(S::Broadcast(drop));
  const Vec keep = rises ? factor : S::Broadcast(1.0f);
  const Vec add = rises ? S::Broadcast(1.0f) : factor;
  if (rises) running.highest[query] = highest;
  running.weight[query] =
      S::First(S::MulAdd(S::Broadcast(running.weight[query]), keep, S::Mul(S::Broadcast(weight), add)));
  for (int32_t i = 0; i < call.padded_head_size; i += 16) {
    S::Store(sums + i, S::MulAdd(S::Load(sums + i), keep, S::Mul(S::Load(values + i), add)));
  }
}

// What turns a query's weighted sum into its output. A sink adds its weight to the others' and no value.
template <class S>
inline float Normalizer(float highest, float weight, const float* sink) {
  if (sink == nullptr) return 1.0f / weight;
  const float level = *sink * kLog2E;
  if (level <= highest) return 1.0f / (weight + S::First(Exp2<S>(S::Broadcast(level - highest))));
  const float drop = S::First(Exp2<S>(S::Broadcast(highest - level)));
  return drop / (S::First(S::MulAdd(S::Broadcast(weight), S::Broadcast(drop), S::Broadcast(1.0f))));
}

template <class S>
inline void WriteOutput(const PagedAttentionCall& call, const QueryTile& tile, const Partial& running) {
  const PagedAttentionArgs& args = call.args;
  const int32_t head_size = args.shape.head_size;
  const ChannelScales scales(args.value_scale, tile.kv_head, head_size);
  alignas(64) float row[kMaxHeadSize + 16];
  for (int32_t i = 0; i < tile.num_queries; ++i) {
    const int32_t query = tile.first_query + i;
    const int32_t head = tile.kv_head * call.group_size + query % call.group_size;
    const int64_t token = args.cumulative_lengths[tile.row] + query / call.group_size;
    const float* sums = running.values + i * running.stride;
    float memory;
    const float* sink =
        args.head_sink == nullptr ? nullptr : ReadRow<S>(args.activation_type, args.head_sink, head, 1, &memory);
    const auto factor = S::Broadcast(Normalizer<S>(running.highest[i], running.weight[i], sink));
    for (int32_t d = 0; d < call.padded_head_size; d += 16) S::Store(row + d, S::Mul(S::Load(sums + d), factor));
    if (scales.data != nullptr) {
      for (int32_t d = 0; d < head_size; ++d) row[d] *= scales[d];
    }
    const int64_t first = (token * args.shape.num_heads + head) * head_size;
    StoreActivations<S>(args.activation_type, row, head_size, args.output, first);
  }
}

template <class S, class Element>
class TileAttention {
 public:
  TileAttention(const PagedAttentionCall& call, const QueryTile& tile, int32_t first_split)
      : call_(call),
        tile_(tile),
        head_size_(call.args.shape.head_size),
        keys_(static_cast<const Element*>(call.args.key_cache) + tile.kv_head * head_size_),
        values_(static_cast<const Element*>(call.args.value_cache) + tile.kv_head * head_size_),
        ahead_rows_(Lower(kAheadBytes / (head_size_ * static_cast<int32_t>(sizeof(Element))), kKvSplit / 2)) {
    SendForFirst(first_split);
    PrepareQueries();
  }

  // All splits in order, merged as they come.
  void Run() {
    const int32_t floats = tile_.num_queries * (kPartialHeaderFloats + call_.padded_head_size);
    for (int32_t i = 0; i < floats; ++i) running_[i] = 0.0f;
    const Partial running(call_, tile_, running_);
    last_split_ = Position(tile_.num_queries - 1) / kKvSplit;
    for (int32_t split = next_->split; split <= last_split_; ++split) {
      ScoreSplit(split);
      for (int32_t first = 0, rows; first < tile_.num_queries; first += rows) {
        rows = TileRows<S>(tile_.num_queries - first);
        WeighValues(first, rows, weighted_);
        for (int32_t i = first; i < first + rows; ++i) {
          MergeQuery<S>(call_, highest_[i], weight_[i], weighted_ + (i - first) * call_.padded_head_size, running, i);
        }
      }
    }
    WriteOutput<S>(call_, tile_, running);
  }

  void RunSplits(const SplitRun& run, float* partials) {
    last_split_ = run.first_split + run.num_splits - 1;
    for (int32_t split = run.first_split; split <= last_split_; ++split, partials += run.slot_floats) {
      const Partial partial(call_, tile_, partials);
      ScoreSplit(split);
      for (int32_t first = 0, rows; first < tile_.num_queries; first += rows) {
        rows = TileRows<S>(tile_.num_queries - first);
        WeighValues(first, rows, partial.values + first * partial.stride);
      }
      for (int32_t i = 0; i < tile_.num_queries; ++i) {
        partial.highest[i] = highest_[i];
        partial.weight[i] = weight_[i];
      }
    }
  }

 private:
  static constexpr int32_t kChunkGroups = 4;  // groups of sixteen keys transposed together, fewer for long heads
  static constexpr int32_t kKeyFloats = 16384;
  static constexpr int32_t kAheadBytes = 8192;  // of a head's keys or values: what arrives in a memory latency

  // Where the keys and values of a split lie, from the head's first one. Positions that no query of the tile sees repeat
  // the nearest one that some query does: the table may hold nothing for them.
  struct SplitOffsets {
    int32_t split = -1;
    int64_t offsets[kKvSplit];
  };

  // The keys that come before the first ones that are sent for on the way, while the queries are prepared.
  void SendForFirst(int32_t split) {
    Locate(split, *next_);
    const int32_t begin = Visible(0, split).begin;
    const int32_t end = Lower(begin + ahead_rows_, Visible(tile_.num_queries - 1, split).end);
    for (int32_t i = begin; i < end; ++i) PrefetchRow(keys_ + next_->offsets[i]);
  }

  int32_t Position(int32_t i) const {
    return call_.args.past_lengths[tile_.row] + (tile_.first_query + i) / call_.group_size;
  }

  // A key's scale goes into the query: products with the cache's codes are then products with the keys.
  void PrepareQueries() {
    const PagedAttentionArgs& args = call_.args;
    HeadReader<S> reader(call_, args.query, args.query_stride, args.query_norm);
    const ChannelScales scales(args.key_scale, tile_.kv_head, head_size_);
    for (int32_t i = 0; i < tile_.num_queries; ++i) {
      const int32_t query = tile_.first_query + i;
      const int32_t head = tile_.kv_head * call_.group_size + query % call_.group_size;
      const int64_t token = args.cumulative_lengths[tile_.row] + query / call_.group_size;
      float* row = queries_ + i * head_size_;
      reader.Read(token, head, Position(i), row);
      for (int32_t d = 0; d < head_size_; ++d) row[d] *= call_.score_scale;
      if (scales.data == nullptr) continue;
      for (int32_t d = 0; d < head_size_; ++d) row[d] *= scales[d];
    }
  }

  // The positions of a split that the tile's query `i` sees.
  Span Visible(int32_t i, int32_t split) const {
    const int32_t position = Position(i), start = split * kKvSplit;
    return {Lower(Higher(FirstVisible(call_.args.params, position) - start, 0), kKvSplit),
            Higher(Lower(position + 1 - start, kKvSplit), 0)};
  }

  // Leaves the split's weights in scores_, and where to find the next split in next_.
  void ScoreSplit(int32_t split) {
    SplitOffsets* const spare = current_;
    current_ = next_;
    next_ = spare;
    if (current_->split != split) Locate(split, *current_);
    for (int32_t i = 0; i < tile_.num_queries; ++i) visible_[i] = Visible(i, split);
    const int32_t chunk = Lower(kChunkGroups, kKeyFloats / (16 * head_size_));
    const int32_t end_group = (visible_[tile_.num_queries - 1].end + 15) / 16;
    for (int32_t group = visible_[0].begin / 16; group < end_group; group += chunk) {
      ScoreChunk(group, Lower(group + chunk, end_group), 16 * end_group);
    }
    for (int32_t i = 0; i < tile_.num_queries; ++i) Softmax(i);
    next_->split = -1;
    if (split < last_split_) Locate(split + 1, *next_);
  }

  void Locate(int32_t split, SplitOffsets& located) const {
    const PagedAttentionShape& shape = call_.args.shape;
    const int64_t slot_floats = static_cast<int64_t>(shape.num_kv_heads) * head_size_;
    const Span span = {Visible(0, split).begin, Visible(tile_.num_queries - 1, split).end};
    for (int32_t i = span.begin; i < span.end;) {
      const int32_t position = split * kKvSplit + i;
      const int32_t count = Lower(shape.block_size - position % shape.block_size, span.end - i);
      const int64_t offset = CacheOffset(call_.args, tile_.row, position);
      for (int32_t j = 0; j < count; ++j) located.offsets[i + j] = offset + j * slot_floats;
      i += count;
    }
    for (int32_t i = 0; i < span.begin; ++i) located.offsets[i] = located.offsets[span.begin];
    for (int32_t i = span.end; i < kKvSplit; ++i) located.offsets[i] = located.offsets[span.end - 1];
    located.split = split;
  }

  void ScoreChunk(int32_t group, int32_t end_group, int32_t end_key) {
    const ptrdiff_t group_floats = 16 * head_size_;
    for (int32_t g = group; g < end_group; ++g) {
      TransposeGroup(g, end_key, transposed_ + (g - group) * group_floats);
    }
    const KeyGroups<S> right = {transposed_, group_floats};
    for (int32_t first = 0, rows; first < tile_.num_queries; first += rows) {
      rows = TileRows<S>(tile_.num_queries - first);
      if (visible_[first + rows - 1].end <= 16 * group || visible_[first].begin >= 16 * end_group) continue;
      float* scores = scores_ + first * kKvSplit + 16 * group;
      const RowBlock block = {queries_ + first * head_size_, head_size_, scores, kKvSplit};
      Multiply<S, false>(rows, block, right, 0, head_size_, 0, end_group - group);
    }
  }

  // Between the steps, the rows that the tile comes to ahead_rows_ later are sent for, a few lines at a time: keys before
  // `end_key`, and behind them the split's first values.
  void TransposeGroup(int32_t group, int32_t end_key, float* transposed) const {
    const int64_t* offsets = current_->offsets;
    const int32_t steps = head_size_ / 8;
    for (int32_t step = 0, row = 0; step < steps; ++step) {
      for (; row * steps < 16 * (step + 1); ++row) {
        const int32_t ahead = 16 * group + row + ahead_rows_;
        const int32_t value = Lower(visible_[0].begin + ahead - end_key, kKvSplit - 1);
        PrefetchRow(ahead < end_key ? keys_ + offsets[ahead] : values_ + offsets[value]);
      }
      S::Transpose(keys_ + 8 * step, offsets + 16 * group, transposed + 128 * step);
    }
  }

  void PrefetchRow(const Element* row) const {
    const char* bytes = reinterpret_cast<const char*>(row);
    const int32_t row_bytes = head_size_ * static_cast<int32_t>(sizeof(Element));
    for (int32_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(bytes + i, 0, 2);
    asm volatile("");  // GCC takes a function that only prefetches for one without effect, and drops its calls
  }

  void Softmax(int32_t query) {
    using Vec = typename S::Vec;
    const Span span = visible_[query];
    highest_[query] = 0.0f;
    weight_[query] = 0.0f;
    if (span.begin >= span.end) return;
    float* scores = scores_ + query * kKvSplit;
    if (call_.score_cap > 0.0f) CapScores(span, scores);
    const Vec nothing = S::Broadcast(-__builtin_inff());
    const Vec zero = S::Broadcast(0.0f);
    Vec highest = nothing;
    for (int32_t start = span.begin / 16 * 16; start < span.end; start += 16) {
      highest = S::Max(highest, S::KeepLanes(S::Load(scores + start), span.begin - start, span.end - start, nothing));
    }
    highest_[query] = S::ReduceMax(highest);
    const Vec top = S::Broadcast(highest_[query]);
    Vec sum = zero;
    for (int32_t start = span.begin / 16 * 16; start < span.end; start += 16) {
      const Vec weights = Exp2<S>(S::Sub(S::Load(scores + start), top));
      const Vec kept = S::KeepLanes(weights, span.begin - start, span.end - start, zero);
      S::Store(scores + start, kept);
      sum = S::Add(sum, kept);
    }
    weight_[query] = S::ReduceAdd(sum);
  }

  void CapScores(Span span, float* scores) const {
    const auto cap = S::Broadcast(call_.score_cap);
    for (int32_t start = span.begin / 16 * 16; start < span.end; start += 16) {
      S::Store(scores + start, S::Mul(cap, Tanh<S>(S::Load(scores + start))));
    }
  }

  // Queries of one register tile see nearly the same positions: what all see goes through the tile, and the few
  // positions before and behind that through each query's own pass.
  void WeighValues(int32_t first, int32_t rows, float* result) {
    const int32_t stride = call_.padded_head_size;
    for (int32_t i = 0; i < rows * stride; ++i) result[i] = 0.0f;
    const Span common = {visible_[first + rows - 1].begin, visible_[first].end};
    if (common.begin >= common.end) {
      for (int32_t i = 0; i < rows; ++i) AddValues(first + i, 1, visible_[first + i], result + i * stride);
      return;
    }
    for (int32_t i = 0; i < rows; ++i) {
      AddValues(first + i, 1, {visible_[first + i].begin, common.begin}, result + i * stride);
    }
    if (first == 0) {
      AddValuesAhead(rows, common, result);
    } else {
      AddValues(first, rows, common, result);
    }
    for (int32_t i = 0; i < rows; ++i) {
      AddValues(first + i, 1, {common.end, visible_[first + i].end}, result + i * stride);
    }
  }

  void AddValues(int32_t first, int32_t rows, Span span, float* result) {
    AddWeighted(ValueRows<S, Element>{values_, current_->offsets}, first, rows, span, result);
  }

  // The tile's first queries send for the values to come, and behind them for the next split's first keys.
  void AddValuesAhead(int32_t rows, Span span, float* result) {
    using Ahead = ValueRowsAhead<S, Element>;
    const int64_t* offsets = current_->offsets;
    const int32_t turn = Higher(span.begin, span.end - ahead_rows_);
    AddWeighted(Ahead{values_, offsets, values_, offsets, ahead_rows_}, 0, rows, {span.begin, turn}, result);
    if (next_->split >= 0) {
      AddWeighted(Ahead{values_, offsets, keys_, next_->offsets, -turn}, 0, rows, {turn, span.end}, result);
    } else {
      AddValues(0, rows, {turn, span.end}, result);
    }
  }

  template <class Right>
  void AddWeighted(const Right& right, int32_t first, int32_t rows, Span span, float* result) {
    if (span.begin >= span.end) return;
    const RowBlock block = {scores_ + first * kKvSplit, kKvSplit, result, call_.padded_head_size};
    const int32_t whole = head_size_ / 16;
    Multiply<S, true>(rows, block, right, span.begin, span.end, 0, whole);
    if (head_size_ % 16 != 0) {
      const ValueTails<S, Element> tails = {values_, current_->offsets};
      Multiply<S, true>(rows, block, tails, span.begin, span.end, whole, whole + 1);
    }
  }

  const PagedAttentionCall& call_;
  const QueryTile tile_;
  const int32_t head_size_;
  const Element* const keys_;
  const Element* const values_;
  const int32_t ahead_rows_;
  int32_t last_split_ = 0;
  SplitOffsets located_[2];
  SplitOffsets* current_ = &located_[0];
  SplitOffsets* next_ = &located_[1];
  Span visible_[kMaxTileQueries];
  float highest_[kMaxTileQueries];
  float weight_[kMaxTileQueries];
  alignas(64) float queries_[kTileFloats];
  alignas(64) float running_[kTileFloats + kMaxTileQueries * (kPartialHeaderFloats + 16)];
  alignas(64) float weighted_[S::kMaxRows * (kMaxHeadSize + 16)];
  alignas(64) float scores_[kMaxTileQueries * kKvSplit];
  alignas(64) float transposed_[kKeyFloats];
};

template <class S, class Element>
void AttendTile(const PagedAttentionCall& call, const QueryTile& tile) {
  const int32_t position = call.args.past_lengths[tile.row] + tile.first_query / call.group_size;
  TileAttention<S, Element>(call, tile, FirstVisible(call.args.params, position) / kKvSplit).Run();
}

template <class S, class Element>
void AttendTileSplits(const PagedAttentionCall& call, const SplitRun& run, float* partials) {
  TileAttention<S, Element>(call, run.tile, run.first_split).RunSplits(run, partials);
}

}  // namespace
}  // namespace oga::kernels
