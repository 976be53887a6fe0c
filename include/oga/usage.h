/* OgaTurnUsage: the token counts of a finished turn. Borrowed from its event. */
#ifndef OGA_USAGE_H_
#define OGA_USAGE_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Input tokens of this turn (not of earlier ones). Writes 0 before it rejects a NULL usage. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnUsageGetPromptTokens(const OgaTurnUsage* usage, uint64_t* out);

/** Tokens this turn appended as output; an EOS that ended it is not among them. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnUsageGetGeneratedTokens(const OgaTurnUsage* usage, uint64_t* out);

/** Input tokens that were taken from the prefix cache instead of being computed. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnUsageGetCachedPromptTokens(const OgaTurnUsage* usage, uint64_t* out);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_USAGE_H_ */
