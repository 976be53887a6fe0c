#include "onnx/protobuf_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

namespace {

constexpr size_t kWindowBytes = 64 * 1024;
constexpr uint64_t kMaxTextBytes = 1 << 20;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

}  // namespace

ProtobufReader::ProtobufReader(const std::string& path) : path_(path) {
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file_ < 0 || fstat(file_, &status) != 0) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    Throw(error == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError, oga::Field{path}, "cannot open the graph ",
          Printable(path), ": ", std::string(std::strerror(error)));
  }
  size_bytes_ = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode)) {
    close(file_);
    Throw(StatusCode::kIoError, oga::Field{path}, "cannot open the graph ", Printable(path), ": it is not a file");
  }
}

ProtobufReader::~ProtobufReader() { close(file_); }

void ProtobufReader::ThrowBroken(const char* why) const {
  Throw(StatusCode::kModelError, oga::Field{path_}, Printable(path_), " is not a whole ONNX file: ", why, " at byte ",
        offset_, " of ", size_bytes_, "; copy, download or convert it again");
}

uint8_t ProtobufReader::Byte(uint64_t end) {
  if (offset_ >= end || offset_ >= size_bytes_) ThrowBroken("it breaks off");
  if (offset_ < window_begin_ || offset_ >= window_begin_ + window_.size()) {
    window_.resize(kWindowBytes);
    const ssize_t read = pread(file_, window_.data(), window_.size(), static_cast<off_t>(offset_));
    if (read <= 0) {
      Throw(StatusCode::kIoError, oga::Field{path_}, "cannot read the graph ", Printable(path_), ": ",
            read == 0 ? "it became shorter" : std::strerror(errno));
    }
    window_.resize(static_cast<size_t>(read));
    window_begin_ = offset_;
  }
  return window_[offset_++ - window_begin_];
}

uint64_t ProtobufReader::Varint(uint64_t end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = Byte(end);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  ThrowBroken("there is no number");
}

std::optional<ProtobufReader::Field> ProtobufReader::Next(uint64_t end) {
  if (offset_ == end) return std::nullopt;
  const uint64_t tag = Varint(end);
  Field field;
  field.number = static_cast<uint32_t>(tag >> 3);
  uint64_t length = 0;
  switch (tag & 7) {
    case kVarint: field.number_value = Varint(end); return field;
    case kFixed64: length = 8; break;
    case kFixed32: length = 4; break;
    case kLengthDelimited:
      length = Varint(end);
      field.has_content = true;
      break;
    default: ThrowBroken("there is no field");
  }
  if (field.number == 0) ThrowBroken("there is no field");
  if (length > end - offset_) ThrowBroken("a field is longer than the rest");
  field.begin = offset_;
  field.end = offset_ + length;
  offset_ = field.end;
  return field;
}

std::string ProtobufReader::Text(const Field& field) {
  if (field.end - field.begin > kMaxTextBytes) ThrowBroken("a name is too long");
  const uint64_t resume = offset_;
  std::string text;
  Seek(field.begin);
  while (offset_ < field.end) text += static_cast<char>(Byte(field.end));
  Seek(resume);
  return text;
}

}  // namespace oga
