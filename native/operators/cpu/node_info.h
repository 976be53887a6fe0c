// What a node of the graph says about itself while its kernel is made. Only native/operators includes this file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operators/cpu/kernel_context.h"
#include "ort/abi.h"
#include "ort/shape.h"

namespace oga::operators {

class NodeInfo {
 public:
  explicit NodeInfo(const ort::abi::KernelInfo* info);

  // The node's name in the graph, for messages.
  std::string name() const;

  // Attributes; empty when the node does not set them.
  std::optional<int64_t> Int(const char* attribute) const;
  std::optional<float> Float(const char* attribute) const;
  std::optional<std::string> String(const char* attribute) const;

  // An optional input may be absent in the middle of the list; its type may not be asked for then.
  bool HasInput(size_t index) const;
  ort::TensorInfo Input(size_t index) const;

  // The tensor of an input that the node has, if it is the same in every execution. Its memory is the runtime's, for as
  // long as the session lives.
  std::optional<KernelTensor> Constant(size_t index) const;

 private:
  const ort::abi::KernelInfo* info_;
  size_t num_inputs_ = 0;
};

}  // namespace oga::operators
