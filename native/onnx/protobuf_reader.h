// Walks the fields of a protobuf file without loading it: only what a graph's weights refer to is looked at, and the
// weights themselves, which may be gigabytes, are stepped over.
//
// Owned by one check; the file stays open as long as the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/platform_file.h"

namespace oga {

class ProtobufReader {
 public:
  // Opens `path`. Throws Error: kNotFound, kIoError.
  explicit ProtobufReader(const std::string& path);

  struct Field {
    uint32_t number = 0;
    bool has_content = false;  // length-delimited
    uint64_t begin = 0;        // its bytes in the file
    uint64_t end = 0;
    uint64_t number_value = 0;  // of a number of variable length
  };

  // The next field of the message that ends at `end`, or nothing at its end. Throws Error{kModelError} where the bytes
  // stop making sense.
  std::optional<Field> Next(uint64_t end);

  // Calls visit(field) for every field of the message in [begin, end).
  template <typename Visit>
  void ForEachField(uint64_t begin, uint64_t end, const Visit& visit) {
    Seek(begin);
    while (const auto field = Next(end)) {
      visit(*field);
      if (field->has_content) Seek(field->end);
    }
  }

  // Continues reading at `offset`; Next steps over contents by itself.
  void Seek(uint64_t offset) { offset_ = offset; }

  std::string Text(const Field& field);

  uint64_t size_bytes() const { return file_.size_bytes(); }

 private:
  uint8_t Byte(uint64_t end);
  uint64_t Varint(uint64_t end);
  [[noreturn]] void ThrowBroken(const char* why) const;

  std::string path_;
  platform::InputFile file_;
  uint64_t offset_ = 0;
  std::vector<uint8_t> window_;  // the bytes of the file from window_begin_ on
  uint64_t window_begin_ = 0;
};

}  // namespace oga
