// Second half of a paged attention call over a cache whose numbers bfloat16 holds: causal attention of one tile of
// queries, with products of bfloat16. Included by the variant sources only; see simd_math.h for linkage.
//
// For each split of kKvSplit positions, with P the powers that the softmax weighs values by:
//   scores = Q K^T    a query is rounded to bfloat16 after norm, rotation and scaling; units run over the dimensions.
//   P                 of the split's visible positions; rounded to bfloat16, and summed as rounded.
//   values = P V      units run over the positions.
// A unit and the order of its sums are those of packed_matmul.h, rule 3, so bits do not tell how many queries share a
// tile. Positions that a query does not see have a P of zero, which adds nothing but may turn a zero's sign, so the
// sums of a split have no negative zeros. Where their value is not finite, units are packed again for each query,
// without what it does not see.
//
// Denormals are zero from the rounded queries to the split's sums; preparing the queries and merging keep them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_partial.h"
#include "kernels/attention/paged_attention_rows.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/attention/paged_attention_walk.h"
#include "kernels/attention/pair_units.h"
#include "kernels/simd/bounds.h"
#include "kernels/simd/denormals.h"

namespace oga::kernels {
namespace {

template <class Units, class Element>
class PairAttention {
 public:
  PairAttention(const PagedAttentionCall& call, const QueryTile& tile, SplitRange splits)
      : call_(call),
        tile_(tile),
        head_size_(call.args.shape.head_size),
        head_units_((head_size_ + kUnitK - 1) / kUnitK),
        unit_rows_(tile.num_queries * kUnitK),
        rows_(call, tile, splits) {
    StageQueries();
  }

  void AttendSplit(int32_t split) {
    [[maybe_unused]] const FlushDenormals flush;
    rows_.Enter(split);
    seen_ = rows_.VisibleToSome();
    first_unit_ = seen_.begin / kUnitK;
    end_unit_ = (seen_.end + kUnitK - 1) / kUnitK;
    for (int32_t unit = first_unit_; unit < end_unit_; ++unit) Score(unit);
    for (int32_t i = 0; i < tile_.num_queries; ++i) Softmax(i);
    rows_.LocateNext();
    for (int32_t i = 0; i < head_units_ * unit_rows_; i += 16) Simd::Store(weighted_ + i, Simd::Broadcast(0.0f));
    const int32_t most = Lower(kMostUnits / head_units_, Units::kRunUnits);
    for (int32_t unit = first_unit_; unit < end_unit_; unit += most) Weigh(unit, Lower(unit + most, end_unit_));
    for (int32_t i = 0; i < head_units_ * unit_rows_; i += kPanelColumns) Units::Straighten(weighted_ + i);
  }

  float highest(int32_t i) const { return highest_[i]; }
  float weight(int32_t i) const { return weight_[i]; }
  WeightedRow Weighted(int32_t i) const { return {weighted_ + i * kUnitK, unit_rows_}; }

 private:
  using Vec = Simd::Vec;
  using Halves = typename Units::Halves;
  static constexpr int32_t kMostUnits = kMaxHeadSize / kUnitK;                            // packed at a time
  static constexpr int32_t kSentInPacking = Units::kRunUnits == 1 ? kUnitK / 2 : kUnitK;  // rows ahead, of a unit's
  static constexpr int32_t kPadding = kUnitK - 8;                                         // of a head at most

  // Bits [begin, end) of 32, as far as they are among these.
  static uint32_t Bits(int32_t begin, int32_t end) {
    const uint32_t below_end = end >= 32 ? ~0u : end <= 0 ? 0u : (1u << end) - 1u;
    const uint32_t below_begin = begin >= 32 ? ~0u : begin <= 0 ? 0u : (1u << begin) - 1u;
    return below_end & ~below_begin;
  }

  // The dimensions of a head that fall into one of its units.
  uint32_t Dimensions(int32_t unit) const { return Bits(0, head_size_ - unit * kUnitK); }

  void StageQueries() {
    HeadReader<Simd> reader(call_, call_.args.query, call_.args.query_stride, call_.args.query_norm);
    alignas(64) float row[kMaxHeadSize + kPadding];
    for (int32_t d = head_size_; d < head_units_ * kUnitK; ++d) row[d] = 0.0f;
    for (int32_t i = 0; i < tile_.num_queries; ++i) {
      rows_.ReadQuery(reader, i, row);
      for (int32_t unit = 0; unit < head_units_; ++unit) {
        const float* const from = row + unit * kUnitK;
        StagePairs(Units::RoundPairs(Simd::Load(from), Simd::Load(from + 16)), queries_, unit, i);
      }
    }
  }

  void StagePairs(Halves halves, float* staged, int32_t unit, int32_t query) const {
    float* const to = staged + (unit * tile_.num_queries + query) * kStagedRowFloats;
    Units::StoreWords(to, Units::Arrange(halves));
  }

  // The queries of the tile's kv head `head` that see any of the positions.
  Span QueriesThatSee(Span positions, int32_t head) const {
    const int32_t count = tile_.num_queries / tile_.num_kv_heads;
    Span queries = {head * count, (head + 1) * count};
    while (queries.begin < queries.end && rows_.visible(queries.begin).end <= positions.begin) ++queries.begin;
    while (queries.begin < queries.end && rows_.visible(queries.end - 1).begin >= positions.end) --queries.end;
    return queries;
  }

  // Part `k` of `n` of a span.
  static Span PartOf(Span span, int32_t k, int32_t n) {
    const int32_t size = span.end - span.begin;
    return {span.begin + size * k / n, span.begin + size * (k + 1) / n};
  }

  // The scores of 32 keys, kv head by kv head. Between the steps the rows that come later are sent for: one burst of
  // them would only wait for free miss buffers.
  void Score(int32_t unit) {
    const Span keys = {unit * kUnitK, (unit + 1) * kUnitK};
    const int32_t parts = 3 * tile_.num_kv_heads;
    for (int32_t head = 0; head < tile_.num_kv_heads; ++head) {
      for (int32_t half = 0; half < 2; ++half) {
        rows_.SendAheadOfKeys(PartOf(keys, 3 * head + half, parts), end_unit_ * kUnitK);
        PackKeys(keys.begin + 16 * half, head, units_ + half * (kUnitFloats / 2));
      }
      rows_.SendAheadOfKeys(PartOf(keys, 3 * head + 2, parts), end_unit_ * kUnitK);
      const Span queries = QueriesThatSee(keys, head);
      const int32_t count = queries.end - queries.begin;
      float* const scores = scores_ + unit * unit_rows_ + queries.begin * kUnitK;
      for (int32_t i = 0; i < count * kUnitK; i += 16) Simd::Store(scores + i, Simd::Broadcast(0.0f));
      const float* const staged = queries_ + queries.begin * kStagedRowFloats;
      products_.MultiplyAdd({units_, kUnitFloats, head_units_, staged, unit_rows_ / 2, count}, scores);
    }
  }

  // Sixteen keys to their half of each unit of the head.
  void PackKeys(int32_t first_key, int32_t head, float* half) {
    const int64_t* const offsets = rows_.offsets() + first_key;
    for (int32_t unit = 0; unit < head_units_; ++unit) {
      const Element* const keys = rows_.keys() + head * head_size_ + unit * kUnitK;
      const uint32_t dimensions = Dimensions(unit);
      Halves row[16];
      OGA_UNROLL
      for (int32_t i = 0; i < 16; ++i) row[i] = Units::Arrange(Units::LoadHalves(keys + offsets[i], dimensions));
      Units::TransposeWords(row);
      float* const to = half + unit * kUnitFloats;
      OGA_UNROLL
      for (int32_t i = 0; i < 16; ++i) Units::StoreWords(to + 16 * i, row[i]);
    }
  }

  void Softmax(int32_t query) {
    const Span span = rows_.visible(query);
    const bool sees = span.begin < span.end;
    const int32_t first = sees ? span.begin / kUnitK : end_unit_;
    const int32_t end = sees ? (span.end + kUnitK - 1) / kUnitK : end_unit_;
    for (int32_t unit = first_unit_; unit < first; ++unit) StagePairs(Halves{}, powers_, unit, query);
    for (int32_t unit = end; unit < end_unit_; ++unit) StagePairs(Halves{}, powers_, unit, query);
    highest_[query] = 0.0f;
    weight_[query] = 0.0f;
    if (!sees) return;
    highest_[query] = Highest(query, {first, end}, span);
    const Vec top = Simd::Broadcast(highest_[query]), zero = Simd::Broadcast(0.0f);
    Vec sums = zero;
    const float* scores = ScoresOf(query, first);
    for (int32_t unit = first; unit < end; ++unit, scores += unit_rows_) {
      Vec low = Units::PowerOfTwo(Simd::Sub(Simd::Load(scores), top));
      Vec high = Units::PowerOfTwo(Simd::Sub(Simd::Load(scores + 16), top));
      if (!Holds(span, unit)) KeepVisible(span, unit, zero, &low, &high);
      const Halves powers = Units::RoundPairs(low, high);
      sums = Units::AddPairs(powers, sums);
      StagePairs(powers, powers_, unit, query);
    }
    weight_[query] = Simd::ReduceAdd(sums);
  }

  // The highest of a query's scores, which leaves them capped.
  float Highest(int32_t query, Span units, Span span) {
    const Vec nothing = Simd::Broadcast(-__builtin_inff());
    Vec highest = nothing;
    float* scores = ScoresOf(query, units.begin);
    for (int32_t unit = units.begin; unit < units.end; ++unit, scores += unit_rows_) {
      if (call_.score_cap > 0.0f) {
        CapScore<Simd>(call_, scores);
        CapScore<Simd>(call_, scores + 16);
      }
      Vec low = Simd::Load(scores), high = Simd::Load(scores + 16);
      if (!Holds(span, unit)) KeepVisible(span, unit, nothing, &low, &high);
      highest = Simd::Max(highest, Simd::Max(low, high));
    }
    return Simd::ReduceMax(highest);
  }

  float* ScoresOf(int32_t query, int32_t unit) { return scores_ + unit * unit_rows_ + query * kUnitK; }
  static bool Holds(Span span, int32_t unit) { return span.begin <= unit * kUnitK && (unit + 1) * kUnitK <= span.end; }
  static void KeepVisible(Span span, int32_t unit, Vec fill, Vec* low, Vec* high) {
    const int32_t begin = span.begin - unit * kUnitK, end = span.end - unit * kUnitK;
    *low = Simd::KeepLanes(*low, begin, end, fill);
    *high = Simd::KeepLanes(*high, begin - 16, end - 16, fill);
  }

  // Adds what the positions of units [first, end) weigh, kv head by kv head. As above, rows are sent for on the way.
  void Weigh(int32_t first, int32_t end) {
    const Span positions = {first * kUnitK, end * kUnitK};
    for (int32_t head = 0; head < tile_.num_kv_heads; ++head) {
      const Span queries = QueriesThatSee(positions, head);
      if (MustSeeApart(positions)) {
        for (int32_t i = queries.begin; i < queries.end; ++i) {
          for (int32_t unit = first; unit < end; ++unit) PackValues(unit, first, head, rows_.visible(i));
          AddValues(first, end, head, {i, i + 1});
        }
      } else {
        for (int32_t unit = first; unit < end; ++unit) PackValues(unit, first, head, seen_);
        AddValues(first, end, head, queries);
      }
    }
  }

  // One of the groups of 32 dimensions of one of the tile's kv heads.
  int32_t GroupOf(int32_t head, int32_t group) const { return head * head_units_ + group; }

  void AddValues(int32_t first, int32_t end, int32_t head, Span queries) {
    const Span later = {(end - 1) * kUnitK + kSentInPacking, end * kUnitK};
    const float* const powers = powers_ + (first * tile_.num_queries + queries.begin) * kStagedRowFloats;
    for (int32_t group = 0; group < head_units_; ++group) {
      rows_.SendAheadOfValues(PartOf(later, GroupOf(head, group), tile_.num_kv_heads * head_units_));
      products_.MultiplyAdd({units_ + group * kUnitFloats, head_units_ * kUnitFloats, end - first, powers,
                             unit_rows_ / 2, queries.end - queries.begin},
                            weighted_ + group * unit_rows_ + queries.begin * kUnitK);
    }
  }

  // To [units of positions from `first_unit` on][groups of 32 dimensions]; what lies outside of `span` is zero.
  void PackValues(int32_t unit, int32_t first_unit, int32_t head, Span span) {
    const int32_t start = unit * kUnitK;
    const uint32_t seen = Bits(span.begin - start, span.end - start);
    const int64_t* const offsets = rows_.offsets() + start;
    float* const to = units_ + (unit - first_unit) * head_units_ * kUnitFloats;
    for (int32_t group = 0; group < head_units_; ++group) {
      const Span sooner = {start, start + kSentInPacking};
      rows_.SendAheadOfValues(PartOf(sooner, GroupOf(head, group), tile_.num_kv_heads * head_units_));
      const Element* const values = rows_.values() + head * head_size_ + group * kUnitK;
      const uint32_t dimensions = Dimensions(group);
      float* const words = to + group * kUnitFloats;
      if (seen == ~0u) {
        PackValueWords(values, offsets, words, [&](int) { return dimensions; });
      } else {
        PackValueWords(values, offsets, words, [&](int i) { return (seen >> i & 1u) != 0 ? dimensions : 0u; });
      }
    }
  }

  template <class Kept>
  static inline void PackValueWords(const Element* values, const int64_t* offsets, float* words, const Kept& kept) {
    OGA_UNROLL
    for (int32_t word = 0; word < 16; ++word) {
      const int lower = Units::LowerRow(word), upper = Units::UpperRow(word);
      const Halves a = Units::LoadHalves(values + offsets[lower], kept(lower));
      const Halves b = Units::LoadHalves(values + offsets[upper], kept(upper));
      Units::StoreWords(words + 16 * word, Units::template Interleave<0>(a, b));
      Units::StoreWords(words + 16 * word + kUnitFloats / 2, Units::template Interleave<1>(a, b));
    }
  }

  // Whether a value that is not finite lies where only some of the queries see it.
  bool MustSeeApart(Span positions) const {
    const int32_t all_from = rows_.visible(tile_.num_queries - 1).begin, all_to = rows_.visible(0).end;
    const int32_t begin = Higher(positions.begin, seen_.begin), end = Lower(positions.end, seen_.end);
    return AnyNotFinite({begin, Lower(all_from, end)}) || AnyNotFinite({Higher(all_to, begin), end});
  }

  // Of the tile's only kv head: with several the row has one new token, and no position is seen by some alone.
  bool AnyNotFinite(Span positions) const {
    if constexpr (sizeof(Element) == 1) return false;
    for (int32_t i = positions.begin; i < positions.end; ++i) {
      const Element* const value = rows_.values() + rows_.offsets()[i];
      for (int32_t group = 0; group < head_units_; ++group) {
        if (Units::AnyNotFinite(Units::LoadHalves(value + group * kUnitK, Dimensions(group)))) return true;
      }
    }
    return false;
  }

  const PagedAttentionCall& call_;
  const QueryTile tile_;
  const int32_t head_size_;
  const int32_t head_units_;   // units of 32 dimensions
  const ptrdiff_t unit_rows_;  // floats of 32 columns of all queries
  CachedRows<Simd, Element> rows_;
  Units products_;
  Span seen_ = {0, 0};      // positions of the split that some query sees
  int32_t first_unit_ = 0;  // of 32 positions each
  int32_t end_unit_ = 0;
  float highest_[kMaxTileQueries];
  float weight_[kMaxTileQueries];
  alignas(64) float queries_[(kTileFloats + kMaxTileQueries * kPadding) / 2];  // staged, [units of the head]
  alignas(64) float scores_[kMaxTileQueries * kKvSplit];                       // [units of positions][queries][32]
  alignas(64) float powers_[kMaxTileQueries * kKvSplit / 2];                   // staged, [units of positions]
  alignas(64) float units_[kMostUnits * kUnitFloats];
  alignas(64) float weighted_[kTileFloats + kMaxTileQueries * kPadding];  // [units of the head][queries][32]
};

// A variant's attention over the caches whose numbers bfloat16 holds.
template <class Units>
struct PairEntry {
  static void Attend(const PagedAttentionCall& call, const QueryTile& tile) {
    if (call.args.cache_type == CacheType::kInt8) return AttendTile<Simd, PairAttention<Units, int8_t>>(call, tile);
    AttendTile<Simd, PairAttention<Units, Bfloat16>>(call, tile);
  }
  static void AttendSplits(const PagedAttentionCall& call, const SplitRun& run, float* partials) {
    if (call.args.cache_type == CacheType::kInt8)
      return AttendTileSplits<Simd, PairAttention<Units, int8_t>>(call, run, partials);
    AttendTileSplits<Simd, PairAttention<Units, Bfloat16>>(call, run, partials);
  }
  static constexpr PairAttentionVariant kTable = {Attend, AttendSplits};
};

}  // namespace
}  // namespace oga::kernels
