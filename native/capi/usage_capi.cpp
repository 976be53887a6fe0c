#include "capi/boundary.h"

using oga::TurnUsage;
using oga::capi::AsInternal;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

OgaResult* Get(const OgaTurnUsage* usage, uint64_t TurnUsage::*count, uint64_t* out) {
  return Guard([&] {
    RequireOut<uint64_t>(out, 0);
    Require(usage, "usage");
    *out = AsInternal(usage)->*count;
  });
}

}  // namespace

OgaResult* OGA_API_CALL OgaTurnUsageGetPromptTokens(const OgaTurnUsage* usage, uint64_t* out) {
  return Get(usage, &TurnUsage::prompt_tokens, out);
}

OgaResult* OGA_API_CALL OgaTurnUsageGetGeneratedTokens(const OgaTurnUsage* usage, uint64_t* out) {
  return Get(usage, &TurnUsage::generated_tokens, out);
}

OgaResult* OGA_API_CALL OgaTurnUsageGetCachedPromptTokens(const OgaTurnUsage* usage, uint64_t* out) {
  return Get(usage, &TurnUsage::cached_prompt_tokens, out);
}
