/* OgaRequest: one sequence, all its turns, tokens and state; and OgaRequestOptions. */
#ifndef OGA_REQUEST_H_
#define OGA_REQUEST_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Creates a reusable option set; everything unset.
 *
 * :param out: own; free with OgaDestroyRequestOptions
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateRequestOptions(OgaRequestOptions** out);

/** Frees an option set. NULL is accepted. */
OGA_EXPORT void OGA_API_CALL OgaDestroyRequestOptions(OgaRequestOptions* options);

/**
 * Limits the whole sequence: prompt, output and continuations of all turns.
 *
 * :param max_session_tokens: 0 unsets; the default is min(search.max_length, the engine's maximum request length). A
 *     value above the engine's maximum is refused by OgaEngineCreateRequest.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestOptionsSetMaxSessionTokens(OgaRequestOptions* options,
                                                                        uint64_t max_session_tokens);

/**
 * Sets who goes first when not everybody can: higher first, ties by arrival. It never starves the others.
 *
 * :param priority: default 0
 *
 * Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestOptionsSetPriority(OgaRequestOptions* options, int32_t priority);

/**
 * Isolates requests from one another in the prefix cache: only requests with the same salt share cached beginnings, so
 * that nobody can tell from timing what somebody else has asked.
 *
 * :param cache_salt: default 0
 *
 * Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestOptionsSetCacheSalt(OgaRequestOptions* options, uint64_t cache_salt);

/**
 * Starts a turn: appends input to the sequence and queues it.
 *
 * Legal before the first turn and after a completed one whose events are all drained.
 *
 * :param turn_options: NULL for the model's defaults; options of this request; copied
 * :param input_ids: token ids in [0, vocabulary size); copied
 * :param input_ids_count: at least 1, and leaving room for one generated token under the session limit
 * :param out_turn_id: 1, 2, 3 ... within the request; 0 when the call fails
 *
 * InvalidArgument or InvalidState name what was found and wanted; a refused call changes nothing. Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestBeginTurn(OgaRequest* request, const OgaTurnOptions* turn_options,
                                                       const int32_t* input_ids, uint64_t input_ids_count,
                                                       uint64_t* out_turn_id);

/**
 * Ends the named turn if it is still live; it gets one event with OgaFinishReason_Cancelled. The input it accepted and
 * the tokens it generated stay part of the sequence.
 *
 * :param out_cancelled: false when the id is stale, unknown or already finished; untouched on an error
 *
 * InvalidState before the first turn and on a closed request. Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestCancelTurn(OgaRequest* request, uint64_t turn_id, bool* out_cancelled);

/**
 * Removes a completed turn and every later one from the sequence. Ids are never reused.
 *
 * InvalidState while a turn is live or an event of the request is undrained; NotFound for an id that is not there.
 * Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestRewindToStartOfTurn(OgaRequest* request, uint64_t turn_id);

/**
 * Creates a second request with the same sequence and the same session limit and priority. Its turn ids continue where
 * this request's stand; both then go their own ways. Cached blocks are shared and copied only when one of the two
 * writes. Turns without a seed of their own draw differently in the two.
 *
 * :param out: own; free with OgaDestroyRequest
 *
 * InvalidState before the first turn, while a turn is live, while an event is undrained, and after a failed turn. Owner
 * thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestFork(OgaRequest* request, OgaRequest** out);

/**
 * Ends the request in any state: its undrained events vanish and its cache is free at once. Idempotent; legal on an
 * unhealthy engine and after the engine is gone. Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestClose(OgaRequest* request);

/**
 * Releases the handle. A request that is still open is abandoned: the engine reclaims it at its next boundary. NULL is
 * accepted. Any thread.
 */
OGA_EXPORT void OGA_API_CALL OgaDestroyRequest(OgaRequest* request);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_REQUEST_H_ */
