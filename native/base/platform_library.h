// The system's loader of shared libraries. Handles are opaque, and never closed. Any thread.
#pragma once

#include <string>

namespace oga::platform {

enum class LibraryScope {
  kLocal,       // its symbols are found through its handle only
  kGlobal,      // libraries that are loaded later may refer to its symbols
  kLoadedOnly,  // nothing is loaded: the handle of a library that the process has, or null
};

// Opens the file at `path`, or finds a bare name where the system looks for libraries. Null on failure, with the
// loader's words in `reason` (which may be null).
void* OpenLibrary(const std::string& path, LibraryScope scope, std::string* reason);

// The address of a symbol of the library, or null.
void* FindSymbol(void* library, const char* name);

// The file that defines the symbol at this address; empty when the loader does not know.
std::string FileOfSymbol(void* symbol);

// The path of a mapped file whose name begins so, or empty.
std::string FindMappedFile(const std::string& name_begin);

}  // namespace oga::platform
