// Our view of the C functions that llguidance exports: only what oga calls, for releases from 1.8 on.
//
// Declared here because the package ships no header. The one structure without a size field, LlgConstraintInit, is
// filled by the library itself when it is loaded, and refused when it is not laid out like this (grammar_library.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace oga::grammar {

struct LlgTokenizer;
struct LlgMatcher;

// Thread-safe; returns how many tokens the bytes are, and writes at most `capacity` of them.
using LlgTokenizeFunction = size_t (*)(const void* user_data, const uint8_t* bytes, size_t bytes_length,
                                       uint32_t* tokens, size_t capacity);

struct LlgTokenizerInit {
  size_t struct_size = sizeof(LlgTokenizerInit);
  uint32_t vocab_size = 0;
  uint32_t tok_eos = 0;
  const uint32_t* token_lens = nullptr;
  const uint8_t* token_bytes = nullptr;
  const char* tokenizer_json = nullptr;
  bool tokenize_assumes_string = false;
  LlgTokenizeFunction tokenize_fn = nullptr;
  bool use_approximate_greedy_tokenize_fn = false;
  const void* tokenize_user_data = nullptr;
  const char* const* slices = nullptr;
  const uint32_t* tok_eos_extra = nullptr;
  uint32_t tok_eos_extra_count = 0;
};
static_assert(sizeof(LlgTokenizerInit) == 96 && offsetof(LlgTokenizerInit, tok_eos_extra) == 80);

// The work a grammar may cost. A limit that is reached is an error of that grammar alone.
struct LlgParserLimits {
  size_t max_items_in_row;
  uint64_t initial_lexer_fuel;  // for building the lexer
  uint64_t step_lexer_fuel;     // for one mask
  size_t step_max_items;        // for one mask
  size_t max_lexer_states;      // one or two kB each
  size_t max_grammar_size;
  bool precompute_large_lexemes;
  bool verbose_errors;
};

struct LlgConstraintInit {
  const LlgTokenizer* tokenizer;
  uint32_t log_buffer_level;
  uint32_t log_stderr_level;
  bool ff_tokens_ok;
  bool backtrack_ok;
  LlgParserLimits limits;
};
static_assert(sizeof(LlgConstraintInit) == 80 && offsetof(LlgConstraintInit, limits) == 24);

// The token that no vocabulary has: the end of text of a model without one.
inline constexpr uint32_t kLlgNoToken = UINT32_MAX;

struct LlgFunctions {
  const char* (*llg_get_version)();
  LlgTokenizer* (*llg_new_tokenizer_v2)(const LlgTokenizerInit* init, char* error, size_t error_capacity);
  void (*llg_free_tokenizer)(LlgTokenizer* tokenizer);
  void (*llg_constraint_init_set_defaults)(LlgConstraintInit* init, const LlgTokenizer* tokenizer);
  LlgMatcher* (*llg_new_matcher)(const LlgConstraintInit* init, const char* type, const char* data);
  LlgMatcher* (*llg_clone_matcher)(const LlgMatcher* matcher);
  void (*llg_free_matcher)(LlgMatcher* matcher);
  const char* (*llg_matcher_get_error)(LlgMatcher* matcher);  // null when there is none
  bool (*llg_matcher_is_error)(const LlgMatcher* matcher);
  size_t (*llg_matcher_get_mask_byte_size)(const LlgMatcher* matcher);
  int32_t (*llg_matcher_compute_mask_into)(LlgMatcher* matcher, uint32_t* mask, size_t mask_bytes);
  int32_t (*llg_matcher_validate_tokens)(LlgMatcher* matcher, const uint32_t* tokens, size_t count);
  int32_t (*llg_matcher_consume_tokens)(LlgMatcher* matcher, const uint32_t* tokens, size_t count);
  int32_t (*llg_matcher_rollback)(LlgMatcher* matcher, size_t count);
  int32_t (*llg_matcher_reset)(LlgMatcher* matcher);
  bool (*llg_matcher_is_accepting)(LlgMatcher* matcher);
  bool (*llg_matcher_is_stopped)(const LlgMatcher* matcher);
  int32_t (*llg_matcher_compute_ff_tokens)(LlgMatcher* matcher, uint32_t* tokens, size_t capacity);
};

}  // namespace oga::grammar
