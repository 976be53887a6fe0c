#include "operators/cpu/node_info.h"

#include "ort/make.h"

namespace oga::operators {

namespace {

constexpr const char* kDoing = "cannot read a node of the graph";

// Every text is read the same way: ask for its size, terminator included, then for the text.
template <typename Read>
std::optional<std::string> ReadText(Read&& read) {
  size_t size = 0;
  if (!ort::Succeeded(read(nullptr, &size)) || size == 0) return std::nullopt;
  std::string text(size, '\0');
  ort::Check(read(text.data(), &size), kDoing);
  text.resize(size - 1);
  return text;
}

}  // namespace

NodeInfo::NodeInfo(const ort::abi::KernelInfo* info) : info_(info) {
  ort::Check(ort::Api().KernelInfo_GetInputCount(info_, &num_inputs_), kDoing);
}

std::string NodeInfo::name() const {
  return ReadText([&](char* out, size_t* size) { return ort::Api().KernelInfo_GetNodeName(info_, out, size); })
      .value_or("");
}

std::optional<int64_t> NodeInfo::Int(const char* attribute) const {
  int64_t value = 0;
  if (!ort::Succeeded(ort::Api().KernelInfoGetAttribute_int64(info_, attribute, &value))) return std::nullopt;
  return value;
}

std::optional<float> NodeInfo::Float(const char* attribute) const {
  float value = 0;
  if (!ort::Succeeded(ort::Api().KernelInfoGetAttribute_float(info_, attribute, &value))) return std::nullopt;
  return value;
}

std::optional<std::string> NodeInfo::String(const char* attribute) const {
  return ReadText(
      [&](char* out, size_t* size) { return ort::Api().KernelInfoGetAttribute_string(info_, attribute, out, size); });
}

bool NodeInfo::HasInput(size_t index) const {
  if (index >= num_inputs_) return false;
  const auto name =
      ReadText([&](char* out, size_t* size) { return ort::Api().KernelInfo_GetInputName(info_, index, out, size); });
  return name.has_value() && !name->empty();
}

ort::TensorInfo NodeInfo::Input(size_t index) const {
  const auto type = ort::Make<ort::abi::TypeInfo>(ort::Api().KernelInfo_GetInputTypeInfo, kDoing, info_, index);
  const ort::abi::ShapeInfo* shape = nullptr;
  ort::Check(ort::Api().CastTypeInfoToTensorInfo(type.get(), &shape), kDoing);
  return shape == nullptr ? ort::TensorInfo{} : ort::ReadShapeInfo(shape);
}

std::optional<KernelTensor> NodeInfo::Constant(size_t index) const {
  int is_constant = 0;
  const ort::abi::Value* value = nullptr;
  ort::Check(ort::Api().KernelInfoGetConstantInput_tensor(info_, index, &is_constant, &value), kDoing);
  if (is_constant == 0 || value == nullptr) return std::nullopt;
  return ReadTensor(value);
}

}  // namespace oga::operators
