// Every limit an engine runs under, resolved: no zeroes that mean "choose for me".
#pragma once

#include <cstdint>
#include <vector>

#include "step/ids.h"
#include "step/sampling.h"

namespace oga {

struct EngineLimits {
  uint32_t block_size_slots = 16;
  uint32_t num_blocks = 0;
  uint32_t max_batch_size = 16;          // rows of one step
  uint32_t max_scheduled_tokens = 2048;  // tokens of one step
  uint32_t chunk_size_tokens = 0;        // prompt tokens of one row in one step; 0 is no bound of its own
  uint32_t max_resident_requests = 64;   // requests that own cache blocks
  uint32_t max_wait_steps = 32;          // the starvation bound of the contract
  uint64_t context_length_tokens = 0;    // of the model
  bool prefix_caching = false;           // share committed blocks among requests with the same beginning

  uint64_t pool_slots() const { return uint64_t{num_blocks} * block_size_slots; }

  // The longest sequence a request may reach: the last sampled token needs no cache slot.
  uint64_t max_request_tokens() const {
    const uint64_t by_pool = pool_slots() + 1;
    return by_pool < context_length_tokens ? by_pool : context_length_tokens;
  }
};

// What the engine has to know about a model besides how to run it.
struct ModelTraits {
  int32_t vocab_size = 0;
  int32_t sampleable_tokens = 0;  // ids the tokenizer knows; those above are never chosen. 0: the whole vocabulary
  std::vector<TokenId> eos_token_ids;
  bool logits_of_any_token = true;  // else only of the last token of each row
  SearchDefaults search;
};

}  // namespace oga
