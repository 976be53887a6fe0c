#include "base/platform_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace oga::platform {

namespace {

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISREG(mode)) return "a file";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

std::string SystemReason(int error) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 32))
  if (const char* description = ::strerrordesc_np(error)) return description;
#endif
  return std::generic_category().message(error);
}

const char* KindOfPath(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? KindOf(status.st_mode) : "nothing";
}

InputFile::InputFile(const std::string& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  struct stat status;
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    error_ = errno;
    return;
  }
  kind_ = KindOf(status.st_mode);
  is_regular_ = S_ISREG(status.st_mode);
  size_bytes_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool InputFile::is_missing() const { return error_ == ENOENT; }

ptrdiff_t InputFile::ReadAt(uint64_t offset, void* data, size_t bytes) {
  for (;;) {
    const ssize_t count = ::pread(descriptor_, data, bytes, static_cast<off_t>(offset));
    if (count >= 0) return count;
    if (errno == EINTR) continue;
    error_ = errno;
    return -1;
  }
}

}  // namespace oga::platform
