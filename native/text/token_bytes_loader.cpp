#include "text/token_bytes_loader.h"

#include <algorithm>
#include <string_view>

#include "text/token_decoder.h"

namespace oga {

namespace {

// What the table is made from: the text and the flags of each id. Added tokens cover the vocabulary.
struct WrittenToken {
  std::string_view text;
  uint8_t flags = 0;
};

std::vector<WrittenToken> ListTokens(const TokenizerFiles& files) {
  std::vector<WrittenToken> tokens(files.vocabulary.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (files.vocabulary.Has(id)) tokens[i] = {files.vocabulary.TextOf(id), TokenBytes::kKnown};
  }
  for (const AddedToken& added : files.added_tokens) {
    const auto at = static_cast<size_t>(added.id);
    tokens.resize(std::max(tokens.size(), at + 1));
    const int flags = TokenBytes::kKnown | (added.special ? TokenBytes::kSpecial : 0);
    tokens[at] = {added.content, static_cast<uint8_t>(flags)};
  }
  return tokens;
}

void Append(const DecodedToken& token, std::vector<uint32_t>& offsets, std::string& bytes) {
  bytes += token.bytes;
  offsets.push_back(static_cast<uint32_t>(bytes.size()));
}

}  // namespace

TokenBytes MakeTokenBytes(const TokenizerFiles& files) {
  const TokenDecoder decoder = ReadTokenDecoder(JsonObject(files.root, ""));
  TokenBytes table;
  table.strip_character = decoder.strip_character;
  table.strip_count = decoder.strip_count;
  const bool first_differs = decoder.first_differs();
  if (first_differs) table.first_offsets.push_back(0);
  for (const WrittenToken& token : ListTokens(files)) {
    const DecodedToken decoded = DecodeToken(decoder, token.text, /*is_first=*/false);
    const bool is_known = (token.flags & TokenBytes::kKnown) != 0;
    Append(is_known ? decoded : DecodedToken{}, table.offsets, table.bytes);
    table.flags.push_back(static_cast<uint8_t>(token.flags | (decoded.is_byte ? TokenBytes::kByte : 0)));
    if (!first_differs) continue;
    const DecodedToken first = DecodeToken(decoder, token.text, /*is_first=*/true);
    Append(is_known ? first : DecodedToken{}, table.first_offsets, table.first_bytes);
  }
  return table;
}

std::vector<uint32_t> SampleableBitmask(const TokenBytes& tokens, int32_t vocab_size) {
  std::vector<uint32_t> words((static_cast<size_t>(std::max(vocab_size, 0)) + 31) / 32, 0);
  for (TokenId id = 0; id < vocab_size; ++id) {
    if (tokens.IsKnown(id)) words[static_cast<size_t>(id) / 32] |= uint32_t{1} << (id % 32);
  }
  return words;
}

}  // namespace oga
