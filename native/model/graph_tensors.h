// Lookups and checks of a graph's inputs or outputs, with messages that lead to the line of the config.
//
// A short-lived view over the lists of a session.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/error.h"
#include "ort/shape.h"

namespace oga {

class GraphTensors {
 public:
  // `side` is "input" or "output"; `graph` is the file's path, for messages.
  GraphTensors(const std::vector<ort::TensorInfo>& tensors, const char* side, std::string graph)
      : tensors_(tensors), side_(side), graph_(std::move(graph)) {}

  // nullptr when the graph has no such tensor.
  const ort::TensorInfo* Find(const std::string& name) const;

  // The tensor that the config names at model.decoder.inputs.`key` (or outputs).
  const ort::TensorInfo& Require(const std::string& name, const char* key) const;

  void RequireType(const ort::TensorInfo& tensor, const char* key, std::initializer_list<ort::ElementType> types) const;

  // `shape` in words for the message: "[rows, columns]".
  void RequireRank(const ort::TensorInfo& tensor, const char* key, size_t rank, const char* shape) const;

  // Dimension `index` must be `size`, or open where `may_be_open`. `config_key` is where the config says the size.
  void RequireDimension(const ort::TensorInfo& tensor, const char* key, size_t index, int64_t size, bool may_be_open,
                        const char* config_key) const;

  // Throws an error about the tensor `name` that the config names at `key`, which is the error's field. The message begins
  // with the file, the side, the name and the key.
  template <typename... Parts>
  [[noreturn]] void Refuse(StatusCode code, const std::string& name, const char* key, const Parts&... parts) const {
    Throw(code, Field{KeyPath(key)}, Where(name, key), parts...);
  }

  const std::vector<ort::TensorInfo>& all() const { return tensors_; }
  const std::string& graph() const { return graph_; }

 private:
  std::string KeyPath(const char* key) const;
  std::string Where(const std::string& name, const char* key) const;

  const std::vector<ort::TensorInfo>& tensors_;
  const char* side_;
  std::string graph_;
};

}  // namespace oga
