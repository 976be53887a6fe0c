#include "base/platform_library.h"

#include <dlfcn.h>

#include <fstream>

namespace oga::platform {

namespace {

int FlagsOf(LibraryScope scope) {
  switch (scope) {
    case LibraryScope::kLocal: break;
    case LibraryScope::kGlobal: return RTLD_NOW | RTLD_GLOBAL;
    case LibraryScope::kLoadedOnly: return RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD;
  }
  return RTLD_NOW | RTLD_LOCAL;
}

}  // namespace

void* OpenLibrary(const std::string& path, LibraryScope scope, std::string* reason) {
  void* const library = dlopen(path.c_str(), FlagsOf(scope));
  if (library == nullptr && reason != nullptr) {
    const char* const words = scope == LibraryScope::kLoadedOnly ? "not loaded" : dlerror();
    *reason = words == nullptr ? "unknown reason" : words;
  }
  return library;
}

void* FindSymbol(void* library, const char* name) { return dlsym(library, name); }

std::string FileOfSymbol(void* symbol) {
  Dl_info info;
  return dladdr(symbol, &info) == 0 || info.dli_fname == nullptr ? std::string() : std::string(info.dli_fname);
}

std::string FindMappedFile(const std::string& name_begin) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path_start = line.find('/');
    if (path_start == std::string::npos) continue;
    const std::string path = line.substr(path_start);
    if (path.compare(path.rfind('/') + 1, name_begin.size(), name_begin) == 0) return path;
  }
  return {};
}

}  // namespace oga::platform
