// Where the keys and values that a tile of queries sees lie in the cache, split after split, and how they are sent for
// ahead of their use; and how the tile's queries are read. Included by the variant sources only; see simd_math.h for
// linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_heads.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/attention/paged_attention_write.h"
#include "kernels/simd/bounds.h"

namespace oga::kernels {
namespace {

// Positions relative to the split, or to a group within it.
struct Span {
  int32_t begin;
  int32_t end;
};

template <class S, class Element>
class CachedRows {
 public:
  CachedRows(const PagedAttentionCall& call, const QueryTile& tile, SplitRange splits)
      : call_(call),
        tile_(tile),
        last_split_(splits.last),
        head_size_(call.args.shape.head_size),
        keys_(static_cast<const Element*>(call.args.key_cache) + tile.kv_head * head_size_),
        values_(static_cast<const Element*>(call.args.value_cache) + tile.kv_head * head_size_),
        row_bytes_(tile.num_kv_heads * head_size_ * static_cast<int32_t>(sizeof(Element))),
        ahead_rows_(Higher(Lower(kAheadBytes / row_bytes_, kKvSplit / 2), 1)) {
    SendForFirst(splits.first);
  }

  // Comes to a split: `visible` and the offsets are its own from here on. LocateNext then finds the next one, whose
  // first keys are sent for at the end of this one.
  void Enter(int32_t split) {
    SplitOffsets* const spare = current_;
    current_ = next_;
    next_ = spare;
    if (current_->split != split) Locate(split, *current_);
    for (int32_t i = 0; i < tile_.num_queries; ++i) visible_[i] = Visible(i, split);
  }
  void LocateNext() {
    next_->split = -1;
    if (current_->split < last_split_) Locate(current_->split + 1, *next_);
  }

  // The positions of the split that the tile's query `i` sees. Both ends rise with the queries.
  Span visible(int32_t i) const { return visible_[i]; }
  Span VisibleToSome() const { return {visible_[0].begin, visible_[tile_.num_queries - 1].end}; }

  const Element* keys() const { return keys_; }
  const Element* values() const { return values_; }
  // Where a position's keys and values begin, from keys() and values() on, those of the tile's first kv head. Positions
  // that no query of the tile sees repeat the nearest one that some query does: the table may hold nothing for them.
  const int64_t* offsets() const { return current_->offsets; }
  // The same of the next split, or null at the last.
  const int64_t* next_offsets() const { return next_->split < 0 ? nullptr : next_->offsets; }
  // So many rows before it is read, a row is to be sent for.
  int32_t ahead_rows() const { return ahead_rows_; }

  // Sends for the rows that come ahead_rows() after the keys at some positions: keys before `end_key`, and behind them
  // the split's first values.
  void SendAheadOfKeys(Span positions, int32_t end_key) const {
    const int32_t begin = positions.begin + ahead_rows_, end = positions.end + ahead_rows_;
    const int32_t turn = Lower(Higher(end_key, begin), end);
    PrefetchRows(keys_, current_->offsets, begin, turn);
    PrefetchRows(values_, current_->offsets, turn + visible_[0].begin - end_key, end + visible_[0].begin - end_key);
  }
  // The same for values: behind those that some query sees come the next split's first keys.
  void SendAheadOfValues(Span positions) const {
    const int32_t begin = positions.begin + ahead_rows_, end = positions.end + ahead_rows_;
    const int32_t end_value = visible_[tile_.num_queries - 1].end;
    const int32_t turn = Lower(Higher(end_value, begin), end);
    PrefetchRows(values_, current_->offsets, begin, turn);
    if (next_->split >= 0) PrefetchRows(keys_, next_->offsets, turn - end_value, end - end_value);
  }

  // Reads the tile's query `i` as it meets the cached keys: normalised, rotated and scaled. A key's scale goes into the
  // query: products with the cache's codes are then products with the keys.
  void ReadQuery(HeadReader<S>& reader, int32_t i, float* row) const {
    const PagedAttentionArgs& args = call_.args;
    const QueryPlace query = PlaceOf(call_, tile_, i);
    const ChannelScales scales(args.key_scale, query.kv_head, head_size_);
    reader.Read(args.cumulative_lengths[tile_.row] + query.new_token, query.head, query.position, row);
    for (int32_t d = 0; d < head_size_; ++d) row[d] *= call_.score_scale;
    if (scales.data == nullptr) return;
    for (int32_t d = 0; d < head_size_; ++d) row[d] *= scales[d];
  }

 private:
  static constexpr int32_t kAheadBytes = 8192;  // of keys or values: what arrives in a memory latency

  struct SplitOffsets {
    int32_t split = -1;
    int64_t offsets[kKvSplit];
  };

  int32_t Position(int32_t i) const { return PlaceOf(call_, tile_, i).position; }

  Span Visible(int32_t i, int32_t split) const {
    const int32_t position = Position(i), start = split * kKvSplit;
    return {Lower(Higher(FirstVisible(call_.args.params, position) - start, 0), kKvSplit),
            Higher(Lower(position + 1 - start, kKvSplit), 0)};
  }

  // The keys that come before the first ones that are sent for on the way, while the queries are prepared.
  void SendForFirst(int32_t split) {
    Locate(split, *next_);
    const int32_t begin = Visible(0, split).begin;
    const int32_t end = Lower(begin + ahead_rows_, Visible(tile_.num_queries - 1, split).end);
    for (int32_t i = begin; i < end; ++i) PrefetchRow(keys_ + next_->offsets[i]);
  }

  void Locate(int32_t split, SplitOffsets& located) const {
    const PagedAttentionShape& shape = call_.args.shape;
    const int64_t slot_elements = static_cast<int64_t>(shape.num_kv_heads) * head_size_;
    const Span span = {Visible(0, split).begin, Visible(tile_.num_queries - 1, split).end};
    const int32_t first = split * kKvSplit + span.begin;
    int32_t column = first / shape.block_size, slot = first % shape.block_size;
    for (int32_t i = span.begin; i < span.end; ++column, slot = 0) {
      const int32_t count = Lower(shape.block_size - slot, span.end - i);
      const int64_t offset = SlotOffset(call_.args, tile_.row, column, slot);
      for (int32_t j = 0; j < count; ++j) located.offsets[i + j] = offset + j * slot_elements;
      i += count;
    }
    for (int32_t i = 0; i < span.begin; ++i) located.offsets[i] = located.offsets[span.begin];
    for (int32_t i = span.end; i < kKvSplit; ++i) located.offsets[i] = located.offsets[span.end - 1];
    located.split = split;
  }

  void PrefetchRows(const Element* base, const int64_t* offsets, int32_t begin, int32_t end) const {
    end = Lower(end, kKvSplit);
    for (int32_t i = begin; i < end; ++i) PrefetchRow(base + offsets[i]);
  }

  void PrefetchRow(const Element* row) const {
    const char* bytes = reinterpret_cast<const char*>(row);
    for (int32_t i = 0; i < row_bytes_; i += 64) __builtin_prefetch(bytes + i, 0, 2);
    asm volatile("");  // GCC takes a function that only prefetches for one without effect, and drops its calls
  }

  const PagedAttentionCall& call_;
  const QueryTile tile_;
  const int32_t last_split_;
  const int32_t head_size_;
  const Element* const keys_;
  const Element* const values_;
  const int32_t row_bytes_;  // of the tile's kv heads at one position
  const int32_t ahead_rows_;
  SplitOffsets located_[2];
  SplitOffsets* current_ = &located_[0];
  SplitOffsets* next_ = &located_[1];
  Span visible_[kMaxTileQueries];
};

}  // namespace
}  // namespace oga::kernels
