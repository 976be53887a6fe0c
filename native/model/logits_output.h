// The logits of a step: where the graph writes them, and the rows of them that the host asked for.
//
// Owned by one executor, used on its engine's thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "model/bound_tensor.h"
#include "model/manifest.h"
#include "step/execution_batch.h"

namespace oga {

class LogitsOutput {
 public:
  // All references must outlive the output.
  LogitsOutput(const DecoderManifest& manifest, ort::IoBinding& binding, DeviceStream& stream, Ledger& ledger);

  // Makes room for what the graph computes when `indices` are wanted of `batch`, and binds it.
  void Shape(const ExecutionBatch& batch, std::span<const int64_t> indices);

  // After the run: the wanted rows in order, in host memory, valid until the next Shape.
  std::span<const float> Read(const ExecutionBatch& batch);

 private:
  void FindRows(const ExecutionBatch& batch);
  void MoveRows(float* logits) const;
  float* FetchRows();

  const DecoderManifest& manifest_;
  const Device& device_;
  DeviceStream& stream_;
  BoundTensor tensor_;
  std::vector<size_t> rows_;               // of the graph's output, ascending: one for each wanted row
  std::unique_ptr<DeviceMemory> staging_;  // null where the host reads in place
};

}  // namespace oga
