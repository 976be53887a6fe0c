/* OgaModel: an ONNX decoder loaded once and shared by engines. */
#ifndef OGA_MODEL_H_
#define OGA_MODEL_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Loads a model folder. The same as OgaCreateConfig followed by OgaCreateModelFromConfig.
 *
 * :param config_path: path of the folder with genai_config.json
 * :param out: own; free with OgaDestroyModel
 *
 * Errors as in OgaCreateConfig, and ModelError when the graph does not match its config (the message names the tensor,
 * what was found and what was wanted), Unsupported for a graph or operator attribute this build cannot run, NotFound
 * for a missing ONNX Runtime. Any thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateModel(const char* config_path, OgaModel** out);

/** Loads a model from a config, which may be destroyed or changed afterwards. Otherwise as OgaCreateModel. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateModelFromConfig(const OgaConfig* config, OgaModel** out);

/** Releases the caller's share of a model. NULL is accepted. Engines on the model keep it alive. Any thread. */
OGA_EXPORT void OGA_API_CALL OgaDestroyModel(OgaModel* model);

/**
 * The model's family, `model.type` of its config (for example "llama").
 *
 * :param out: own; free with OgaDestroyString
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaModelGetType(const OgaModel* model, const char** out);

/**
 * Where the model runs: "CPU".
 *
 * :param out: own; free with OgaDestroyString
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaModelGetDeviceType(const OgaModel* model, const char** out);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_MODEL_H_ */
