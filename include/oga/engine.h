/* OgaEngine: the single-owner step loop over one model. */
#ifndef OGA_ENGINE_H_
#define OGA_ENGINE_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Creates an engine and its key-value cache. The calling thread becomes the owner of the engine.
 *
 * :param model: stays alive as long as the engine does, even when its handle is destroyed
 * :param out: own; free with OgaDestroyEngine
 *
 * ResourceExhausted when the cache does not fit in memory (the message says how much was wanted and found).
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateEngine(OgaModel* model, OgaEngine** out);

/**
 * Ends an engine. Every request becomes a closed tombstone whose handle must still be destroyed; event buffers keep
 * their last count. NULL is accepted. Any thread: it waits for a call in progress on the engine to return first.
 */
OGA_EXPORT void OGA_API_CALL OgaDestroyEngine(OgaEngine* engine);

/**
 * Creates a request: one sequence with all its turns. It holds no cache until its first turn is scheduled.
 *
 * :param request_options: NULL for defaults; copied
 * :param out: own; free with OgaDestroyRequest
 *
 * InvalidArgument for limits outside the model's; EngineUnhealthy after a fatal failure. Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineCreateRequest(OgaEngine* engine, const OgaRequestOptions* request_options,
                                                          OgaRequest** out);

/**
 * Makes progress. Hands out retained events if there are any, else executes at most one step, and fills the buffer with
 * up to its capacity of events; the rest is retained for later calls.
 *
 * A step may commit without an event (a partial prefill). Capacity 0 checks the thread and the engine's health and does
 * nothing else.
 *
 * :param buffer: a buffer of this engine; an accepted call ends every event view borrowed from it
 *
 * EngineUnhealthy returns the stored failure once its events are drained. On an error the buffer keeps its content.
 * Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineRun(OgaEngine* engine, OgaEngineEventBuffer* buffer);

/**
 * Whether a call of OgaEngineRun has something to do: retained events or turns that are not finished. Also reclaims
 * requests whose handles were destroyed. Owner thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineHasPendingRequests(OgaEngine* engine, bool* out);

/**
 * A snapshot of the engine's fixed limits. Works on an unhealthy engine. Owner thread.
 *
 * :param out: own; free with OgaDestroyEngineCapabilities
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineGetCapabilities(const OgaEngine* engine, OgaEngineCapabilities** out);

/**
 * A snapshot of the engine's counters. Works on an unhealthy engine. Owner thread. Since 0.1.
 *
 * :param out: own; free with OgaDestroyEngineStatistics
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineGetStatistics(const OgaEngine* engine, OgaEngineStatistics** out);

/**
 * Compiles a grammar ahead of the turns that will follow it, on the calling thread. OgaRequestBeginTurn compiles a grammar
 * that it does not know, and one made to be slow takes it a second, in which nobody gets a token; one that was prepared it
 * finds. The last 32 are kept.
 *
 * Any thread, also while the owner thread is in a call on the engine. The engine must not be destroyed before this call has
 * begun.
 *
 * :param guidance_type: as for OgaTurnOptionsSetGuidance; for OgaTurnOptionsSetDelimitedGuidance "lark_grammar"
 * :param guidance_data: as there
 *
 * InvalidArgument names the keyword or position that is wrong; Unsupported without llguidance. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEnginePrepareGuidance(OgaEngine* engine, const char* guidance_type,
                                                            const char* guidance_data);

/**
 * Forgets every cached beginning that no request owns. Nothing that a request generates depends on it.
 *
 * Owner thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineDropPrefixCache(OgaEngine* engine);

/**
 * Writes one JSON object per attempted step, a line each, to a file: its rows, the requests that waited and for what,
 * what was dropped, the outcome, and microseconds per phase. `oga trace FILE` summarises and draws it.
 *
 * :param path: created or emptied; NULL or "" ends tracing
 *
 * IoError names the path and the reason. A line that cannot be written later ends the trace with a warning, never a
 * step. Owner thread. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineSetTraceFile(OgaEngine* engine, const char* path);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_ENGINE_H_ */
