// Text for C++17 hosts: OgaTokenizer and OgaTokenizerStream as classes over oga.hpp, whose rules hold here too.
//
//   oga::Tokenizer tokenizer(model);
//   request.BeginTurn(tokenizer.Encode("Once upon a time"));
//   oga::TokenizerStream text = tokenizer.CreateStream();
//   ...  Show(text.Decode(event.token()));
#ifndef OGA_TOKENIZER_HPP_
#define OGA_TOKENIZER_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oga.hpp"

namespace oga {
inline namespace v0 {

// Text from tokens that arrive one by one, in whole characters; made by Tokenizer::CreateStream.
class TokenizerStream : public Handle<OgaTokenizerStream, OgaDestroyTokenizerStream> {
 public:
  std::string Decode(int32_t token) { return Take(OgaTokenizerStreamDecodeTokens, &token, size_t{1}); }
  // What was held back; the stream starts afresh.
  std::string Finish() { return Take(OgaTokenizerStreamFinish); }

 private:
  friend class Tokenizer;
  explicit TokenizerStream(OgaTokenizerStream* pointer) noexcept : Handle(pointer) {}

  template <typename Function, typename... Arguments>
  std::string Take(Function function, Arguments... arguments) {
    const char* text = nullptr;
    size_t byte_count = 0;
    Check(function(get(), arguments..., &text, &byte_count));
    return std::string(text, byte_count);
  }
};

// Text to token ids and back. tokenizer.h says what is exact and what is refused.
class Tokenizer : public Handle<OgaTokenizer, OgaDestroyTokenizer> {
 public:
  explicit Tokenizer(const Model& model) : Handle(internal::Make<OgaTokenizer*>(OgaCreateTokenizer, model.get())) {}
  explicit Tokenizer(const Config& config)
      : Handle(internal::Make<OgaTokenizer*>(OgaCreateTokenizerFromConfig, config.get())) {}
  explicit Tokenizer(const std::string& folder)
      : Handle(internal::Make<OgaTokenizer*>(OgaCreateTokenizerFromPath, internal::Text(folder))) {}

  // "add_special_tokens" or "skip_special_tokens".
  void SetOption(const std::string& key, bool on) {
    const char* const keys[] = {internal::Text(key)};
    const char* const values[] = {on ? "true" : "false"};
    Check(OgaUpdateTokenizerOptions(get(), keys, values, 1));
  }

  std::vector<int32_t> Encode(const std::string& text) const {
    const Sequences sequences;
    Check(OgaTokenizerEncode(get(), internal::Text(text), sequences.get()));
    return sequences[0];
  }
  std::string Decode(const std::vector<int32_t>& tokens) const {
    return internal::TakeString(internal::Make<const char*>(OgaTokenizerDecode, get(), tokens.data(), tokens.size()));
  }
  TokenizerStream CreateStream() const {
    return TokenizerStream(internal::Make<OgaTokenizerStream*>(OgaCreateTokenizerStream, get()));
  }
  // A conversation, JSON, as text; an empty template takes the folder's.
  std::string ApplyChatTemplate(const std::string& messages, const std::string& chat_template = "",
                                bool add_generation_prompt = true) const {
    return internal::TakeString(internal::Make<const char*>(OgaTokenizerApplyChatTemplate, get(),
                                                            internal::Text(chat_template), internal::Text(messages),
                                                            nullptr, add_generation_prompt));
  }

  // -1 when there is no such token.
  int32_t ToTokenId(const std::string& token) const {
    return internal::Make<int32_t>(OgaTokenizerToTokenId, get(), internal::Text(token));
  }

  // What a token adds to a text: bytes, perhaps a part of a character; empty for a special token of no text.
  std::string token_bytes(int32_t token) const {
    const uint8_t* bytes = nullptr;
    size_t byte_count = 0;
    Check(OgaTokenizerGetTokenBytes(get(), token, &bytes, &byte_count));
    return std::string(bytes, bytes + byte_count);
  }

  // Tokens with a role. One that the model does not name is an Error with the code NotFound.
  int32_t bos_token_id() const { return internal::Make<int32_t>(OgaTokenizerGetBosTokenId, get()); }
  int32_t pad_token_id() const { return internal::Make<int32_t>(OgaTokenizerGetPadTokenId, get()); }
  int32_t bot_token_id() const { return internal::Make<int32_t>(OgaTokenizerGetBotTokenId, get()); }
  int32_t eot_token_id() const { return internal::Make<int32_t>(OgaTokenizerGetEotTokenId, get()); }
  int32_t bor_token_id() const { return internal::Make<int32_t>(OgaTokenizerGetBorTokenId, get()); }
  int32_t eor_token_id() const { return internal::Make<int32_t>(OgaTokenizerGetEorTokenId, get()); }

  // The tokens that end a turn, perhaps none.
  std::vector<int32_t> eos_token_ids() const {
    const int32_t* tokens = nullptr;
    size_t count = 0;
    Check(OgaTokenizerGetEosTokenIds(get(), &tokens, &count));
    return std::vector<int32_t>(tokens, tokens + count);
  }
};

}  // namespace v0
}  // namespace oga

#endif  // OGA_TOKENIZER_HPP_
