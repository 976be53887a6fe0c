/* OgaEngineEventBuffer: where a run puts its events. */
#ifndef OGA_EVENT_BUFFER_H_
#define OGA_EVENT_BUFFER_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Creates a buffer bound for life to one engine. All its storage is allocated here.
 *
 * :param capacity: the most events one run may hand out through it; 0 is legal
 * :param out: own; free with OgaDestroyEngineEventBuffer. NULL when the call fails.
 *
 * InvalidArgument for a capacity above 1,048,576. Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateEngineEventBuffer(OgaEngine* engine, size_t capacity,
                                                              OgaEngineEventBuffer** out);

/** Frees a buffer and ends its event views. NULL is accepted; legal after the engine is gone. */
OGA_EXPORT void OGA_API_CALL OgaDestroyEngineEventBuffer(OgaEngineEventBuffer* buffer);

/** The number of events the last run put here. NULL gives 0. Not while a run on this buffer is in progress. */
OGA_EXPORT size_t OGA_API_CALL OgaEngineEventBufferGetCount(const OgaEngineEventBuffer* buffer);

/**
 * One event of the last run.
 *
 * :return: borrow, until the next accepted run on this buffer or its end; NULL when `index` is out of range
 */
OGA_EXPORT const OgaEngineEvent* OGA_API_CALL OgaEngineEventBufferGet(const OgaEngineEventBuffer* buffer, size_t index);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_EVENT_BUFFER_H_ */
