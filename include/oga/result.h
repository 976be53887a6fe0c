/* OgaResult: why a call failed. */
#ifndef OGA_RESULT_H_
#define OGA_RESULT_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * What kind of failure an OgaResult reports. A fixed-width integer; the values never change.
 *
 * Separate from OgaErrorCode, which an engine event carries.
 */
typedef uint32_t OgaStatusCode;

#define OgaStatusCode_Ok ((OgaStatusCode)0)
#define OgaStatusCode_InvalidArgument ((OgaStatusCode)1)
#define OgaStatusCode_InvalidState ((OgaStatusCode)2)
#define OgaStatusCode_NotFound ((OgaStatusCode)3)
#define OgaStatusCode_Unsupported ((OgaStatusCode)4)
#define OgaStatusCode_ResourceExhausted ((OgaStatusCode)5)
#define OgaStatusCode_IoError ((OgaStatusCode)6)
#define OgaStatusCode_ModelError ((OgaStatusCode)7)
#define OgaStatusCode_EngineUnhealthy ((OgaStatusCode)8)
#define OgaStatusCode_OutOfMemory ((OgaStatusCode)9)
#define OgaStatusCode_Internal ((OgaStatusCode)10)

/**
 * The sentence that describes the failure: what was found, what was wanted, what to do.
 *
 * :param result: a failed result; NULL gives an empty string
 * :return: borrow, until OgaDestroyResult
 *
 * Any thread.
 */
OGA_EXPORT const char* OGA_API_CALL OgaResultGetError(const OgaResult* result);

/**
 * The kind of failure, for programs.
 *
 * :param result: a failed result; NULL gives OgaStatusCode_Ok
 *
 * Any thread. Since 0.1.
 */
OGA_EXPORT OgaStatusCode OGA_API_CALL OgaResultGetCode(const OgaResult* result);

/**
 * What the failure is about, for programs: the option, config key, argument or file, in the host's spelling ("top_p",
 * "engine.dynamic_batching.num_blocks", "tokens", a path).
 *
 * :param result: a failed result; NULL gives an empty string
 * :return: borrow, until OgaDestroyResult; empty when the failure is about none of these, or about several
 *
 * Any thread. Since 0.1.
 */
OGA_EXPORT const char* OGA_API_CALL OgaResultGetField(const OgaResult* result);

/** Frees a result. NULL is accepted. Any thread. */
OGA_EXPORT void OGA_API_CALL OgaDestroyResult(OgaResult* result);

/** Frees a string that a function returned as owned. NULL is accepted. Any thread. */
OGA_EXPORT void OGA_API_CALL OgaDestroyString(const char* string);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_RESULT_H_ */
