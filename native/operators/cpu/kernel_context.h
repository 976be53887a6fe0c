// What a kernel reads, writes and runs on during one execution. Only native/operators includes this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "ort/abi.h"

namespace oga::operators {

// A tensor of a graph, of rank 8 at most.
struct KernelTensor {
  void* data = nullptr;
  ort::ElementType type = ort::ElementType::kUndefined;
  size_t rank = 0;  // the true one, even when it is above 8
  int64_t dims[8] = {};

  bool HasShape(std::initializer_list<int64_t> shape) const;
  std::string ShapeText() const;
  // -1 for a rank above 8.
  int64_t Elements() const;
};

// Describes `value`, whose memory stays the runtime's.
KernelTensor ReadTensor(const ort::abi::Value* value);

class KernelContext {
 public:
  explicit KernelContext(ort::abi::KernelContext* context) : context_(context) {}

  // `index` must be an input that the node has.
  KernelTensor Input(size_t index) const;

  // The memory of an output of `dims`; nullptr for an output that the node does not have.
  void* Output(size_t index, std::span<const int64_t> dims) const;

  // Runs an operator of the runtime on the node's first `inputs` inputs; its result of `dims` is the node's output.
  void Run(const ort::abi::Op* op, size_t inputs, std::span<const int64_t> dims) const;

  // Calls body(i) for every i in [0, count) on the session's own thread pool, so that there is one pool and no thread
  // competes with another. Throws kInternal when a body threw.
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) const;

 private:
  ort::abi::KernelContext* context_;
};

}  // namespace oga::operators
