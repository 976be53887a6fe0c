#include "config/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// The system's words for an error number, in English whatever the locale is.
std::string SystemReason(int error) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 32))
  if (const char* description = ::strerrordesc_np(error)) return description;
#endif
  return std::generic_category().message(error);
}

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISREG(mode)) return "a file";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void ThrowOpenError(const std::string& path, const FileKind& kind, int error) {
  if (error == ENOENT) {
    std::error_code ignored;
    const std::filesystem::path target = std::filesystem::read_symlink(path, ignored);
    if (!target.empty()) {
      Throw(StatusCode::kNotFound, Field{path}, Quoted(path), " is a link to ", Quoted(target.native()),
            ", which does not exist");
    }
    Throw(StatusCode::kNotFound, Field{path}, Quoted(path), " does not exist; ", kind.remedy);
  }
  Throw(StatusCode::kIoError, Field{path}, Quoted(path), " cannot be opened: ", SystemReason(error));
}

std::string ReadAll(const FileDescriptor& file, const std::string& path, const FileKind& kind) {
  std::string bytes;
  char chunk[16384];
  while (true) {
    const ssize_t count = ::read(file.get(), chunk, sizeof(chunk));
    if (count == 0) return bytes;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Throw(StatusCode::kIoError, Field{path}, Quoted(path), " cannot be read: ", SystemReason(errno));
    bytes.append(chunk, static_cast<size_t>(count));
    if (bytes.size() > kind.max_bytes) {
      Throw(StatusCode::kIoError, Field{path}, Quoted(path), " is larger than ", kind.max_bytes >> 20,
            " MiB; it is no ", kind.noun);
    }
  }
}

}  // namespace

std::string ReadFile(const std::string& path, const FileKind& kind) {
  // Non-blocking, so that a pipe in the file's place is refused instead of waited for.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) ThrowOpenError(path, kind, errno);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) ThrowOpenError(path, kind, errno);
  if (!S_ISREG(status.st_mode)) {
    Throw(StatusCode::kIoError, Field{path}, Quoted(path), " is ", KindOf(status.st_mode), "; it must be a file");
  }
  return ReadAll(file, path, kind);
}

bool FileExists(const std::string& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

void CheckFolder(const std::string& folder, const char* expected) {
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0) {
    const int error = errno;
    if (error == ENOENT) {
      Throw(StatusCode::kNotFound, Field{folder}, "model folder ", Quoted(folder), " does not exist; check the path");
    }
    Throw(StatusCode::kIoError, Field{folder}, "model folder ", Quoted(folder),
          " cannot be opened: ", SystemReason(error));
  }
  if (!S_ISDIR(status.st_mode)) {
    Throw(StatusCode::kIoError, Field{folder}, "model folder ", Quoted(folder), " is ", KindOf(status.st_mode),
          "; give the folder that holds ", expected);
  }
}

}  // namespace oga
