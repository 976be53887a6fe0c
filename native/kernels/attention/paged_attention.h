// Paged attention on the CPU: q/k norm, rotary embedding, cache write, and causal attention of packed ragged rows over
// a paged key-value cache.
//
// The semantics are those of the com.microsoft::PagedAttention operator. Decode and prefill share one arithmetic: what
// a query row computes depends only on its own query, its position and the cached keys and values before it, never on
// how many tokens, rows or threads share the call. Keys are visited in absolute position order in splits of kKvSplit;
// each split is reduced by itself, and the splits' results are merged in position order. A thread may therefore take a
// whole row or a single split of it: the bits are the same. Every query reads the cache, its own key and value
// included, so that chunking does not show with a narrow cache either.
//
// Within a split there are two arithmetics:
//   1. In floats: the AVX2 and AVX-512 variants give the same bits; the portable one rounds products and sums
//      separately and agrees with them to a tolerance.
//   2. In bfloat16, as paged_attention_pairs.h has it, where the CPU has AVX512_BF16 or AMX and the cache is in
//      bfloat16 or int8, whose numbers bfloat16 holds. Both give the same bits, for AMX by Intel's manual.
// Queries and keys come in floats (16-bit activations are widened when they are read), and the output is rounded once.
// An int8 cache is never widened to its values: a key's scale multiplies the query, a value's the output.
//
// No thread state that outlives an item, no allocation: work items are handed to `parallel_for`, and scratch of fixed
// size lies on the stack of the thread that runs an item (about 256 KiB; the calling thread holds another 128 KiB, in
// which long rows that were split among threads come together).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/parallel_for.h"
#include "kernels/simd/cpu_isa.h"
#include "step/cache_type.h"

namespace oga::kernels {

inline constexpr int32_t kKvSplit = 256;      // key positions
inline constexpr int32_t kMaxHeadSize = 512;  // floats

enum class ActivationType { kFloat32, kFloat16, kBfloat16 };

int32_t ActivationBytes(ActivationType type);

struct PagedAttentionShape {
  int32_t num_tokens = 0;
  int32_t num_rows = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_size = 0;  // a multiple of 8, at most kMaxHeadSize
  int32_t num_blocks = 0;
  int32_t block_size = 0;
  int32_t table_columns = 0;
};

struct PagedAttentionParams {
  float scale = 0.0f;          // 0 means 1 / sqrt(head_size)
  int32_t window = -1;         // keys seen by a query including itself; -1 is no window
  float softcap = 0.0f;        // scaled scores become softcap * tanh(score / softcap); 0 means none
  float norm_epsilon = 1e-6f;  // of the q/k norm
  bool rotary = false;
  bool rotary_interleaved = false;
  int32_t rotary_offset = 0;     // first head dimension rotated, a multiple of 8
  int32_t rotary_dim = 0;        // head dimensions rotated, even; the rest pass through
  int32_t rotary_positions = 0;  // rows of the cos and sin tables
};

// What one step of an int8 code is worth: one number, or one per kv head and channel.
struct CacheScale {
  const float* data = nullptr;  // [1] or [num_kv_heads, head_size]; null for the other caches
  bool per_channel = false;
};

struct PagedAttentionArgs {
  PagedAttentionShape shape;
  PagedAttentionParams params;
  CacheType cache_type = CacheType::kFloat32;
  ActivationType activation_type = ActivationType::kFloat32;  // of whatever is a const void* below, and the output

  // Packed activations: token t's query starts at query + t * query_stride, and so on. For packed QKV the three
  // pointers lie in one buffer and share a stride.
  const void* query = nullptr;
  const void* key = nullptr;
  const void* value = nullptr;
  int64_t query_stride = 0;  // in elements
  int64_t key_stride = 0;
  int64_t value_stride = 0;

  void* key_cache = nullptr;                    // [num_blocks, block_size, num_kv_heads, head_size]
  void* value_cache = nullptr;                  // same
  const int32_t* cumulative_lengths = nullptr;  // [num_rows + 1]
  const int32_t* past_lengths = nullptr;        // [num_rows]
  const int32_t* block_table = nullptr;         // [num_rows, table_columns]
  // Where each token's key and value go: block * block_size + slot in the block, or -1 for nowhere, because the cache
  // holds them already. Null: to the token's position in its row's blocks.
  const int32_t* slot_mapping = nullptr;  // [num_tokens]
  const void* cos_cache = nullptr;        // [rotary_positions, rotary_dim / 2]
  const void* sin_cache = nullptr;
  const void* query_norm = nullptr;  // [head_size], the gains of the norm before the rotation; both or neither
  const void* key_norm = nullptr;
  const void* head_sink = nullptr;  // [num_heads], a logit that joins the softmax and carries no value
  CacheScale key_scale;
  CacheScale value_scale;
  void* output = nullptr;  // [num_tokens, num_heads * head_size]

  // How many threads parallel_for has: how finely the work is divided, never what is computed.
  int32_t num_threads = 1;
};

// Checks every table entry and length that the computation will follow. Returns an empty string, or a sentence that
// names the first malformed value; then nothing may be read through the tables.
//
// A row touches the positions from its first query's oldest visible key (0 without a window) to its last new token.
// Exactly the table columns of these positions must name a block; columns before the window and behind the last token
// may hold anything. A row without new tokens touches nothing. No block may be written by two rows, or through two
// columns of one row; with a slot mapping, no slot by two tokens.
std::string ValidatePagedAttention(const PagedAttentionArgs& args);

// Writes the new keys and values into the cache, then computes the output. `args` has passed ValidatePagedAttention.
// Blocks that the table does not map are never read, and neither are slots behind a row's last token. A number is
// stored in an int8 cache as the nearest multiple of its scale from -128 to 127 times it, ties to even; a NaN, or any
// number under a scale of 0, as 0. Throws what SelectedCpuIsa throws, before anything is written.
void PagedAttention(const PagedAttentionArgs& args, const ParallelFor& parallel_for);

// The same by a named variant, which this machine must be able to run.
void PagedAttention(CpuIsa isa, const PagedAttentionArgs& args, const ParallelFor& parallel_for);

// The same with the products of bfloat16 by the pieces of `pairs`, for tests of pieces that this machine has not. The
// cache is one that they apply to.
struct PairAttentionVariant;
void PagedAttention(CpuIsa isa, const PairAttentionVariant& pairs, const PagedAttentionArgs& args,
                    const ParallelFor& parallel_for);

}  // namespace oga::kernels
