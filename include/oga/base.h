/* What every oga header needs: calling convention, export macro, opaque handles.
 *
 * Conventions of the whole C API, stated once:
 *
 * - A function that can fail returns `OgaResult*`: NULL is success, anything else is an error object that the caller
 *   owns, reads with OgaResultGetError and OgaResultGetCode, and frees with OgaDestroyResult.
 * - "own": the caller must release it with the Destroy function named. "borrow": valid only as long as stated; never
 *   destroyed by the caller.
 * - Every Destroy function accepts NULL. Strings are UTF-8 and NUL-terminated. Inputs are copied in the call.
 * - Passing NULL where a handle or an out-pointer is required is an error naming the parameter, never a crash.
 * - The thread that creates an OgaEngine owns it. Unless a function says otherwise, a call on an engine, its requests,
 *   turn options or event buffers from another thread fails with OgaStatusCode_InvalidState and changes nothing.
 *   Handles that belong to no engine (configs, option sets, sequences, string arrays, tokenizers and their streams) may
 *   be used from any one thread at a time; models from any thread.
 * - No exception and no signal crosses this boundary.
 * - New nouns have one style. A value is read by `OgaResult* OgaNounGetThing(const OgaNoun* noun, Type* out)`, which
 *   writes a neutral value to `out` before it can fail, and set by `OgaResult* OgaNounSetThing(OgaNoun* noun, Type
 *   value)`, which keeps the old value when it refuses the new one. A list goes as a pointer and a count, text as a
 *   NUL-terminated string; a list that is read is borrowed, a string that is made is owned. Functions that return their
 *   value itself are older: their nouns cannot be refused (OgaResultGetCode, OgaEngineEventBufferGetCount).
 */
#ifndef OGA_BASE_H_
#define OGA_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define OGA_API_CALL __stdcall
#if defined(OGA_BUILDING_LIBRARY)
#define OGA_EXPORT __declspec(dllexport)
#else
#define OGA_EXPORT __declspec(dllimport)
#endif
#else
#define OGA_API_CALL
#define OGA_EXPORT __attribute__((visibility("default")))
#endif

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct OgaResult OgaResult;
typedef struct OgaConfig OgaConfig;
typedef struct OgaModel OgaModel;
typedef struct OgaEngine OgaEngine;
typedef struct OgaEngineCapabilities OgaEngineCapabilities;
typedef struct OgaEngineStatistics OgaEngineStatistics;
typedef struct OgaEngineEventBuffer OgaEngineEventBuffer;
typedef struct OgaEngineEvent OgaEngineEvent;
typedef struct OgaTurnUsage OgaTurnUsage;
typedef struct OgaRequest OgaRequest;
typedef struct OgaRequestOptions OgaRequestOptions;
typedef struct OgaTurnOptions OgaTurnOptions;
typedef struct OgaSequences OgaSequences;
typedef struct OgaStringArray OgaStringArray;
typedef struct OgaTokenizer OgaTokenizer;
typedef struct OgaTokenizerStream OgaTokenizerStream;

#if defined(__cplusplus)
}
#endif

#endif /* OGA_BASE_H_ */
