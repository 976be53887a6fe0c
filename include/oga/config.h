/* OgaConfig: a model folder's genai_config.json, adjustable before the model is created. */
#ifndef OGA_CONFIG_H_
#define OGA_CONFIG_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Reads `genai_config.json` of a model folder.
 *
 * :param config_path: path of the folder
 * :param out: own; free with OgaDestroyConfig
 *
 * NotFound or IoError name the file; InvalidArgument names the JSON path of a bad value, what was found and what was
 * wanted. Any thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateConfig(const char* config_path, OgaConfig** out);

/** Frees a config. NULL is accepted. Models made from it are not affected. */
OGA_EXPORT void OGA_API_CALL OgaDestroyConfig(OgaConfig* config);

/**
 * Merges a JSON object over the config: objects merge key by key, every other value replaces.
 *
 * :param json: a JSON object, for example `{"engine": {"dynamic_batching": {"max_batch_size": 8}}}`
 *
 * InvalidArgument as in OgaCreateConfig; a refused overlay leaves the config as it was.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigOverlay(OgaConfig* config, const char* json);

/** Removes every execution provider from the config; the model then runs on the CPU. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigClearProviders(OgaConfig* config);

/**
 * Appends an execution provider.
 *
 * :param provider: "cpu" is accepted and needs nothing
 *
 * Unsupported names the provider when this build cannot use it.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigAppendProvider(OgaConfig* config, const char* provider);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_CONFIG_H_ */
