// Fills the table of token bytes (step/token_bytes.h) from the files of a tokenizer.
#pragma once

#include <cstdint>
#include <vector>

#include "step/token_bytes.h"
#include "text/tokenizer_json.h"

namespace oga {

// Throws Error{kUnsupported} naming a decoder component that is not known.
TokenBytes MakeTokenBytes(const TokenizerFiles& files);

// The ids below `vocab_size` that the tokenizer knows, and so the only ones to sample: bit i % 32 of word i / 32 is
// token i. A model whose logits are wider than its tokenizer has padding above; a vocabulary may have holes below.
std::vector<uint32_t> SampleableBitmask(const TokenBytes& tokens, int32_t vocab_size);

}  // namespace oga
