// The ONNX Runtime shared library: where it is looked for, what makes one unusable, and the one in use.
//
// Any thread. A loaded library is never unloaded: its code must outlive every session, allocator and log callback.
#pragma once

#include <memory>
#include <string>

namespace oga::ort {

namespace abi {
struct Api;
}

// The oldest release whose operators and behaviour liboga is tested with. The table that liboga reads exists in older
// ones too, so the version string decides.
inline constexpr int kMinimumMajor = 1;
inline constexpr int kMinimumMinor = 23;

// A runtime that was opened and found usable.
struct Library {
  std::shared_ptr<const abi::Api> api;
  std::string version;  // "1.23.0"
  std::string path;     // of the file, absolute where the loader tells
  std::string name;     // "onnxruntime 1.23.0"

  // Whether this is release `major`.`minor` or a later one.
  bool IsAtLeast(int major, int minor) const;
};

// Where a runtime may come from; an empty path is not given.
struct LibrarySearch {
  std::string environment_path;  // OGA_ORT_LIBRARY
  std::string api_path;          // OgaSetOrtLibrary
};

// Opens the library at `path` and checks it. `origin` says in errors where the path came from. Throws Error: kNotFound
// for a missing file, kIoError for one that is not a runtime, kUnsupported for one that is too old.
Library OpenLibrary(const std::string& path, const std::string& origin);

// Opens the runtime that the search order yields. A path that was given is final, so that a mistake in it shows;
// without one, the runtime already loaded in the process, then the system loader. Throws Error listing every candidate
// tried.
Library FindLibrary(const LibrarySearch& search);

// Remembers the path that OgaSetOrtLibrary gives; "" forgets it. Throws Error{kInvalidState} when a runtime is in use
// from another path.
void SetLibraryPath(const std::string& path);

// The runtime in use; found and opened by the first call. A failed search is repeated by the next call.
const Library& LoadedLibrary();

// The function table of the runtime in use.
const abi::Api& Api();

// "1.32.0 (/path/libonnxruntime.so.1.32.0)".
std::string VersionString();

}  // namespace oga::ort
