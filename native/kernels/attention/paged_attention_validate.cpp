#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/attention/paged_attention.h"
#include "kernels/attention/paged_attention_variant.h"

namespace oga::kernels {

namespace {

constexpr size_t kWritesOnStack = 1024;  // a decode step writes a block per row: no allocation there

std::string CheckShape(const PagedAttentionShape& shape) {
  if (shape.num_tokens < 0 || shape.num_rows < 0 || shape.num_blocks < 0 || shape.table_columns < 0) {
    return Message("negative size: num_tokens ", shape.num_tokens, ", num_rows ", shape.num_rows, ", num_blocks ",
                   shape.num_blocks, ", table columns ", shape.table_columns, "; sizes are 0 or more");
  }
  if (shape.num_heads <= 0 || shape.num_kv_heads <= 0 || shape.num_heads % shape.num_kv_heads != 0) {
    return Message("num_heads is ", shape.num_heads, " and num_kv_heads is ", shape.num_kv_heads,
                   "; both must be positive and num_heads a multiple of num_kv_heads");
  }
  if (shape.head_size <= 0 || shape.head_size % 8 != 0 || shape.head_size > kMaxHeadSize) {
    return Message("head_size is ", shape.head_size, "; it must be a multiple of 8 from 8 to ", kMaxHeadSize);
  }
  if (shape.block_size <= 0) return Message("block_size is ", shape.block_size, "; it must be positive");
  return {};
}

std::string CheckRotary(const PagedAttentionArgs& args) {
  const PagedAttentionParams& params = args.params;
  if (!params.rotary) return {};
  if (params.rotary_offset < 0 || params.rotary_offset % 8 != 0 || params.rotary_offset > args.shape.head_size) {
    return Message("rotary_offset is ", params.rotary_offset, "; it must be a multiple of 8 within head_size ",
                   args.shape.head_size);
  }
  if (params.rotary_dim <= 0 || params.rotary_dim % 2 != 0 ||
      params.rotary_dim > args.shape.head_size - params.rotary_offset) {
    return Message("rotary_dim is ", params.rotary_dim, "; it must be even, positive and at most head_size ",
                   args.shape.head_size, " less the rotary_offset ", params.rotary_offset);
  }
  if (args.cos_cache == nullptr || args.sin_cache == nullptr) {
    return "rotary embedding is on, but the cos or sin table is missing; pass both";
  }
  return {};
}

std::string CheckParams(const PagedAttentionArgs& args) {
  const PagedAttentionParams& params = args.params;
  if (!std::isfinite(params.scale)) {
    return Message("scale is ", params.scale, "; it must be a finite number (0 for 1 / sqrt(head_size))");
  }
  if (params.window == 0 || params.window < -1) {
    return Message("window is ", params.window, "; it must be positive, or -1 for none");
  }
  if (!(params.softcap >= 0.0f && std::isfinite(params.softcap))) {
    return Message("softcap is ", params.softcap, "; it must be a positive number, or 0 for none");
  }
  if ((args.query_norm == nullptr) != (args.key_norm == nullptr)) {
    return "one of the query and key norm's gains is missing; pass both or neither";
  }
  if (!(params.norm_epsilon >= 0.0f && std::isfinite(params.norm_epsilon))) {
    return Message("norm_epsilon is ", params.norm_epsilon, "; it must be 0 or a positive number");
  }
  return CheckRotary(args);
}

std::string CheckScale(const PagedAttentionArgs& args, const CacheScale& scale, const char* name) {
  const bool wanted = args.cache_type == CacheType::kInt8;
  if ((scale.data != nullptr) != wanted) {
    return wanted ? Message(name, " is missing; an int8 cache needs one")
                  : Message(name, " is given for a cache of floats; only an int8 cache has scales");
  }
  const int32_t count = !wanted ? 0 : scale.per_channel ? args.shape.num_kv_heads * args.shape.head_size : 1;
  for (int32_t i = 0; i < count; ++i) {
    if (scale.data[i] >= 0.0f && std::isfinite(scale.data[i])) continue;
    return Message(name, "[", i, "] is ", scale.data[i], "; the worth of a code's step must be 0 or a positive number");
  }
  return {};
}

std::string CheckBuffers(const PagedAttentionArgs& args) {
  const PagedAttentionShape& shape = args.shape;
  if (args.cumulative_lengths == nullptr || (shape.num_rows > 0 && args.past_lengths == nullptr)) {
    return "the cumulative or past lengths are missing; pass both";
  }
  if (shape.num_tokens == 0) return {};
  if (args.query == nullptr || args.key == nullptr || args.value == nullptr || args.output == nullptr) {
    return "query, key, value or output is missing; pass all four";
  }
  if (args.key_cache == nullptr || args.value_cache == nullptr || args.block_table == nullptr) {
    return "key cache, value cache or block table is missing; pass all three";
  }
  const int64_t query_floats = static_cast<int64_t>(shape.num_heads) * shape.head_size;
  const int64_t kv_floats = static_cast<int64_t>(shape.num_kv_heads) * shape.head_size;
  if (args.query_stride < query_floats || args.key_stride < kv_floats || args.value_stride < kv_floats) {
    return Message("the strides of query, key and value are ", args.query_stride, ", ", args.key_stride, " and ",
                   args.value_stride, " elements; one token takes ", query_floats, ", ", kv_floats, " and ", kv_floats);
  }
  return {};
}

std::string CheckLengths(const PagedAttentionArgs& args) {
  const PagedAttentionShape& shape = args.shape;
  if (args.cumulative_lengths[0] != 0) {
    return Message("cumulative_sequence_lengths[0] is ", args.cumulative_lengths[0], "; it must be 0");
  }
  for (int32_t row = 0; row < shape.num_rows; ++row) {
    const int32_t begin = args.cumulative_lengths[row], end = args.cumulative_lengths[row + 1];
    if (end < begin) {
      return Message("cumulative_sequence_lengths[", row + 1, "] is ", end, ", below its predecessor ", begin,
                     "; the lengths must not decrease");
    }
    if (args.past_lengths[row] < 0) {
      return Message("past_sequence_lengths[", row, "] is ", args.past_lengths[row], "; it must be 0 or more");
    }
  }
  if (args.cumulative_lengths[shape.num_rows] != shape.num_tokens) {
    return Message("cumulative_sequence_lengths[", shape.num_rows, "] is ", args.cumulative_lengths[shape.num_rows],
                   "; the last one must equal the number of tokens, ", shape.num_tokens);
  }
  return {};
}

// Only for a row with new tokens.
std::string CheckRow(const PagedAttentionArgs& args, int32_t row) {
  const PagedAttentionShape& shape = args.shape;
  const int64_t length = static_cast<int64_t>(args.past_lengths[row]) + NewTokens(args, row);
  const int64_t capacity = static_cast<int64_t>(shape.table_columns) * shape.block_size;
  if (length > std::min<int64_t>(capacity, INT32_MAX)) {
    return Message("row ", row, " reaches length ", length, " (past ", args.past_lengths[row], " and ",
                   NewTokens(args, row), " new tokens), but its ", shape.table_columns, " block_table columns of ",
                   shape.block_size, " slots hold ", capacity, "; give the table more columns");
  }
  if (args.params.rotary && length > args.params.rotary_positions) {
    return Message("row ", row, " reaches length ", length, ", but the cos and sin tables have ",
                   args.params.rotary_positions, " positions; the sequence is longer than the model allows");
  }
  const PositionRange range = VisibleRange(args, row);
  const int32_t* table = args.block_table + static_cast<int64_t>(row) * shape.table_columns;
  for (int32_t column = range.first / shape.block_size; column <= range.last / shape.block_size; ++column) {
    if (table[column] < 0 || table[column] >= shape.num_blocks) {
      return Message("block_table row ", row, ", column ", column, " is ", table[column],
                     "; it must be a block in [0, ", shape.num_blocks, "), because the row touches positions ",
                     range.first, " to ", range.last, " in blocks of ", shape.block_size);
    }
  }
  return {};
}

struct WrittenBlock {
  int32_t block;
  int32_t row;
  int32_t column;
  bool operator<(const WrittenBlock& other) const {
    return block != other.block ? block < other.block : row != other.row ? row < other.row : column < other.column;
  }
};

std::string FindConflict(WrittenBlock* written, size_t count) {
  std::sort(written, written + count);
  for (size_t i = 1; i < count; ++i) {
    const WrittenBlock &a = written[i - 1], &b = written[i];
    if (a.block != b.block) continue;
    return Message("block ", a.block, " is to be written through block_table row ", a.row, ", column ", a.column,
                   " and row ", b.row, ", column ", b.column, "; every written block needs one owner");
  }
  return {};
}

// Only the mapping says where its tokens are written.
std::string CheckSlots(const PagedAttentionArgs& args) {
  const int64_t slots = static_cast<int64_t>(args.shape.num_blocks) * args.shape.block_size;
  for (int32_t token = 0; token < args.shape.num_tokens; ++token) {
    const int32_t slot = args.slot_mapping[token];
    if (slot >= -1 && slot < slots) continue;
    return Message("slot_mapping[", token, "] is ", slot, "; it must be a slot in [0, ", slots,
                   "), or -1 to write nothing");
  }
  return {};
}

struct WrittenSlot {
  int32_t slot;
  int32_t token;
  bool operator<(const WrittenSlot& other) const {
    return slot != other.slot ? slot < other.slot : token < other.token;
  }
};

std::string CheckSlotConflicts(const PagedAttentionArgs& args) {
  WrittenSlot on_stack[kWritesOnStack];
  const size_t count = static_cast<size_t>(args.shape.num_tokens);
  std::vector<WrittenSlot> on_heap(count > kWritesOnStack ? count : 0);
  WrittenSlot* const written = count > kWritesOnStack ? on_heap.data() : on_stack;
  for (size_t i = 0; i < count; ++i) written[i] = {args.slot_mapping[i], static_cast<int32_t>(i)};
  std::sort(written, written + count);
  for (size_t i = 1; i < count; ++i) {
    if (written[i].slot < 0 || written[i - 1].slot != written[i].slot) continue;
    return Message("slot ", written[i].slot, " is to be written by token ", written[i - 1].token, " and token ",
                   written[i].token, " of the slot_mapping; every written slot needs one owner");
  }
  return {};
}

// Two writers of one block would leave whichever came last.
std::string CheckWriteConflicts(const PagedAttentionArgs& args) {
  const int32_t block_size = args.shape.block_size;
  size_t count = 0;
  for (int32_t row = 0; row < args.shape.num_rows; ++row) {
    if (NewTokens(args, row) == 0) continue;
    count += VisibleRange(args, row).last / block_size - args.past_lengths[row] / block_size + 1;
  }
  if (count < 2) return {};
  WrittenBlock on_stack[kWritesOnStack];
  std::vector<WrittenBlock> on_heap(count > kWritesOnStack ? count : 0);
  WrittenBlock* const written = count > kWritesOnStack ? on_heap.data() : on_stack;
  WrittenBlock* next = written;
  for (int32_t row = 0; row < args.shape.num_rows; ++row) {
    if (NewTokens(args, row) == 0) continue;
    const int32_t* table = args.block_table + static_cast<int64_t>(row) * args.shape.table_columns;
    for (int32_t column = args.past_lengths[row] / block_size; column <= VisibleRange(args, row).last / block_size;
         ++column) {
      *next++ = {table[column], row, column};
    }
  }
  return FindConflict(written, count);
}

}  // namespace

std::string ValidatePagedAttention(const PagedAttentionArgs& args) {
  std::string problem = CheckShape(args.shape);
  if (problem.empty()) problem = CheckParams(args);
  if (problem.empty()) problem = CheckBuffers(args);
  if (problem.empty()) problem = CheckScale(args, args.key_scale, "key_scale");
  if (problem.empty()) problem = CheckScale(args, args.value_scale, "value_scale");
  if (problem.empty()) problem = CheckLengths(args);
  for (int32_t row = 0; problem.empty() && row < args.shape.num_rows; ++row) {
    if (NewTokens(args, row) > 0) problem = CheckRow(args, row);
  }
  if (problem.empty() && args.slot_mapping != nullptr) problem = CheckSlots(args);
  if (problem.empty()) problem = args.slot_mapping == nullptr ? CheckWriteConflicts(args) : CheckSlotConflicts(args);
  return problem;
}

}  // namespace oga::kernels
