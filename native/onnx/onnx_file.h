// The files of an ONNX graph, checked before the runtime opens them: its own messages name a file only sometimes, and a
// weights file that was cut short would be noticed late or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace oga {

struct OnnxFileBytes {
  uint64_t graph = 0;     // of the graph's own file
  uint64_t external = 0;  // of the weights that lie in other files

  uint64_t total() const { return graph + external; }
};

// Checks that the graph at `path` is a whole ONNX file and that every file its weights refer to is there and long
// enough. Throws Error naming the full path: kNotFound for a file that is missing, kIoError for one that cannot be
// read, kModelError for one that is not whole. Returns how large they are.
OnnxFileBytes CheckOnnxFiles(const std::string& path);

}  // namespace oga
