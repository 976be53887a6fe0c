/* OgaEngineCapabilities: the fixed limits of an engine. Immutable; any thread. */
#ifndef OGA_CAPABILITIES_H_
#define OGA_CAPABILITIES_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Frees a snapshot. NULL is accepted. */
OGA_EXPORT void OGA_API_CALL OgaDestroyEngineCapabilities(OgaEngineCapabilities* capabilities);

/** The most requests one step may contain. NULL gives 0. */
OGA_EXPORT size_t OGA_API_CALL
OgaEngineCapabilitiesGetConfiguredMaxBatchSize(const OgaEngineCapabilities* capabilities);

/** The most tokens one step may feed to the model. NULL gives 0. */
OGA_EXPORT size_t OGA_API_CALL OgaEngineCapabilitiesGetMaxScheduledTokens(const OgaEngineCapabilities* capabilities);

/** The longest sequence (prompt, output and continuations) a request may reach, in tokens. NULL gives 0. */
OGA_EXPORT uint64_t OGA_API_CALL OgaEngineCapabilitiesGetMaxRequestLength(const OgaEngineCapabilities* capabilities);

/**
 * Whether requests share the cached blocks of a common beginning (`engine.dynamic_batching.prefix_caching`, on by
 * default). NULL gives false. Since 0.1.
 */
OGA_EXPORT bool OGA_API_CALL OgaEngineCapabilitiesGetPrefixCaching(const OgaEngineCapabilities* capabilities);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_CAPABILITIES_H_ */
