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

/** Keeps every EOS id and stop token from being chosen before this many output tokens; 0 unsets. */
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

/**
 * Never completes a run of this many tokens that the sequence, prompt included, already holds; >= 0, where 0 is off.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetNoRepeatNgramSize(OgaTurnOptions* options,
                                                                      int32_t no_repeat_ngram_size);

/**
 * Sets a number option by its name: any of the table of options (docs/reference/sampling.rst), and "seed".
 *
 * InvalidArgument for an unknown name (the nearest known one is named), for a value outside the option's range, for a
 * fraction where it takes an integer, and for an option that is true or false.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetNumber(OgaTurnOptions* options, const char* name, double value);

/** Sets an option that is true or false by its name, for example "ignore_eos". As OgaTurnOptionsSetNumber. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetBool(OgaTurnOptions* options, const char* name, bool value);

/**
 * Adds `biases[i]` to the logit of `tokens[i]`, after the penalties. A count of 0 unsets; the arrays may be NULL then.
 *
 * InvalidArgument for a negative or repeated id and a bias that is not finite. An id beyond the vocabulary is refused
 * when a turn begins; so it is in the lists below.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetLogitBias(OgaTurnOptions* options, const int32_t* tokens,
                                                              const float* biases, size_t count);

/**
 * Ends the turn at any of these tokens, with OgaFinishReason_Eos. The token is emitted, counted and kept in the sequence.
 * They end it under "ignore_eos" too; without that, an id of the model's own EOS ids ends it unseen, as ever. A count of
 * 0 unsets.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetStopTokens(OgaTurnOptions* options, const int32_t* tokens,
                                                               size_t count);

/**
 * Never lets the sequence end in one of these token sequences: the token that would complete it is not chosen. A sequence
 * of one token excludes that token. An empty list unsets; an empty sequence is InvalidArgument.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetBannedSequences(OgaTurnOptions* options,
                                                                    const OgaSequences* sequences);

/** Chooses among these tokens only; an EOS id ends the turn only when it is one of them. A count of 0 unsets. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetAllowedTokens(OgaTurnOptions* options, const int32_t* tokens,
                                                                  size_t count);

/**
 * Tokens across which DRY sees no repetition, and which it never penalises: line ends, quotes, names of speakers. A count
 * of 0 unsets.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetDryBreakers(OgaTurnOptions* options, const int32_t* tokens,
                                                                size_t count);

/**
 * Ends the turn where the text of its output completes one of these strings, with OgaFinishReason_StopString and the
 * string's index. The match may begin and end inside tokens; it never reaches back into a prompt. Of several matches the
 * one that ends first counts, then the longest, then the lowest index. The token that completes it is emitted, counted and
 * kept in the sequence; the visible text ends before the match. An empty list unsets.
 *
 * At most 16 strings of 16,384 bytes in all, each UTF-8 and not empty, else InvalidArgument. A turn with stop strings needs
 * the model's tokenizer.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetStopStrings(OgaTurnOptions* options,
                                                                const OgaStringArray* stop_strings);

/**
 * Lets the turn's events carry text (OgaEngineEventGetText), with special tokens written out or left out; false unsets.
 * Stop strings act on the same text. Needs the model's tokenizer.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetEmitText(OgaTurnOptions* options, bool emit_text,
                                                             bool include_special_tokens);

/**
 * Makes the turn's output follow a grammar from its first token on, whatever the prompt is. The turn ends with
 * OgaFinishReason_Eos where the grammar is complete, also below a minimum of tokens.
 *
 * :param guidance_type: "json_schema", "json_object" (any object; the data is empty), "regex" or "lark_grammar"
 * :param guidance_data: UTF-8, at most 256 KiB
 *
 * InvalidArgument for another type and for data that is empty or no UTF-8; InvalidState while delimited guidance is set.
 * The grammar is compiled when a turn begins, which fails with InvalidArgument naming the keyword or the position, also for
 * a keyword of a JSON schema that cannot be enforced; and with Unsupported when llguidance is not there
 * (OgaSetLlguidanceLibrary). Needs the model's tokenizer.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetGuidance(OgaTurnOptions* options, const char* guidance_type,
                                                             const char* guidance_data);

/**
 * Makes what the turn writes between two tokens follow a Lark grammar: text is free until the opening token, follows the
 * grammar until the closing one, and is free again, any number of times.
 *
 * As OgaTurnOptionsSetGuidance; InvalidArgument for equal or negative tokens, InvalidState while guidance of the whole turn
 * is set.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetDelimitedGuidance(OgaTurnOptions* options, int32_t opening_token,
                                                                      int32_t closing_token, const char* grammar);

/** Unsets guidance of either kind. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsClearGuidance(OgaTurnOptions* options);

/**
 * Lets the turn's token events carry log-probabilities (OgaEngineEventGetLogprobs): of the chosen token and of the `top`
 * most likely ones, 0 to 20; -1 unsets. With `processed` they are those of the distribution after the penalties, biases and
 * masks (before temperature and what narrows the choice), else the model's own.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetLogprobs(OgaTurnOptions* options, int32_t top, bool processed);

/** Log-probabilities of these tokens too, at most 1,024, whether likely or not. A count of 0 unsets. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetLogprobTokens(OgaTurnOptions* options, const int32_t* tokens,
                                                                  size_t count);

/**
 * Lets the turn's first event carry the log-probability of every token of its input and of the `top` most likely ones in
 * its place, 0 to 20; -1 unsets. Each is the model's own, given all tokens before it. The input is computed whole, in
 * smaller steps and without the prefix cache.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetPromptLogprobs(OgaTurnOptions* options, int32_t top);

/** Makes the turn's draws reproducible; every value, 0 too, is a seed. A later unseeded turn continues from it. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsSetSeed(OgaTurnOptions* options, uint64_t seed);

/** Unsets the seed. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTurnOptionsClearSeed(OgaTurnOptions* options);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_TURN_OPTIONS_H_ */
