/* Stands in for llguidance where loading it is tested: a version, and settings laid out as oga expects or larger. */
#include <stdint.h>
#include <string.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION "llguidance@1.99.0 derivre@9.9.9"
#endif
#ifndef FAKE_GROWN_BYTES
#define FAKE_GROWN_BYTES 0
#endif

struct init {
  const void* tokenizer;
  uint32_t levels[2];
  uint8_t flags[8];
  uint64_t limits[6];
  uint8_t switches[8 + FAKE_GROWN_BYTES];
};

const char* llg_get_version(void) { return FAKE_VERSION; }

void llg_constraint_init_set_defaults(struct init* init, const void* tokenizer) {
  memset(init, 0, sizeof *init);
  init->tokenizer = tokenizer;
  for (int i = 0; i < 6; ++i) init->limits[i] = 1000;
}

#define FAKE(name) \
  void name(void) {}
FAKE(llg_new_tokenizer_v2)
FAKE(llg_free_tokenizer)
FAKE(llg_new_matcher)
FAKE(llg_clone_matcher)
FAKE(llg_free_matcher)
FAKE(llg_matcher_get_error)
FAKE(llg_matcher_is_error)
FAKE(llg_matcher_get_mask_byte_size)
FAKE(llg_matcher_compute_mask_into)
FAKE(llg_matcher_validate_tokens)
FAKE(llg_matcher_consume_tokens)
FAKE(llg_matcher_rollback)
FAKE(llg_matcher_reset)
FAKE(llg_matcher_is_accepting)
FAKE(llg_matcher_is_stopped)
FAKE(llg_matcher_compute_ff_tokens)
