#include "model/packed_inputs.h"

#include <algorithm>

#include "base/error.h"

namespace oga {

namespace {

template <typename... Parts>
void Require(bool holds, const Parts&... parts) {
  if (!holds) Throw(StatusCode::kInvalidArgument, "malformed batch: ", parts...);
}

int64_t Count(size_t size) { return static_cast<int64_t>(size); }

}  // namespace

void CheckBatch(const ExecutionBatch& batch) {
  const size_t rows = batch.rows();
  const auto tokens = Count(batch.token_ids.size());
  Require(rows > 0 && tokens > 0, rows, " rows of ", tokens, " tokens");
  Require(batch.cumulative_lengths.size() == rows + 1, batch.cumulative_lengths.size(), " row borders for ", rows,
          " rows");
  Require(batch.cumulative_lengths.front() == 0 && batch.cumulative_lengths.back() == tokens, "row borders from ",
          batch.cumulative_lengths.front(), " to ", batch.cumulative_lengths.back(), " for ", tokens, " tokens");
  for (size_t row = 0; row < rows; ++row) {
    Require(batch.cumulative_lengths[row] < batch.cumulative_lengths[row + 1], "row ", row, " has no tokens");
    Require(batch.past_lengths[row] >= 0, "row ", row, " has a past of ", batch.past_lengths[row]);
  }
  Require(batch.block_table_columns > 0 && batch.block_table.size() == rows * batch.block_table_columns,
          "a block table of ", batch.block_table.size(), " entries for ", rows, " rows of ", batch.block_table_columns);
  int64_t previous = -1;
  for (const int64_t index : batch.logits_indices) {
    Require(index > previous && index < tokens, "logits index ", index, " after ", previous, " of ", tokens, " tokens");
    previous = index;
  }
}

PackedInputs::PackedInputs(const DecoderManifest& manifest, ort::IoBinding& binding,
                           const ort::Environment& environment, Ledger& ledger)
    : manifest_(manifest),
      input_ids_(binding, environment, BindingSide::kInput, manifest.names.input_ids, ort::ElementType::kInt64, ledger),
      cumulative_lengths_(binding, environment, BindingSide::kInput, manifest.names.cumulative_sequence_lengths,
                          ort::ElementType::kInt32, ledger),
      past_lengths_(binding, environment, BindingSide::kInput, manifest.names.past_sequence_lengths,
                    ort::ElementType::kInt32, ledger),
      block_table_(binding, environment, BindingSide::kInput, manifest.names.block_table, ort::ElementType::kInt32,
                   ledger),
      attention_metadata_(binding, environment, BindingSide::kInput, manifest.names.attention_metadata,
                          ort::ElementType::kInt32, ledger),
      position_ids_(binding, environment, BindingSide::kInput, manifest.names.position_ids, ort::ElementType::kInt64,
                    ledger),
      logits_indices_(binding, environment, BindingSide::kInput, manifest.names.logits_indices,
                      manifest.logits_index_type, ledger) {}

void PackedInputs::Pack(const ExecutionBatch& batch, std::span<const int64_t> logits_indices) {
  auto* const ids = static_cast<int64_t*>(input_ids_.Shape({Count(batch.token_ids.size())}));
  std::copy(batch.token_ids.begin(), batch.token_ids.end(), ids);
  PackTables(batch);
  if (manifest_.has_attention_metadata) PackMetadata(batch);
  if (manifest_.position_rows > 0) PackPositions(batch);
  if (manifest_.logits_rows == LogitsRows::kPerIndex) PackLogitsIndices(logits_indices);
}

void PackedInputs::PackTables(const ExecutionBatch& batch) {
  const int64_t rows = Count(batch.rows());
  std::copy(batch.cumulative_lengths.begin(), batch.cumulative_lengths.end(),
            static_cast<int32_t*>(cumulative_lengths_.Shape({rows + 1})));
  std::copy(batch.past_lengths.begin(), batch.past_lengths.end(), static_cast<int32_t*>(past_lengths_.Shape({rows})));
  std::copy(batch.block_table.begin(), batch.block_table.end(),
            static_cast<int32_t*>(block_table_.Shape({rows, batch.block_table_columns})));
}

void PackedInputs::PackMetadata(const ExecutionBatch& batch) {
  int32_t max_query_length = 0;
  int32_t max_kv_length = 0;
  for (size_t row = 0; row < batch.rows(); ++row) {
    const int32_t length = batch.cumulative_lengths[row + 1] - batch.cumulative_lengths[row];
    max_query_length = std::max(max_query_length, length);
    max_kv_length = std::max(max_kv_length, batch.past_lengths[row] + length);
  }
  auto* const metadata = static_cast<int32_t*>(attention_metadata_.Shape({3}));
  metadata[0] = max_query_length;
  metadata[1] = max_kv_length;
  metadata[2] = max_kv_length;  // a lower bound of the longest length; it is known exactly here
}

void PackedInputs::PackPositions(const ExecutionBatch& batch) {
  const int64_t tokens = Count(batch.token_ids.size());
  auto* const positions =
      static_cast<int64_t*>(manifest_.position_rows == 1 ? position_ids_.Shape({tokens})
                                                         : position_ids_.Shape({manifest_.position_rows, tokens}));
  for (size_t row = 0; row < batch.rows(); ++row) {
    const int32_t begin = batch.cumulative_lengths[row];
    for (int32_t token = begin; token < batch.cumulative_lengths[row + 1]; ++token) {
      positions[token] = int64_t{batch.past_lengths[row]} + token - begin;
    }
  }
  // Text has the same position on every axis.
  for (int32_t row = 1; row < manifest_.position_rows; ++row) std::copy_n(positions, tokens, positions + row * tokens);
}

void PackedInputs::PackLogitsIndices(std::span<const int64_t> indices) {
  void* const memory = logits_indices_.Shape({Count(indices.size())});
  if (manifest_.logits_index_type == ort::ElementType::kInt64) {
    std::copy(indices.begin(), indices.end(), static_cast<int64_t*>(memory));
  } else {
    std::transform(indices.begin(), indices.end(), static_cast<int32_t*>(memory),
                   [](int64_t index) { return static_cast<int32_t>(index); });
  }
}

}  // namespace oga
