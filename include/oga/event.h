/* OgaEngineEvent: what a step tells the host about one request. */
#ifndef OGA_EVENT_H_
#define OGA_EVENT_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Why a turn ended. */
typedef uint32_t OgaFinishReason;

#define OgaFinishReason_None ((OgaFinishReason)0)
#define OgaFinishReason_Eos ((OgaFinishReason)1)
#define OgaFinishReason_StopString ((OgaFinishReason)2)
#define OgaFinishReason_MaxGeneratedTokens ((OgaFinishReason)3)
#define OgaFinishReason_MaxSessionTokens ((OgaFinishReason)4)
#define OgaFinishReason_Cancelled ((OgaFinishReason)5)
#define OgaFinishReason_Failed ((OgaFinishReason)6)

/** What an event carries; a set of bits. */
typedef uint32_t OgaEngineEventFlags;

#define OgaEngineEventFlag_None ((OgaEngineEventFlags)0)
#define OgaEngineEventFlag_Token ((OgaEngineEventFlags)1)
#define OgaEngineEventFlag_TurnFinished ((OgaEngineEventFlags)2)
#define OgaEngineEventFlag_CapacityBlocked ((OgaEngineEventFlags)4)
#define OgaEngineEventFlag_Failed ((OgaEngineEventFlags)8)
#define OgaEngineEventFlag_Retryable ((OgaEngineEventFlags)16)

/**
 * What went wrong, on events with CapacityBlocked, Failed or Retryable.
 *
 * CapacityDeferred: nothing can run for want of cache blocks. ExecutionCapacityExceeded: the model ran out of memory;
 * the step was rolled back and the next ones are smaller. RetryableExecution: the step was rolled back. After these
 * three the engine is healthy; run it again. RequestUnserviceable: this turn cannot be served (it could never fit, its
 * logits are not numbers, or its options leave no token to choose); no other is affected. EngineContractFailure and
 * EngineExecutionFailure: the engine has failed for good and every open turn with it.
 */
typedef uint32_t OgaErrorCode;

#define OgaErrorCode_None ((OgaErrorCode)0)
#define OgaErrorCode_CapacityDeferred ((OgaErrorCode)1)
#define OgaErrorCode_ExecutionCapacityExceeded ((OgaErrorCode)2)
#define OgaErrorCode_RetryableExecution ((OgaErrorCode)3)
#define OgaErrorCode_RequestUnserviceable ((OgaErrorCode)4)
#define OgaErrorCode_EngineContractFailure ((OgaErrorCode)5)
#define OgaErrorCode_EngineExecutionFailure ((OgaErrorCode)6)

/**
 * Why a turn failed, on events whose finish reason is OgaFinishReason_Failed.
 *
 * BadLogits: the model gave this turn logits that are not numbers. NoAllowedToken: its options and grammar leave no
 * token to choose. GrammarFailed: its grammar could not go on. NeverFits: it could never fit the cache. Execution: the
 * model failed for good. Contract: a promise inside the library was broken. After the first four only this turn is
 * affected; after the last two the engine has failed, and every open turn with it.
 */
typedef uint32_t OgaFailureKind;

#define OgaFailureKind_None ((OgaFailureKind)0)
#define OgaFailureKind_BadLogits ((OgaFailureKind)1)
#define OgaFailureKind_NoAllowedToken ((OgaFailureKind)2)
#define OgaFailureKind_GrammarFailed ((OgaFailureKind)3)
#define OgaFailureKind_NeverFits ((OgaFailureKind)4)
#define OgaFailureKind_Execution ((OgaFailureKind)5)
#define OgaFailureKind_Contract ((OgaFailureKind)6)

/** The event's bits. Writes OgaEngineEventFlag_None before it rejects a NULL event. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetFlags(const OgaEngineEvent* event, OgaEngineEventFlags* out);

/**
 * The request the event is about.
 *
 * :param out: borrow; the same pointer the caller holds, never destroyed through this alias; NULL for engine-level events
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetRequest(const OgaEngineEvent* event, const OgaRequest** out);

/** The turn the event belongs to; 0 for engine-level events. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetTurnId(const OgaEngineEvent* event, uint64_t* out);

/** The generated token id; meaningful with OgaEngineEventFlag_Token, otherwise 0. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetToken(const OgaEngineEvent* event, int32_t* out);

/** Why the turn ended; OgaFinishReason_None without OgaEngineEventFlag_TurnFinished. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetFinishReason(const OgaEngineEvent* event, OgaFinishReason* out);

/** The index of the stop string that matched; -1 unless the reason is OgaFinishReason_StopString. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetMatchedStopStringIndex(const OgaEngineEvent* event, int32_t* out);

/** What went wrong; OgaErrorCode_None on events that report no trouble. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetErrorCode(const OgaEngineEvent* event, OgaErrorCode* out);

/** Why the turn failed; OgaFailureKind_None unless its finish reason is OgaFinishReason_Failed. Since 0.1. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetFailure(const OgaEngineEvent* event, OgaFailureKind* out);

/**
 * The turn's token counts; all zero on events without OgaEngineEventFlag_TurnFinished.
 *
 * :param out: borrow, as long as the event
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetUsage(const OgaEngineEvent* event, const OgaTurnUsage** out);

/**
 * The text that this event makes certain; empty unless the turn emits text (OgaTurnOptionsSetEmitText).
 *
 * Whole characters, nothing is ever taken back: what may still become part of a stop string or of a character waits, and
 * comes with a later event, the last at the turn's end. The texts of a turn's events add up to its visible text, without a
 * stop string that ended it, a stop token or an EOS. Bytes that are no character become U+FFFD. A turn that ends Failed
 * does not release what waited.
 *
 * :param out: borrow, as long as the event; NUL-terminated, and may hold a NUL of its own
 * :param size_bytes: without the terminator; may be NULL
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetText(const OgaEngineEvent* event, const char** out,
                                                         size_t* size_bytes);

/**
 * The log-probabilities that come with the event's token, as parallel arrays; a count of 0 unless the turn asked for them
 * (OgaTurnOptionsSetLogprobs).
 *
 * Entry 0 is the chosen token; then the most likely ones, most likely first; then those of OgaTurnOptionsSetLogprobTokens.
 *
 * :param tokens: [count] borrow, as long as the event
 * :param logprobs: [count] borrow; natural logarithms, -INFINITY for a token that could not have been chosen
 * :param ranks: [count] borrow; 1 is the most likely token
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetLogprobs(const OgaEngineEvent* event, const int32_t** tokens,
                                                             const float** logprobs, const int32_t** ranks,
                                                             size_t* count);

/**
 * How many tokens of the turn's input the event has log-probabilities for: all of them on the turn's first event when it
 * asked for them (OgaTurnOptionsSetPromptLogprobs), fewer when the turn ended before they were computed, else 0.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetPromptLogprobsCount(const OgaEngineEvent* event, size_t* out);

/**
 * The log-probabilities of one input token, as OgaEngineEventGetLogprobs: entry 0 is the input token itself. A count of 0
 * for the first token of a sequence, which nothing predicts.
 *
 * :param index: of the token in the turn's input; below OgaEngineEventGetPromptLogprobsCount
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineEventGetPromptLogprobs(const OgaEngineEvent* event, size_t index,
                                                                   const int32_t** tokens, const float** logprobs,
                                                                   const int32_t** ranks, size_t* count);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_EVENT_H_ */
