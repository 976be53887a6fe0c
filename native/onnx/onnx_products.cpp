#include "onnx/onnx_products.h"

#include <set>
#include <vector>

#include "onnx/onnx_fields.h"
#include "onnx/protobuf_reader.h"

namespace oga {

namespace {

using Field = ProtobufReader::Field;

// Types of elements.
constexpr uint64_t kFloat16 = 10;
constexpr uint64_t kBfloat16 = 16;

// Adds the tensor's name when it has 16 bits.
void ReadInitializer(ProtobufReader& reader, const Field& initializer, std::set<std::string>* halves) {
  std::string name;
  uint64_t type = 0;
  reader.ForEachField(initializer.begin, initializer.end, [&](const Field& field) {
    if (field.number == onnx_fields::kTensorName) name = reader.Text(field);
    if (field.number == onnx_fields::kTensorDataType) type = field.number_value;
  });
  if (type == kFloat16 || type == kBfloat16) halves->insert(name);
}

// Adds the right side of a product.
void ReadNode(ProtobufReader& reader, const Field& node, std::vector<std::string>* right_sides) {
  std::vector<std::string> inputs;
  std::string name, domain;
  reader.ForEachField(node.begin, node.end, [&](const Field& field) {
    if (field.number == onnx_fields::kNodeInput) inputs.push_back(reader.Text(field));
    if (field.number == onnx_fields::kNodeOperator) name = reader.Text(field);
    if (field.number == onnx_fields::kNodeDomain) domain = reader.Text(field);
  });
  const bool is_onnx = domain.empty() || domain == "ai.onnx";
  if (is_onnx && (name == "MatMul" || name == "Gemm") && inputs.size() >= 2) right_sides->push_back(inputs[1]);
}

}  // namespace

bool HasHalfProducts(const std::string& path) {
  ProtobufReader reader(path);
  std::set<std::string> halves;
  std::vector<std::string> right_sides;
  reader.ForEachField(0, reader.size_bytes(), [&](const Field& field) {
    if (field.number != onnx_fields::kModelGraph || !field.has_content) return;
    reader.ForEachField(field.begin, field.end, [&](const Field& part) {
      if (part.number == onnx_fields::kGraphInitializer && part.has_content) ReadInitializer(reader, part, &halves);
      if (part.number == onnx_fields::kGraphNode && part.has_content) ReadNode(reader, part, &right_sides);
    });
  });
  for (const std::string& name : right_sides) {
    if (halves.count(name) != 0) return true;
  }
  return false;
}

}  // namespace oga
