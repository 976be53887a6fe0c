// The seam inside paged attention: paged_attention.cpp divides a call into pieces of work, a variant computes a piece.
// There is one variant per instruction set, each compiled in its own source file from the same templates.
//
// Plain data and function pointers only: nothing inline from the standard library may be compiled for a wide
// instruction set, since the linker could pick that copy for code that runs everywhere.
#pragma once

#include <cstdint>

#include "kernels/attention/paged_attention.h"

namespace oga::kernels {

inline constexpr float kLog2E = 1.44269504f;

// One call with what all its pieces need to know.
struct PagedAttentionCall {
  PagedAttentionArgs args;
  int32_t group_size;        // query heads that share one kv head
  int32_t padded_head_size;  // head_size rounded up to whole vectors
  int32_t tile_queries;      // the most queries of one tile
  float score_scale;         // scale * log2(e): scores are powers of two; scale / softcap where there is a softcap
  float score_cap;           // softcap * log2(e), 0 for none
};

// Queries of one row and of some kv heads, whose keys and values of a position lie side by side. They are numbered
// token by token, and within a token by head. Several kv heads share a tile only where the row has one new token.
struct QueryTile {
  int32_t row;
  int32_t kv_head;  // the first one
  int32_t num_kv_heads;
  int32_t first_query;
  int32_t num_queries;
};

// Consecutive splits of a tile, whose partials lie `slot_floats` apart.
struct SplitRun {
  QueryTile tile;
  int32_t first_split;
  int32_t num_splits;
  int64_t slot_floats;
};

// A softmax-weighted sum that is not finished, in one piece of memory: per query the highest score, the sum of the
// weights, and then padded_head_size weighted values each. No keys seen yet is a sum of 0.
inline constexpr int32_t kPartialHeaderFloats = 2;

struct PagedAttentionVariant {
  // Normalises and rotates the keys of tokens [begin, end) and stores them and the values in the cache.
  void (*write_tokens)(const PagedAttentionCall& call, int32_t begin, int32_t end);
  // Whether a tile may have several kv heads.
  bool joins_heads;
  // Computes the output of a tile.
  void (*attend)(const PagedAttentionCall& call, const QueryTile& tile);
  // The partials of a run of splits of kKvSplit positions.
  void (*attend_splits)(const PagedAttentionCall& call, const SplitRun& run, float* partials);
  // Merges the partial of the next split into `running`, which starts as zeros.
  void (*merge)(const PagedAttentionCall& call, const QueryTile& tile, const float* partial, float* running);
  // Writes the output of a tile whose splits have all been merged.
  void (*finish)(const PagedAttentionCall& call, const QueryTile& tile, const float* running);
};

// What computes attention with products of bfloat16 instead, over caches that hold nothing finer; the rest of a call is
// the variant's without.
struct PairAttentionVariant {
  // Take tiles of several kv heads.
  void (*attend)(const PagedAttentionCall& call, const QueryTile& tile);
  void (*attend_splits)(const PagedAttentionCall& call, const SplitRun& run, float* partials);
};

// A tile's scratch is bounded by this many floats for its queries and as many for its results.
inline constexpr int32_t kTileFloats = 8192;
inline constexpr int32_t kMaxTileQueries = 64;

extern const PagedAttentionVariant kPagedAttentionPortable;
#if defined(__x86_64__)
extern const PagedAttentionVariant kPagedAttentionAvx2;
extern const PagedAttentionVariant kPagedAttentionAvx512;
extern const PairAttentionVariant kPairAttentionAvx512Bf16;
extern const PairAttentionVariant kPairAttentionAmx;
#endif

// The positions that a row's new tokens see: [first, last]. Only for a row with new tokens.
struct PositionRange {
  int32_t first;
  int32_t last;
};

static inline int32_t FirstVisible(const PagedAttentionParams& params, int32_t position) {
  if (params.window < 0 || position < params.window) return 0;
  return position - params.window + 1;
}

// What the tile's query `i` is among the row's queries.
struct QueryPlace {
  int32_t new_token;
  int32_t position;
  int32_t kv_head;
  int32_t head;
};

static inline QueryPlace PlaceOf(const PagedAttentionCall& call, const QueryTile& tile, int32_t i) {
  const int32_t heads = call.group_size * tile.num_kv_heads;
  const int32_t new_token = (tile.first_query + i) / heads, head = (tile.first_query + i) % heads;
  return {new_token, call.args.past_lengths[tile.row] + new_token, tile.kv_head + head / call.group_size,
          tile.kv_head * call.group_size + head};
}

// From the first to the last one that is meant.
struct SplitRange {
  int32_t first;
  int32_t last;
};

static inline SplitRange VisibleSplits(const PagedAttentionCall& call, const QueryTile& tile) {
  const int32_t oldest = FirstVisible(call.args.params, PlaceOf(call, tile, 0).position);
  return {oldest / kKvSplit, PlaceOf(call, tile, tile.num_queries - 1).position / kKvSplit};
}

static inline int32_t NewTokens(const PagedAttentionArgs& args, int32_t row) {
  return args.cumulative_lengths[row + 1] - args.cumulative_lengths[row];
}

static inline PositionRange VisibleRange(const PagedAttentionArgs& args, int32_t row) {
  const int32_t past = args.past_lengths[row];
  return {FirstVisible(args.params, past), past + NewTokens(args, row) - 1};
}

}  // namespace oga::kernels
