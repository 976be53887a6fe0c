#include "model/logits_output.h"

#include <algorithm>

#include "base/error.h"

namespace oga {

namespace {

// A graph with one row of logits per row of the batch cannot give those of another token.
void RequireLastToken(const ExecutionBatch& batch, size_t row, int64_t index) {
  const int32_t last = batch.cumulative_lengths[row + 1] - 1;
  if (index == last) return;
  Throw(StatusCode::kInvalidArgument, "logits of token ", index, " are wanted, but the graph gives those of the ",
        "last token of each row only, here of token ", last);
}

}  // namespace

LogitsOutput::LogitsOutput(const DecoderManifest& manifest, ort::IoBinding& binding, DeviceStream& stream,
                           Ledger& ledger)
    : manifest_(manifest),
      device_(binding.session().device()),
      stream_(stream),
      tensor_(binding, BindingSide::kOutput, manifest.names.logits, ort::ElementType::kFloat, ledger) {}

void LogitsOutput::Shape(const ExecutionBatch& batch, std::span<const int64_t> indices) {
  FindRows(batch);
  size_t rows = indices.size();
  if (manifest_.logits_rows == LogitsRows::kPerToken) rows = batch.token_ids.size();
  if (manifest_.logits_rows == LogitsRows::kPerRow) rows = batch.rows();
  tensor_.Shape({static_cast<int64_t>(rows), manifest_.vocab_size});
}

void LogitsOutput::FindRows(const ExecutionBatch& batch) {
  rows_.clear();
  size_t row = 0;
  for (const int64_t token : batch.logits_indices) {
    while (batch.cumulative_lengths[row + 1] <= token) ++row;
    switch (manifest_.logits_rows) {
      case LogitsRows::kPerIndex: rows_.push_back(rows_.size()); break;
      case LogitsRows::kPerToken: rows_.push_back(static_cast<size_t>(token)); break;
      case LogitsRows::kPerRow:
        RequireLastToken(batch, row, token);
        rows_.push_back(row);
        break;
    }
  }
}

std::span<const float> LogitsOutput::Read(const ExecutionBatch& batch) {
  auto* logits = static_cast<float*>(tensor_.memory().host());
  if (logits == nullptr) {
    logits = FetchRows();
  } else {
    MoveRows(logits);
  }
  return {logits, batch.logits_indices.size() * static_cast<size_t>(manifest_.vocab_size)};
}

// Moves the wanted rows to the front; they are ascending, so no row is overwritten before it was read.
void LogitsOutput::MoveRows(float* logits) const {
  const size_t width = static_cast<size_t>(manifest_.vocab_size);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] != i) std::copy_n(logits + rows_[i] * width, width, logits + i * width);
  }
}

// Copies the wanted rows, those that follow each other in one piece.
float* LogitsOutput::FetchRows() {
  const size_t row_bytes = static_cast<size_t>(manifest_.vocab_size) * sizeof(float);
  const size_t bytes = rows_.size() * row_bytes;
  if (staging_ == nullptr || staging_->bytes() < bytes) {
    staging_ = device_.AllocateStaging(GrownBytes(bytes, staging_.get()));
  }
  auto* const target = static_cast<std::byte*>(staging_->host());
  for (size_t first = 0, end = 0; first < rows_.size(); first = end) {
    for (end = first + 1; end < rows_.size() && rows_[end] == rows_[end - 1] + 1;) ++end;
    stream_.CopyToHost(target + first * row_bytes, tensor_.memory().address() + rows_[first] * row_bytes,
                       (end - first) * row_bytes);
  }
  stream_.Synchronize();
  return reinterpret_cast<float*>(target);
}

}  // namespace oga
