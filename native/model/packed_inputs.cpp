#include "model/packed_inputs.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace oga {

namespace {

template <typename... Parts>
void Require(bool holds, const Parts&... parts) {
  if (!holds) Throw(StatusCode::kInvalidArgument, "malformed batch: ", parts...);
}

int64_t Count(size_t size) { return static_cast<int64_t>(size); }

template <typename Element, typename Value>
void WriteAs(InputTensor& tensor, std::initializer_list<int64_t> dims, std::span<Value> values) {
  tensor.Write<Element>(dims, [&](Element* target) {
    std::transform(values.begin(), values.end(), target, [](Value value) { return static_cast<Element>(value); });
  });
}

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

PackedInputs::PackedInputs(const DecoderManifest& manifest, ort::IoBinding& binding, DeviceStream& stream,
                           Ledger& ledger)
    : manifest_(manifest),
      input_ids_(binding, stream, manifest.names.input_ids, ort::ElementType::kInt64, ledger),
      cumulative_lengths_(binding, stream, manifest.names.cumulative_sequence_lengths, ort::ElementType::kInt32,
                          ledger),
      past_lengths_(binding, stream, manifest.names.past_sequence_lengths, ort::ElementType::kInt32, ledger),
      block_table_(binding, stream, manifest.names.block_table, ort::ElementType::kInt32, ledger),
      attention_metadata_(binding, stream, manifest.names.attention_metadata, ort::ElementType::kInt32, ledger),
      position_ids_(binding, stream, manifest.names.position_ids, ort::ElementType::kInt64, ledger),
      logits_indices_(binding, stream, manifest.names.logits_indices, manifest.logits_index_type, ledger) {}

void PackedInputs::Pack(const ExecutionBatch& batch, std::span<const int64_t> logits_indices) {
  WriteAs<int64_t>(input_ids_, {Count(batch.token_ids.size())}, batch.token_ids);
  PackTables(batch);
  if (manifest_.has_attention_metadata) PackMetadata(batch);
  if (manifest_.position_rows > 0) PackPositions(batch);
  if (manifest_.logits_rows == LogitsRows::kPerIndex) PackLogitsIndices(logits_indices);
}

void PackedInputs::PackTables(const ExecutionBatch& batch) {
  const int64_t rows = Count(batch.rows());
  WriteAs<int32_t>(cumulative_lengths_, {rows + 1}, batch.cumulative_lengths);
  WriteAs<int32_t>(past_lengths_, {rows}, batch.past_lengths);
  WriteAs<int32_t>(block_table_, {rows, batch.block_table_columns}, batch.block_table);
}

void PackedInputs::PackMetadata(const ExecutionBatch& batch) {
  int32_t max_query_length = 0;
  int32_t max_kv_length = 0;
  for (size_t row = 0; row < batch.rows(); ++row) {
    const int32_t length = batch.cumulative_lengths[row + 1] - batch.cumulative_lengths[row];
    max_query_length = std::max(max_query_length, length);
    max_kv_length = std::max(max_kv_length, batch.past_lengths[row] + length);
  }
  // The third is a lower bound of the longest length; it is known exactly here.
  const std::array<int32_t, 3> metadata = {max_query_length, max_kv_length, max_kv_length};
  WriteAs<int32_t>(attention_metadata_, {Count(metadata.size())}, std::span<const int32_t>(metadata));
}

void PackedInputs::PackPositions(const ExecutionBatch& batch) {
  const int64_t tokens = Count(batch.token_ids.size());
  const auto fill = [&](int64_t* positions) {
    for (size_t row = 0; row < batch.rows(); ++row) {
      const int32_t begin = batch.cumulative_lengths[row];
      for (int32_t token = begin; token < batch.cumulative_lengths[row + 1]; ++token) {
        positions[token] = int64_t{batch.past_lengths[row]} + token - begin;
      }
    }
    // Text has the same position on every axis.
    for (int32_t row = 1; row < manifest_.position_rows; ++row) {
      std::copy_n(positions, tokens, positions + row * tokens);
    }
  };
  if (manifest_.position_rows == 1) {
    position_ids_.Write<int64_t>({tokens}, fill);
  } else {
    position_ids_.Write<int64_t>({manifest_.position_rows, tokens}, fill);
  }
}

void PackedInputs::PackLogitsIndices(std::span<const int64_t> indices) {
  if (manifest_.logits_index_type == ort::ElementType::kInt64) {
    WriteAs<int64_t>(logits_indices_, {Count(indices.size())}, indices);
  } else {
    WriteAs<int32_t>(logits_indices_, {Count(indices.size())}, indices);
  }
}

}  // namespace oga
