#include "ort/library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"
#include "ort/abi.h"

namespace oga::ort {

namespace {

constexpr const char* kRemedy =
    "; install a runtime with pip install 'oga[cpu]', or set OGA_ORT_LIBRARY to the path of a libonnxruntime.so";

std::string Wanted() { return Message("oga needs ", kMinimumMajor, '.', kMinimumMinor, " or newer"); }

std::string AbsolutePath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? std::string(resolved) : path;
}

// A name without a slash is the system loader's to find, so only a path can be known to be missing.
bool IsMissingFile(const std::string& path) {
  struct stat status;
  return path.find('/') != std::string::npos && stat(path.c_str(), &status) != 0;
}

std::string PathOfSymbol(void* symbol, const std::string& fallback) {
  Dl_info info;
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return fallback;
  return AbsolutePath(info.dli_fname);
}

std::shared_ptr<const abi::Api> ReadTable(const void* const* table) {
  auto api = std::make_shared<abi::Api>();
#define OGA_ORT_READ(slot, Result, Name, Parameters) \
  api->Name = reinterpret_cast<decltype(api->Name)>(const_cast<void*>(table[slot]));
  OGA_ORT_SLOTS(OGA_ORT_READ)
#undef OGA_ORT_READ
  return api;
}

// `handle` is what dlopen returned for `path`.
Library CheckLibrary(void* handle, const std::string& path, const std::string& origin) {
  const std::string where = Message(Printable(path), " (", origin, ")");
  void* const symbol = dlsym(handle, "OrtGetApiBase");
  if (symbol == nullptr) {
    Throw(StatusCode::kIoError, Field{path}, where, " is not an ONNX Runtime library: it has no symbol OrtGetApiBase. ",
          Wanted(), kRemedy);
  }
  const abi::ApiBase* const base = reinterpret_cast<abi::GetApiBase>(symbol)();
  const char* const version = base == nullptr ? nullptr : base->GetVersionString();
  if (version == nullptr) {
    Throw(StatusCode::kIoError, Field{path}, where, " is a broken ONNX Runtime: it reports no version. ", Wanted(),
          kRemedy);
  }
  Library library{nullptr, version, PathOfSymbol(symbol, path)};
  if (!library.IsAtLeast(kMinimumMajor, kMinimumMinor)) {
    Throw(StatusCode::kUnsupported, Field{path}, "onnxruntime ", version, " at ", where, " cannot be used: ", Wanted(),
          kRemedy);
  }
  const void* const* const table = base->GetApi(abi::kApiVersion);
  if (table == nullptr) {
    Throw(StatusCode::kUnsupported, Field{path}, "onnxruntime ", version, " at ", where, " does not offer API version ",
          abi::kApiVersion, ", though ", Wanted(), kRemedy);
  }
  library.api = ReadTable(table);
  return library;
}

// The path of a libonnxruntime.so that some part of the process already mapped, or "".
std::string FindMappedLibrary() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path_start = line.find('/');
    if (path_start == std::string::npos) continue;
    const std::string path = line.substr(path_start);
    if (path.compare(path.rfind('/') + 1, 17, "libonnxruntime.so") == 0) return path;
  }
  return {};
}

// A candidate nobody asked for by name. Returns false, with the reason added to `tried`, when it is unusable.
bool TryImplicit(const std::string& name, int extra_flags, const std::string& origin, Library* library,
                 std::vector<std::string>* tried) {
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | extra_flags);
  if (handle == nullptr) {
    const char* const reason = extra_flags == RTLD_NOLOAD ? nullptr : dlerror();
    tried->push_back(
        Message(Printable(name), " (", origin, "): ", reason == nullptr ? "not loaded" : Printable(reason)));
    return false;
  }
  try {
    *library = CheckLibrary(handle, name, origin);
    return true;
  } catch (const Error& error) {
    tried->push_back(error.message());
    return false;
  }
}

Library FindImplicit() {
  Library library;
  std::vector<std::string> tried;
  const std::string in_process = "already loaded in the process";
  for (const char* name : {"libonnxruntime.so.1", "libonnxruntime.so"}) {
    if (TryImplicit(name, RTLD_NOLOAD, in_process, &library, &tried)) return library;
  }
  const std::string mapped = FindMappedLibrary();
  if (!mapped.empty() && TryImplicit(mapped, RTLD_NOLOAD, in_process, &library, &tried)) return library;
  for (const char* name : {"libonnxruntime.so.1", "libonnxruntime.so"}) {
    if (TryImplicit(name, 0, "system loader", &library, &tried)) return library;
  }
  std::string list;
  for (const std::string& line : tried) list += "\n  " + line;
  Throw(StatusCode::kNotFound, "no usable ONNX Runtime was found: ", Wanted(), kRemedy,
        ". OGA_ORT_LIBRARY is not set and no path was given; tried:", list);
}

// The process-wide choice. Leaked on purpose: sessions may be released while static objects are being destroyed.
struct Selection {
  std::mutex mutex;
  std::string api_path;
  std::unique_ptr<const Library> library;
};

Selection& GetSelection() {
  static Selection* const selection = new Selection;
  return *selection;
}

}  // namespace

bool Library::IsAtLeast(int major, int minor) const {
  const char* const end = version.data() + version.size();
  int found_major = 0;
  int found_minor = 0;
  const auto after_major = std::from_chars(version.data(), end, found_major);
  if (after_major.ec != std::errc() || after_major.ptr == end || *after_major.ptr != '.') return false;
  if (std::from_chars(after_major.ptr + 1, end, found_minor).ec != std::errc()) return false;
  return found_major > major || (found_major == major && found_minor >= minor);
}

Library OpenLibrary(const std::string& path, const std::string& origin) {
  if (IsMissingFile(path)) {
    Throw(StatusCode::kNotFound, Field{path}, "the ONNX Runtime library ", Printable(path), " (", origin,
          ") does not exist. ", Wanted(), kRemedy);
  }
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    Throw(StatusCode::kIoError, Field{path}, "cannot load the ONNX Runtime library ", Printable(path), " (", origin,
          "): ", reason == nullptr ? "unknown reason" : Printable(reason), ". ", Wanted(), kRemedy);
  }
  return CheckLibrary(handle, path, origin);
}

Library FindLibrary(const LibrarySearch& search) {
  if (!search.environment_path.empty()) return OpenLibrary(search.environment_path, "from OGA_ORT_LIBRARY");
  if (!search.api_path.empty()) return OpenLibrary(search.api_path, "from OgaSetOrtLibrary");
  return FindImplicit();
}

void SetLibraryPath(const std::string& path) {
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  if (selection.library && !path.empty() && AbsolutePath(path) != selection.library->path) {
    Throw(StatusCode::kInvalidState, Field{"path"}, "onnxruntime ", selection.library->version,
          " is already in use from ", Printable(selection.library->path), ", so ", Printable(path),
          " cannot be used in this process; set the path before the first model is created");
  }
  selection.api_path = path;
}

const Library& LoadedLibrary() {
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  if (!selection.library) {
    const char* const from_environment = std::getenv("OGA_ORT_LIBRARY");
    const LibrarySearch search{from_environment == nullptr ? "" : from_environment, selection.api_path};
    selection.library = std::make_unique<const Library>(FindLibrary(search));
    log::Info(Message("using onnxruntime ", selection.library->version, " from ", selection.library->path));
  }
  return *selection.library;
}

const abi::Api& Api() {
  static const abi::Api& api = *LoadedLibrary().api;
  return api;
}

std::string VersionString() {
  const Library& library = LoadedLibrary();
  return Message(library.version, " (", library.path, ")");
}

}  // namespace oga::ort
