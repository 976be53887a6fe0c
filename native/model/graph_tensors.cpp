#include "model/graph_tensors.h"

#include <algorithm>

#include "base/printable_text.h"

namespace oga {

std::string GraphTensors::KeyPath(const char* key) const { return Message("model.decoder.", side_, "s.", key); }

std::string GraphTensors::Where(const std::string& name, const char* key) const {
  return Message(Printable(graph_), ": ", side_, ' ', Quoted(name), " (", KeyPath(key), ')');
}

const ort::TensorInfo* GraphTensors::Find(const std::string& name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

const ort::TensorInfo& GraphTensors::Require(const std::string& name, const char* key) const {
  if (const ort::TensorInfo* const tensor = Find(name)) return *tensor;
  std::string names;
  for (const ort::TensorInfo& tensor : tensors_) names += (names.empty() ? "" : ", ") + Printable(tensor.name);
  Refuse(StatusCode::kModelError, name, key, " is not in the graph; its ", side_, "s are ", names);
}

void GraphTensors::RequireType(const ort::TensorInfo& tensor, const char* key,
                               std::initializer_list<ort::ElementType> types) const {
  if (std::find(types.begin(), types.end(), tensor.type) != types.end()) return;
  std::string wanted;
  for (const ort::ElementType type : types) wanted += Message(wanted.empty() ? "" : " or ", ElementTypeName(type));
  Refuse(StatusCode::kModelError, tensor.name, key, " has element type ", ElementTypeName(tensor.type), "; ", wanted,
         " is wanted");
}

void GraphTensors::RequireRank(const ort::TensorInfo& tensor, const char* key, size_t rank, const char* shape) const {
  if (tensor.dims.size() == rank) return;
  Refuse(StatusCode::kModelError, tensor.name, key, " has shape ", ort::ShapeText(tensor.dims), ", of rank ",
         tensor.dims.size(), "; ", shape, " is wanted");
}

void GraphTensors::RequireDimension(const ort::TensorInfo& tensor, const char* key, size_t index, int64_t size,
                                    bool may_be_open, const char* config_key) const {
  const ort::Dimension& dim = tensor.dims[index];
  if (dim.is_fixed() ? dim.size == size : may_be_open) return;
  Refuse(StatusCode::kModelError, tensor.name, key, " has shape ", ort::ShapeText(tensor.dims), ", whose dimension ",
         index, " must be ", size, ", as ", config_key, " says");
}

}  // namespace oga
