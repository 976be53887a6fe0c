// The bytes of a text file of a model folder, or a refusal that names the full path and the reason.
#pragma once

#include <cstddef>
#include <string>

namespace oga {

struct FileKind {
  size_t max_bytes;    // a larger file is refused: it is something else
  const char* noun;    // "config": what a file of this kind is
  const char* remedy;  // what to do when it does not exist
};

// Throws Error{kNotFound} when the file does not exist and Error{kIoError} when it cannot be read, is no regular file
// or is too large.
std::string ReadFile(const std::string& path, const FileKind& kind);

// Whether something of that name is there, be it a file or not: a dangling link is an error of its reader, not absence.
bool FileExists(const std::string& path);

// Throws the same errors when `folder` is no folder. `expected` is the file that makes it a model folder.
void CheckFolder(const std::string& folder, const char* expected);

}  // namespace oga
