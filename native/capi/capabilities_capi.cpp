#include "capi/boundary.h"

void OGA_API_CALL OgaDestroyEngineCapabilities(OgaEngineCapabilities* capabilities) { delete capabilities; }

size_t OGA_API_CALL OgaEngineCapabilitiesGetConfiguredMaxBatchSize(const OgaEngineCapabilities* capabilities) {
  return capabilities == nullptr ? 0 : capabilities->capabilities.max_batch_size;
}

size_t OGA_API_CALL OgaEngineCapabilitiesGetMaxScheduledTokens(const OgaEngineCapabilities* capabilities) {
  return capabilities == nullptr ? 0 : capabilities->capabilities.max_scheduled_tokens;
}

uint64_t OGA_API_CALL OgaEngineCapabilitiesGetMaxRequestLength(const OgaEngineCapabilities* capabilities) {
  return capabilities == nullptr ? 0 : capabilities->capabilities.max_request_tokens;
}

bool OGA_API_CALL OgaEngineCapabilitiesGetPrefixCaching(const OgaEngineCapabilities* capabilities) {
  return capabilities != nullptr && capabilities->capabilities.prefix_caching;
}
