#include "ort/library.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/platform_library.h"
#include "base/printable_text.h"
#include "base/shared_library.h"
#include "ort/abi.h"

namespace oga::ort {

namespace {

constexpr const char* kRemedy =
    "; install a runtime with pip install 'oga[cpu]', or set OGA_ORT_LIBRARY to the path of a libonnxruntime.so";

std::string Wanted() { return Message("oga needs ", kMinimumMajor, '.', kMinimumMinor, " or newer"); }

// A name without a slash is the system loader's to find, so only a path can be known to be missing.
bool IsMissingFile(const std::string& path) {
  std::error_code ignored;
  return path.find('/') != std::string::npos && !std::filesystem::exists(path, ignored);
}

std::shared_ptr<const abi::Api> ReadTable(const void* const* table) {
  auto api = std::make_shared<abi::Api>();
#define OGA_ORT_READ(slot, Result, Name, Parameters) \
  api->Name = reinterpret_cast<decltype(api->Name)>(const_cast<void*>(table[slot]));
  OGA_ORT_SLOTS(OGA_ORT_READ)
#undef OGA_ORT_READ
  return api;
}

// `opened` is what was found at `path`.
Library CheckLibrary(const SharedLibrary& opened, const std::string& path, const std::string& origin) {
  const std::string where = Message(Printable(path), " (", origin, ")");
  void* const symbol = opened.Find("OrtGetApiBase");
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
  Library library{nullptr, version, PathOfSymbol(symbol, path), Message("onnxruntime ", version)};
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

// A candidate nobody asked for by name. Returns false, with the reason added to `tried`, when it is unusable.
bool TryImplicit(const SharedLibrary& opened, const std::string& name, const std::string& origin,
                 const std::string& reason, Library* library, std::vector<std::string>* tried) {
  if (!opened) {
    tried->push_back(Message(Printable(name), " (", origin, "): ", reason));
    return false;
  }
  try {
    *library = CheckLibrary(opened, name, origin);
    return true;
  } catch (const Error& error) {
    tried->push_back(error.message());
    return false;
  }
}

Library FindImplicit() {
  Library library;
  std::vector<std::string> tried;
  std::string reason;
  const auto is_loaded = [&](const std::string& name) {
    const SharedLibrary opened = SharedLibrary::FindLoaded(name, &reason);
    return TryImplicit(opened, name, "already loaded in the process", reason, &library, &tried);
  };
  const auto is_installed = [&](const std::string& name) {
    const SharedLibrary opened = SharedLibrary::Open(name, &reason);
    return TryImplicit(opened, name, "system loader", reason, &library, &tried);
  };
  const std::string names[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
  if (is_loaded(names[0]) || is_loaded(names[1])) return library;
  const std::string mapped = platform::FindMappedFile(names[1]);
  if (!mapped.empty() && is_loaded(mapped)) return library;
  if (is_installed(names[0]) || is_installed(names[1])) return library;
  std::string list;
  for (const std::string& line : tried) list += "\n  " + line;
  Throw(StatusCode::kNotFound, "no usable ONNX Runtime was found: ", Wanted(), kRemedy,
        ". OGA_ORT_LIBRARY is not set and no path was given; tried:", list);
}

// Leaked on purpose: sessions may be released while static objects are being destroyed.
ChosenLibrary<Library>& Choice() {
  static auto* const choice = new ChosenLibrary<Library>("OGA_ORT_LIBRARY", "the first model is created");
  return *choice;
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
  std::string reason;
  const SharedLibrary opened = SharedLibrary::Open(path, &reason);
  if (!opened) {
    Throw(StatusCode::kIoError, Field{path}, "cannot load the ONNX Runtime library ", Printable(path), " (", origin,
          "): ", reason, ". ", Wanted(), kRemedy);
  }
  return CheckLibrary(opened, path, origin);
}

Library FindLibrary(const LibrarySearch& search) {
  if (!search.environment_path.empty()) return OpenLibrary(search.environment_path, "from OGA_ORT_LIBRARY");
  if (!search.api_path.empty()) return OpenLibrary(search.api_path, "from OgaSetOrtLibrary");
  return FindImplicit();
}

void SetLibraryPath(const std::string& path) { Choice().Choose(path); }

const Library& LoadedLibrary() {
  return Choice().Get([](const std::string& environment_path, const std::string& api_path) {
    Library library = FindLibrary({environment_path, api_path});
    log::Info(Message("using ", library.name, " from ", library.path));
    return library;
  });
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
