/* OgaTokenizer: text to token ids and back, by the tokenizer.json of a model folder. OgaTokenizerStream: text from tokens
 * that arrive one by one.
 *
 * Neither belongs to an engine, and both work without any other library; only OgaTokenizerApplyChatTemplate needs one.
 * Ids and texts are those of the `tokenizers` library. What cannot be done exactly is refused, naming the component of
 * the tokenizer that is not supported: there is no approximate text.
 */
#ifndef OGA_TOKENIZER_H_
#define OGA_TOKENIZER_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Creates the tokenizer of a model's folder. The model may be destroyed afterwards.
 *
 * :param out: own; free with OgaDestroyTokenizer
 *
 * NotFound when the folder has no tokenizer.json, IoError or InvalidArgument for a file that is unreadable or damaged,
 * Unsupported for a decoder this build does not know, by name. The token ids of the model work without a tokenizer.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizer(const OgaModel* model, OgaTokenizer** out);

/** Creates the tokenizer of a config's folder, with the token ids of the config. Otherwise as OgaCreateTokenizer. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizerFromConfig(const OgaConfig* config, OgaTokenizer** out);

/**
 * Creates the tokenizer of a folder. The ids with a role are those of its genai_config.json; in a folder without one,
 * those that tokenizer_config.json names. Otherwise as OgaCreateTokenizer.
 *
 * :param config_path: path of the folder with tokenizer.json
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizerFromPath(const char* config_path, OgaTokenizer** out);

/** Releases a tokenizer. NULL is accepted. Its streams stay usable. */
OGA_EXPORT void OGA_API_CALL OgaDestroyTokenizer(OgaTokenizer* tokenizer);

/**
 * Changes options; each key goes with the value at its place. All are checked before any changes.
 *
 * - `add_special_tokens`: OgaTokenizerEncode adds what the tokenizer puts around every text, often one BOS. "false" at
 *   first.
 * - `skip_special_tokens`: texts leave special tokens out; streams created later too. "true" at first.
 *
 * Values are "true" and "false", or "1" and "0". InvalidArgument for anything else.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaUpdateTokenizerOptions(OgaTokenizer* tokenizer, const char* const* keys,
                                                             const char* const* values, size_t num_options);

/**
 * Encodes a text and appends its ids as one sequence. Special tokens written in the text are recognised: encode what
 * people write apart from the control tokens around it.
 *
 * :param str: the text
 * :param sequences: the list to append to
 *
 * Unsupported when the tokenizer, or this text, cannot be encoded exactly without the `tokenizers` library; the message
 * names the component. InvalidArgument for a text that is not UTF-8.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerEncode(const OgaTokenizer* tokenizer, const char* str,
                                                      OgaSequences* sequences);

/**
 * The text of tokens. Ids that the tokenizer does not know give nothing; bytes that are no character give U+FFFD. NUL
 * characters, which a C string cannot hold, are left out; OgaTokenizerStreamDecodeTokens keeps them.
 *
 * :param tokens: may be NULL when the count is 0
 * :param out_string: own; free with OgaDestroyString
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerDecode(const OgaTokenizer* tokenizer, const int32_t* tokens,
                                                      size_t token_count, const char** out_string);

/**
 * A conversation as text, by a chat template. Encode the result with `add_special_tokens` off when the template writes
 * the BOS itself.
 *
 * Needs the C functions of an installed onnxruntime-extensions; see OgaSetOrtExtensionsLibrary. Special tokens written
 * in messages become control tokens when the text is encoded: keep them out of what people write.
 *
 * :param template_str: the template; NULL or "" takes the folder's (chat_template.jinja, or chat_template in
 *     tokenizer_config.json)
 * :param messages: JSON, a list of objects with role and content; all values are strings
 * :param tools: NULL or ""; onnxruntime-extensions drops parts of tool definitions, so they are refused
 * :param add_generation_prompt: ends with the start of the assistant's answer
 * :param out_string: own; free with OgaDestroyString
 *
 * Unsupported without a usable onnxruntime-extensions, for tools and for messages that hold more than text; NotFound
 * when there is no template; InvalidArgument when the messages are no such list or the template refuses them.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerApplyChatTemplate(const OgaTokenizer* tokenizer,
                                                                 const char* template_str, const char* messages,
                                                                 const char* tools, bool add_generation_prompt,
                                                                 const char** out_string);

/** The id of a token by the text that tokenizer.json has for it. :param token_id: -1 when there is no such token */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerToTokenId(const OgaTokenizer* tokenizer, const char* str,
                                                         int32_t* token_id);

/**
 * The bytes that a token stands for inside a text; no UTF-8 by themselves in general.
 *
 * :param token: any id; one that the tokenizer does not know has no bytes
 * :param bytes: borrow, until OgaDestroyTokenizer
 *
 * Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetTokenBytes(const OgaTokenizer* tokenizer, int32_t token,
                                                             const uint8_t** bytes, size_t* byte_count);

/** The token that begins a sequence. NotFound when the folder names none, as with the other roles. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetBosTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);

/** The tokens that end a turn, perhaps none. :param eos_token_ids: borrow, until OgaDestroyTokenizer */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetEosTokenIds(const OgaTokenizer* tokenizer,
                                                              const int32_t** eos_token_ids, size_t* token_count);

/** The token that fills up short sequences. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetPadTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);

/** The token that begins a tool call (`model.bot_token_id`). */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetBotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);

/** The token that ends a tool call (`model.eot_token_id`). */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetEotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);

/** The token that begins the reasoning of an answer (`model.bor_token_id`). */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetBorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);

/** The token that ends the reasoning of an answer (`model.eor_token_id`). */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetEorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);

/** Creates a decoder for tokens that arrive one by one. :param out: own; free with OgaDestroyTokenizerStream */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizerStream(const OgaTokenizer* tokenizer, OgaTokenizerStream** out);

/** Frees a stream. NULL is accepted. */
OGA_EXPORT void OGA_API_CALL OgaDestroyTokenizerStream(OgaTokenizerStream* stream);

/**
 * The text that one more token completes, often none: a piece never ends inside a character. All pieces and that of
 * OgaTokenizerStreamFinish together are the text of all tokens. NUL characters are left out, as in OgaTokenizerDecode.
 *
 * :param out: borrow, until the next call on the stream
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerStreamDecode(OgaTokenizerStream* stream, int32_t token,
                                                            const char** out);

/**
 * The text that several more tokens complete, with its length, since it may hold NUL characters.
 *
 * :param tokens: may be NULL when the count is 0
 * :param out: borrow, until the next call on the stream; ends with a zero byte behind `byte_count` bytes
 *
 * Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerStreamDecodeTokens(OgaTokenizerStream* stream, const int32_t* tokens,
                                                                  size_t token_count, const char** out,
                                                                  size_t* byte_count);

/**
 * The text that was held back; half a character gives U+FFFD. The stream starts afresh.
 *
 * :param out: borrow, until the next call on the stream; ends with a zero byte behind `byte_count` bytes
 *
 * Since 0.1.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerStreamFinish(OgaTokenizerStream* stream, const char** out,
                                                            size_t* byte_count);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_TOKENIZER_H_ */
