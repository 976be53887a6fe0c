#include "capi/boundary.h"
#include "grammar/grammar_library.h"
#include "kernels/simd/cpu_isa.h"
#include "ort/environment.h"
#include "ort/library.h"
#include "text/extensions.h"

using oga::capi::Guard;
using oga::capi::NewString;
using oga::capi::RequireOut;

uint32_t OGA_API_CALL OgaGetApiVersion(void) { return OGA_API_VERSION; }

OgaResult* OGA_API_CALL OgaSetOrtLibrary(const char* path) {
  return Guard([&] { oga::ort::SetLibraryPath(path == nullptr ? "" : path); });
}

OgaResult* OGA_API_CALL OgaSetLlguidanceLibrary(const char* path) {
  return Guard([&] { oga::grammar::SetLibraryPath(path == nullptr ? "" : path); });
}

OgaResult* OGA_API_CALL OgaGetLlguidanceVersion(const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    *out = oga::capi::NewString(oga::grammar::LibraryVersion());
  });
}

OgaResult* OGA_API_CALL OgaSetOrtExtensionsLibrary(const char* path) {
  return Guard([&] { oga::SetExtensionsPath(path == nullptr ? "" : path); });
}

OgaResult* OGA_API_CALL OgaGetOrtVersion(const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    *out = NewString(oga::ort::VersionString());
  });
}

OgaResult* OGA_API_CALL OgaGetCpuIsa(const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    *out = NewString(oga::kernels::CpuIsaName(oga::kernels::SelectedCpuIsa()));
  });
}

void OGA_API_CALL OgaShutdown(void) { oga::ort::Shutdown(); }
