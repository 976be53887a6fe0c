// Second half of a paged attention call: causal attention of one tile of queries over the cache, in floats. Included by
// the variant sources only; see simd_math.h for linkage.
//
// For each split of kKvSplit positions: keys are transposed sixteen at a time, so that a query's scores are one chain
// of products per key in a lane of its own; the softmax runs over the visible lanes only; the values are weighted in
// position order, one chain per output element. Positions a query does not see take no part in any of its chains, not
// even times zero: a NaN that a later token wrote must not reach an earlier one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_partial.h"
#include "kernels/attention/paged_attention_rows.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/simd/bounds.h"
#include "kernels/simd/simd_math.h"

namespace oga::kernels {
namespace {

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

template <class S, class Element>
class TileAttention {
 public:
  TileAttention(const PagedAttentionCall& call, const QueryTile& tile, SplitRange splits)
      : call_(call), tile_(tile), head_size_(call.args.shape.head_size), rows_(call, tile, splits) {
    HeadReader<S> reader(call, call.args.query, call.args.query_stride, call.args.query_norm);
    for (int32_t i = 0; i < tile.num_queries; ++i) rows_.ReadQuery(reader, i, queries_ + i * head_size_);
  }

  void AttendSplit(int32_t split) {
    Score(split);
    for (int32_t first = 0, rows; first < tile_.num_queries; first += rows) {
      rows = TileRows<S>(tile_.num_queries - first);
      WeighValues(first, rows, weighted_ + first * call_.padded_head_size);
    }
  }

  float highest(int32_t i) const { return highest_[i]; }
  float weight(int32_t i) const { return weight_[i]; }
  WeightedRow Weighted(int32_t i) const { return {weighted_ + i * call_.padded_head_size, 32}; }

 private:
  static constexpr int32_t kChunkGroups = 4;  // groups of sixteen keys transposed together, fewer for long heads
  static constexpr int32_t kKeyFloats = 16384;

  // Leaves the split's weights in scores_.
  void Score(int32_t split) {
    rows_.Enter(split);
    const int32_t chunk = Lower(kChunkGroups, kKeyFloats / (16 * head_size_));
    const Span seen = rows_.VisibleToSome();
    const int32_t end_group = (seen.end + 15) / 16;
    for (int32_t group = seen.begin / 16; group < end_group; group += chunk) {
      ScoreChunk(group, Lower(group + chunk, end_group), 16 * end_group);
    }
    for (int32_t i = 0; i < tile_.num_queries; ++i) Softmax(i);
    rows_.LocateNext();
  }

  void ScoreChunk(int32_t group, int32_t end_group, int32_t end_key) {
    const ptrdiff_t group_floats = 16 * head_size_;
    for (int32_t g = group; g < end_group; ++g) {
      TransposeGroup(g, end_key, transposed_ + (g - group) * group_floats);
    }
    const KeyGroups<S> right = {transposed_, group_floats};
    for (int32_t first = 0, rows; first < tile_.num_queries; first += rows) {
      rows = TileRows<S>(tile_.num_queries - first);
      if (rows_.visible(first + rows - 1).end <= 16 * group || rows_.visible(first).begin >= 16 * end_group) continue;
      float* scores = scores_ + first * kKvSplit + 16 * group;
      const RowBlock block = {queries_ + first * head_size_, head_size_, scores, kKvSplit};
      Multiply<S, false>(rows, block, right, 0, head_size_, 0, end_group - group);
    }
  }

  // Between the steps, the rows that the tile comes to later are sent for, a few lines at a time.
  void TransposeGroup(int32_t group, int32_t end_key, float* transposed) const {
    const int32_t steps = head_size_ / 8, first = 16 * group;
    for (int32_t step = 0; step < steps; ++step) {
      rows_.SendAheadOfKeys({first + 16 * step / steps, first + 16 * (step + 1) / steps}, end_key);
      S::Transpose(rows_.keys() + 8 * step, rows_.offsets() + first, transposed + 128 * step);
    }
  }

  void Softmax(int32_t query) {
    using Vec = typename S::Vec;
    const Span span = rows_.visible(query);
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
    for (int32_t start = span.begin / 16 * 16; start < span.end; start += 16) CapScore<S>(call_, scores + start);
  }

  // Queries of one register tile see nearly the same positions: what all see goes through the tile, and the few
  // positions before and behind that through each query's own pass.
  void WeighValues(int32_t first, int32_t rows, float* result) {
    const int32_t stride = call_.padded_head_size;
    for (int32_t i = 0; i < rows * stride; ++i) result[i] = 0.0f;
    const Span common = {rows_.visible(first + rows - 1).begin, rows_.visible(first).end};
    if (common.begin >= common.end) {
      for (int32_t i = 0; i < rows; ++i) AddValues(first + i, 1, rows_.visible(first + i), result + i * stride);
      return;
    }
    for (int32_t i = 0; i < rows; ++i) {
      AddValues(first + i, 1, {rows_.visible(first + i).begin, common.begin}, result + i * stride);
    }
    if (first == 0) {
      AddValuesAhead(rows, common, result);
    } else {
      AddValues(first, rows, common, result);
    }
    for (int32_t i = 0; i < rows; ++i) {
      AddValues(first + i, 1, {common.end, rows_.visible(first + i).end}, result + i * stride);
    }
  }

  void AddValues(int32_t first, int32_t rows, Span span, float* result) {
    AddWeighted(ValueRows<S, Element>{rows_.values(), rows_.offsets()}, first, rows, span, result);
  }

  // The tile's first queries send for the values to come, and behind them for the next split's first keys.
  void AddValuesAhead(int32_t rows, Span span, float* result) {
    using Ahead = ValueRowsAhead<S, Element>;
    const int64_t* const offsets = rows_.offsets();
    const int32_t ahead = rows_.ahead_rows(), turn = Higher(span.begin, span.end - ahead);
    AddWeighted(Ahead{rows_.values(), offsets, rows_.values(), offsets, ahead}, 0, rows, {span.begin, turn}, result);
    if (rows_.next_offsets() != nullptr) {
      const Ahead right = {rows_.values(), offsets, rows_.keys(), rows_.next_offsets(), -turn};
      AddWeighted(right, 0, rows, {turn, span.end}, result);
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
      const ValueTails<S, Element> tails = {rows_.values(), rows_.offsets()};
      Multiply<S, true>(rows, block, tails, span.begin, span.end, whole, whole + 1);
    }
  }

  const PagedAttentionCall& call_;
  const QueryTile tile_;
  const int32_t head_size_;
  CachedRows<S, Element> rows_;
  float highest_[kMaxTileQueries];
  float weight_[kMaxTileQueries];
  alignas(64) float queries_[kTileFloats];
  alignas(64) float weighted_[kTileFloats + kMaxTileQueries * 16];
  alignas(64) float scores_[kMaxTileQueries * kKvSplit];
  alignas(64) float transposed_[kKeyFloats];
};

}  // namespace
}  // namespace oga::kernels
