// Files as the operating system has them. What a refusal means is for the caller to say; this has the system's words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace oga::platform {

// The system's words for an error number, in English whatever the locale is.
std::string SystemReason(int error);

// "a file", "a folder", "a pipe", "a socket" or "a device": what stands at a path, without opening it.
const char* KindOfPath(const std::string& path);

// A file that is open for reading, owned by whoever reads it. Opening never waits, so a pipe in a file's place is seen
// for what it is.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();

  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  bool is_open() const { return error_ == 0; }
  bool is_missing() const;  // there is nothing of that name
  // Why it is not open, or why the last read failed.
  std::string reason() const { return SystemReason(error_); }

  // As KindOfPath says it; of an open one.
  const char* kind() const { return kind_; }
  bool is_regular() const { return is_regular_; }
  uint64_t size_bytes() const { return size_bytes_; }

  // Reads up to `bytes` bytes from `offset` on; returns how many, 0 at the end and -1 on failure.
  ptrdiff_t ReadAt(uint64_t offset, void* data, size_t bytes);

 private:
  int descriptor_ = -1;
  int error_ = 0;
  const char* kind_ = "a file";
  bool is_regular_ = false;
  uint64_t size_bytes_ = 0;
};

}  // namespace oga::platform
