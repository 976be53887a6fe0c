#include "onnx/onnx_file.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/platform_file.h"
#include "base/printable_text.h"
#include "onnx/onnx_fields.h"
#include "onnx/protobuf_reader.h"

namespace oga {

namespace {

using Field = ProtobufReader::Field;

// How far into one file the weights reach, and the tensor that reaches farthest.
struct Extent {
  uint64_t end_bytes = 0;
  std::string tensor;
  uint64_t used_bytes = 0;  // by all tensors
};
struct Extents {
  uint64_t graph_bytes = 0;
  std::map<std::string, Extent> by_location;  // relative to the graph's folder
};

uint64_t ParseNumber(const std::string& text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void ReadEntry(ProtobufReader& reader, const Field& entry, std::map<std::string, std::string>* entries) {
  std::string key;
  std::string value;
  reader.ForEachField(entry.begin, entry.end, [&](const Field& field) {
    if (field.number == onnx_fields::kEntryKey) key = reader.Text(field);
    if (field.number == onnx_fields::kEntryValue) value = reader.Text(field);
  });
  (*entries)[key] = value;
}

void ReadInitializer(ProtobufReader& reader, const Field& initializer, Extents* extents) {
  std::string name;
  std::map<std::string, std::string> entries;
  reader.ForEachField(initializer.begin, initializer.end, [&](const Field& field) {
    if (field.number == onnx_fields::kTensorName) name = reader.Text(field);
    if (field.number == onnx_fields::kTensorExternalData && field.has_content) ReadEntry(reader, field, &entries);
  });
  if (entries.find("location") == entries.end()) return;
  Extent& extent = extents->by_location[entries["location"]];
  const uint64_t length_bytes = ParseNumber(entries["length"]);
  const uint64_t end_bytes = ParseNumber(entries["offset"]) + length_bytes;
  extent.used_bytes += length_bytes;
  if (end_bytes < extent.end_bytes) return;
  extent.end_bytes = end_bytes;
  extent.tensor = name;
}

Extents ReadExtents(const std::string& path) {
  ProtobufReader reader(path);
  Extents extents;
  extents.graph_bytes = reader.size_bytes();
  bool has_graph = false;
  reader.ForEachField(0, reader.size_bytes(), [&](const Field& field) {
    if (field.number != onnx_fields::kModelGraph || !field.has_content) return;
    has_graph = true;
    reader.ForEachField(field.begin, field.end, [&](const Field& part) {
      if (part.number == onnx_fields::kGraphInitializer && part.has_content) ReadInitializer(reader, part, &extents);
    });
  });
  if (!has_graph) {
    Throw(StatusCode::kModelError, oga::Field{path}, Printable(path), " (", reader.size_bytes(),
          " bytes) is not an ONNX file: it holds no graph; copy, download or convert it again");
  }
  return extents;
}

void CheckWeightsFile(const std::string& graph, const std::string& path, const Extent& extent) {
  const std::string what = Message("the weights file ", Printable(path), " of ", Printable(graph));
  const platform::InputFile file(path);
  if (!file.is_open()) {
    Throw(file.is_missing() ? StatusCode::kNotFound : StatusCode::kIoError, oga::Field{path}, what,
          " cannot be opened: ", file.reason(), "; a model folder must be copied whole");
  }
  if (!file.is_regular()) {
    Throw(StatusCode::kIoError, oga::Field{path}, what, " is ", file.kind(), "; it must be a file");
  }
  if (file.size_bytes() >= extent.end_bytes) return;
  Throw(StatusCode::kModelError, oga::Field{path}, what, " is incomplete: it has ", file.size_bytes(),
        " bytes, and tensor ", Quoted(extent.tensor), " ends at byte ", extent.end_bytes,
        "; copy, download or convert it again");
}

}  // namespace

OnnxFileBytes CheckOnnxFiles(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const Extents extents = ReadExtents(path);
  OnnxFileBytes bytes{.graph = extents.graph_bytes};
  for (const auto& [location, extent] : extents.by_location) {
    CheckWeightsFile(path, folder + location, extent);
    bytes.external += std::min(extent.used_bytes, extent.end_bytes);  // tensors may share a place
  }
  return bytes;
}

}  // namespace oga
