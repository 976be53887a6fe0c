#include "operators/cpu/kernel_context.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <vector>

#include "ort/make.h"

namespace oga::operators {

namespace {
constexpr const char* kDoing = "cannot reach a tensor of the graph";
}

bool KernelTensor::HasShape(std::initializer_list<int64_t> shape) const {
  return rank == shape.size() && std::equal(shape.begin(), shape.end(), dims);
}

std::string KernelTensor::ShapeText() const {
  if (rank > std::size(dims)) return Message("rank ", rank);
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i) text += Message(i == 0 ? "" : ", ", dims[i]);
  return text + "]";
}

int64_t KernelTensor::Elements() const {
  if (rank > std::size(dims)) return -1;
  return std::accumulate(dims, dims + rank, int64_t{1}, std::multiplies<>());
}

KernelTensor ReadTensor(const ort::abi::Value* value) {
  KernelTensor tensor;
  const auto info = ort::Make<ort::abi::ShapeInfo>(ort::Api().GetTensorTypeAndShape, kDoing, value);
  ort::Check(ort::Api().GetTensorElementType(info.get(), &tensor.type), kDoing);
  ort::Check(ort::Api().GetDimensionsCount(info.get(), &tensor.rank), kDoing);
  if (tensor.rank <= std::size(tensor.dims))
    ort::Check(ort::Api().GetDimensions(info.get(), tensor.dims, tensor.rank), kDoing);
  // The runtime hands out data pointers through mutable values only; inputs are not written except the caches, which
  // the graph updates in place.
  ort::Check(ort::Api().GetTensorMutableData(const_cast<ort::abi::Value*>(value), &tensor.data), kDoing);
  return tensor;
}

KernelTensor KernelContext::Input(size_t index) const {
  const ort::abi::Value* value = nullptr;
  ort::Check(ort::Api().KernelContext_GetInput(context_, index, &value), kDoing);
  if (value == nullptr) Throw(StatusCode::kInternal, kDoing, ": input ", index, " is absent");
  return ReadTensor(value);
}

void* KernelContext::Output(size_t index, std::span<const int64_t> dims) const {
  size_t count = 0;
  ort::Check(ort::Api().KernelContext_GetOutputCount(context_, &count), kDoing);
  if (index >= count) return nullptr;
  ort::abi::Value* value = nullptr;
  ort::Check(ort::Api().KernelContext_GetOutput(context_, index, dims.data(), dims.size(), &value), kDoing);
  if (value == nullptr) return nullptr;
  void* data = nullptr;
  ort::Check(ort::Api().GetTensorMutableData(value, &data), kDoing);
  return data;
}

void KernelContext::Run(const ort::abi::Op* op, size_t inputs, std::span<const int64_t> dims) const {
  std::vector<const ort::abi::Value*> values(inputs);
  for (size_t i = 0; i < inputs; ++i) ort::Check(ort::Api().KernelContext_GetInput(context_, i, &values[i]), kDoing);
  ort::abi::Value* output = nullptr;
  ort::Check(ort::Api().KernelContext_GetOutput(context_, 0, dims.data(), dims.size(), &output), kDoing);
  ort::Check(ort::Api().InvokeOp(context_, op, values.data(), static_cast<int>(inputs), &output, 1),
             "cannot run an operator of the runtime");
}

void KernelContext::ParallelFor(size_t count, const std::function<void(size_t)>& body) const {
  struct Loop {
    const std::function<void(size_t)>& body;
    std::atomic<bool> failed{false};
  } loop{body};
  const ort::abi::LoopBody run = [](void* state, size_t index) {
    auto& shared = *static_cast<Loop*>(state);
    try {
      shared.body(index);
    } catch (...) {
      shared.failed = true;  // an exception must not reach the runtime's threads
    }
  };
  // As many batches as items: the pool's threads then take items one by one, which balances uneven rows.
  ort::Check(ort::Api().KernelContext_ParallelFor(context_, run, count, count, &loop),
             "cannot use the session's thread pool");
  if (loop.failed) Throw(StatusCode::kInternal, "a part of an operator's parallel work failed");
}

}  // namespace oga::operators
