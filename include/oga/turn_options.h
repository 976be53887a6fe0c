/* OgaTurnOptions: how one turn generates. Bound to its request; reusable for any number of its turns. */
#ifndef OGA_TURN_OPTIONS_H_
#define OGA_TURN_OPTIONS_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Creates an option set for the turns of one request; everything unset. An unset option takes the model's default
 * (`search` in its config).
 *
 * :param out: own; free with OgaDestroyTurnOptions
 *
 * InvalidState on a closed request. Owner thread, as every setter below. A setter that refuses a value keeps the
 * previous one.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRequestCreateTurnOptions(OgaRequest* request, OgaTurnOptions** out);

/** Frees an option set. NULL is accepted. */
OGA_EXPORT void OGA_API_CALL OgaDestroyTurnOptions(OgaTurnOptions* options);

/** Unsets every option; the binding to the request stays. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsReset(OgaTurnOptions* options);

/** Ends the turn after this many output tokens; 0 unsets (no limit but the session's). */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetMaxGeneratedTokens(OgaTurnOptions* options,
                                                                       uint64_t max_generated_tokens);

/** Keeps every EOS id from being chosen before this many output tokens; 0 unsets. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetMinGeneratedTokens(OgaTurnOptions* options,
                                                                       uint64_t min_generated_tokens);

/** Draws tokens at random (true) or takes the most likely one (false). */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetDoSample(OgaTurnOptions* options, bool do_sample);

/** Divides the logits before drawing; finite and >= 0, where 0 means the most likely token. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetTemperature(OgaTurnOptions* options, float temperature);

/** Draws among the k most likely tokens; >= 0, where 0 and anything from the vocabulary size up are off. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetTopK(OgaTurnOptions* options, int32_t top_k);

/** Draws among the smallest set of tokens whose probability reaches p; in [0, 1], where 0 and 1 are off. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetTopP(OgaTurnOptions* options, float top_p);

/**
 * Makes tokens of the prompt and the output less likely: a positive logit is divided by the penalty, any other
 * multiplied. Finite and > 0; 1 is off.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetRepetitionPenalty(OgaTurnOptions* options,
                                                                      float repetition_penalty);

/** Makes the turn's draws reproducible; every value, 0 too, is a seed. A later unseeded turn continues from it. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetSeed(OgaTurnOptions* options, uint64_t seed);

/** Unsets the seed. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsClearSeed(OgaTurnOptions* options);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_TURN_OPTIONS_H_ */
