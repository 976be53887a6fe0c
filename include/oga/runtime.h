/* The library itself: its version, the ONNX Runtime it drives, and its end. */
#ifndef OGA_RUNTIME_H_
#define OGA_RUNTIME_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** The API version these headers describe, as OgaGetApiVersion returns it. */
#define OGA_API_VERSION ((uint32_t)((0u << 16) | 1u))

/** The API version of the loaded library: major in the upper 16 bits, minor in the lower. Any thread. Since 0.1. */
OGA_EXPORT uint32_t OGA_API_CALL OgaGetApiVersion(void);

/**
 * Names the ONNX Runtime shared library to load, before the first model is created.
 *
 * The environment variable OGA_ORT_LIBRARY wins over this path; without either, a runtime already loaded in the process
 * is used, then the system loader is asked for libonnxruntime.so.
 *
 * :param path: a file path; NULL or "" forgets an earlier one
 *
 * InvalidState when a runtime is already in use from another path. Any thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetOrtLibrary(const char* path);

/**
 * Names the library of onnxruntime-extensions that OgaTokenizerApplyChatTemplate uses: the file _extensions_pydll*.so
 * inside the installed Python package of that name. Nothing else needs it.
 *
 * The environment variable OGA_ORTX_LIBRARY wins over this path. The file is opened when it is first needed. It refers
 * to libpython: outside Python, the libpython it was built for is opened before it when the system has one.
 *
 * :param path: a file path; NULL or "" forgets an earlier one
 *
 * InvalidState when one is already in use from another path. Any thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetOrtExtensionsLibrary(const char* path);

/**
 * Names the library of llguidance that grammars use: the extension module (_lib*.so) of the installed Python package
 * `llguidance`. NULL or an empty path forgets an earlier name. The environment variable OGA_LLGUIDANCE_LIBRARY wins over it.
 *
 * The library refers to libpython. Inside Python it is there; in another host a libpython is opened before it when the
 * system has one, and the error of the first guided turn says what is missing when not.
 *
 * InvalidState when one is already in use from another path. Any thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetLlguidanceLibrary(const char* path);

/**
 * The version and path of the llguidance in use, as "1.8.0 (/path/_lib.abi3.so)". Loads it when it is not loaded yet.
 *
 * :param out: own; free with OgaDestroyString
 *
 * Unsupported when no usable one is found, naming what to install. Any thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaGetLlguidanceVersion(const char** out);

/**
 * The version string and file path of the ONNX Runtime in use, as "1.23.0 (/path/libonnxruntime.so)". Loads it when it
 * is not loaded yet.
 *
 * :param out: own; free with OgaDestroyString
 *
 * NotFound, Unsupported or IoError when no usable runtime is found, naming what was tried. Any thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaGetOrtVersion(const char** out);

/**
 * The instruction set that the kernels use: "portable", "avx2", "avx512" ... It is the best of this machine, unless the
 * environment variable OGA_CPU_ISA names another one.
 *
 * :param out: own; free with OgaDestroyString
 *
 * InvalidArgument or Unsupported when OGA_CPU_ISA names one that is not known or that this machine does not run, listing
 * those it does. Any thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaGetCpuIsa(const char** out);

/**
 * Releases process-wide state (the ONNX Runtime environment). Optional, idempotent, and legal before any use; the
 * library can be used again afterwards. State still needed by live models is released with the last of them.
 *
 * Any thread.
 */
OGA_EXPORT void OGA_API_CALL OgaShutdown(void);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_RUNTIME_H_ */
