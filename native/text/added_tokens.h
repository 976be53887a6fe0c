// Added tokens: read from the files that name them, and given the ids that the `tokenizers` library gives them.
#pragma once

#include <vector>

#include "config/json_object.h"
#include "text/token_texts.h"
#include "text/tokenizer_json.h"

namespace oga {

// `added_tokens` of tokenizer.json. A token that the vocabulary has keeps its id; others follow behind the vocabulary in
// the order of the list, whatever id the file says.
std::vector<AddedToken> ReadAddedTokens(const JsonObject& root, const TokenTexts& vocabulary);

// Appends the tokens that only tokenizer_config.json (`added_tokens_decoder`) or added_tokens.json name. These say which
// id the model was trained with: throws Error{kInvalidArgument} naming the token when it would get another one.
void AppendAddedTokens(const JsonObject& settings, const JsonValue& added_tokens_file, const TokenTexts& vocabulary,
                       std::vector<AddedToken>& added);

}  // namespace oga
