/* OgaEngineStatistics: what an engine has done so far and what it holds now. An immutable snapshot; any thread. */
#ifndef OGA_STATISTICS_H_
#define OGA_STATISTICS_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Frees a snapshot. NULL is accepted. Since 0.1. */
OGA_EXPORT void OGA_API_CALL OgaDestroyEngineStatistics(OgaEngineStatistics* statistics);

/**
 * Reads one counter by name.
 *
 * Since creation: "steps" (committed), "rows" and "scheduled_tokens" (summed over committed steps),
 * "generated_tokens", "rolled_back_steps", "preemptions", "dropped_residents"; of the prefix cache "prefix_queries"
 * (admissions that looked for their beginning), "prefix_hits" (of them, ones that found some), "prefix_tokens_saved"
 * and "prefix_evictions".
 * Now: "live_requests", "resident_requests", "block_size", "total_blocks", "free_blocks" (available, the cached ones
 * among them), "cached_blocks" (kept for their content, without an owner), "block_bytes".
 *
 * :param out: 0 when the call fails
 *
 * InvalidArgument lists the known names. Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaEngineStatisticsGetCount(const OgaEngineStatistics* statistics, const char* name,
                                                               uint64_t* out);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_STATISTICS_H_ */
