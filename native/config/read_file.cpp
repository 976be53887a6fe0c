#include "config/read_file.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/platform_file.h"
#include "base/printable_text.h"

namespace oga {

namespace {

[[noreturn]] void ThrowOpenError(const std::string& path, const FileKind& kind, const platform::InputFile& file) {
  if (file.is_missing()) {
    std::error_code ignored;
    const std::filesystem::path target = std::filesystem::read_symlink(path, ignored);
    if (!target.empty()) {
      Throw(StatusCode::kNotFound, Field{path}, Quoted(path), " is a link to ", Quoted(target.native()),
            ", which does not exist");
    }
    Throw(StatusCode::kNotFound, Field{path}, Quoted(path), " does not exist; ", kind.remedy);
  }
  Throw(StatusCode::kIoError, Field{path}, Quoted(path), " cannot be opened: ", file.reason());
}

}  // namespace

std::string ReadFile(const std::string& path, const FileKind& kind) {
  platform::InputFile file(path);
  if (!file.is_open()) ThrowOpenError(path, kind, file);
  if (!file.is_regular()) {
    Throw(StatusCode::kIoError, Field{path}, Quoted(path), " is ", file.kind(), "; it must be a file");
  }
  std::string bytes;
  char chunk[16384];
  while (const ptrdiff_t count = file.ReadAt(bytes.size(), chunk, sizeof(chunk))) {
    if (count < 0) Throw(StatusCode::kIoError, Field{path}, Quoted(path), " cannot be read: ", file.reason());
    bytes.append(chunk, static_cast<size_t>(count));
    if (bytes.size() > kind.max_bytes) {
      Throw(StatusCode::kIoError, Field{path}, Quoted(path), " is larger than ", kind.max_bytes >> 20,
            " MiB; it is no ", kind.noun);
    }
  }
  return bytes;
}

bool FileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

void CheckFolder(const std::string& folder, const char* expected) {
  std::error_code failure;
  const auto status = std::filesystem::status(folder, failure);
  if (failure == std::errc::no_such_file_or_directory) {
    Throw(StatusCode::kNotFound, Field{folder}, "model folder ", Quoted(folder), " does not exist; check the path");
  }
  if (failure) {
    Throw(StatusCode::kIoError, Field{folder}, "model folder ", Quoted(folder),
          " cannot be opened: ", platform::SystemReason(failure.value()));
  }
  if (!std::filesystem::is_directory(status)) {
    Throw(StatusCode::kIoError, Field{folder}, "model folder ", Quoted(folder), " is ", platform::KindOfPath(folder),
          "; give the folder that holds ", expected);
  }
}

}  // namespace oga
