// llguidance, through the C functions that its installed Python package exports.
//
// Any thread. base/shared_library.h says how the extension module of a Python package is found and opened. None of the
// functions used needs an interpreter or its lock.
#pragma once

#include <string>

#include "grammar/llguidance_abi.h"

namespace oga::grammar {

// Remembers the path that the host gives; "" forgets it. The environment variable OGA_LLGUIDANCE_LIBRARY wins over it.
// Throws Error{kInvalidState} when a library is in use from another path.
void SetLibraryPath(const std::string& path);

// The functions of the library, loaded by the first call. Throws Error{kUnsupported} when no usable one is found,
// naming what to install and what to set.
const LlgFunctions& Library();

// "1.9.1 (/path/_lib.abi3.so)". Loads the library as Library does.
std::string LibraryVersion();

}  // namespace oga::grammar
