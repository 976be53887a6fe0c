// A model's vocabulary as llguidance wants it. One per model.
//
// Immutable once built; any thread. It keeps the token bytes alive.
//
// G1 A token that the tokenizer does not know, or whose bytes no text has, is in no mask.
// G2 A special token stands for itself, never for the characters of its name. EOS ids are special whatever the tokenizer
//    says.
// A token's bytes are those it has inside a text: where a decoder drops a space at the very beginning, a grammar that wants
// one there is followed and the text lacks it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/llguidance_abi.h"
#include "step/ids.h"
#include "step/token_bytes.h"

namespace oga::grammar {

class GrammarTokenizer {
 public:
  // The ids of a text without special tokens around it, as the model's own tokenizer would cut it. Called from any
  // thread; may throw. Ids whose bytes are not exactly the text are not used.
  using Encoder = std::function<std::vector<TokenId>(std::string_view text)>;

  // `vocab_size` is the width of the logits, and so of a mask. With an encoder, text that a grammar leaves no choice
  // about is forced in the tokens the model was trained on, several at once; without one the model cuts it as it likes.
  // Throws Error: kUnsupported when llguidance is missing, kModelError when it refuses the vocabulary.
  GrammarTokenizer(std::shared_ptr<const TokenBytes> token_bytes, size_t vocab_size,
                   std::span<const TokenId> eos_token_ids, Encoder encode = {});
  ~GrammarTokenizer();

  GrammarTokenizer(const GrammarTokenizer&) = delete;
  GrammarTokenizer& operator=(const GrammarTokenizer&) = delete;

  const LlgFunctions& functions() const { return functions_; }
  const LlgTokenizer* handle() const { return handle_; }
  size_t vocab_size() const { return vocab_size_; }
  size_t mask_words() const { return (vocab_size_ + 31) / 32; }
  const std::vector<TokenId>& eos_token_ids() const { return eos_token_ids_; }
  const TokenBytes& token_bytes() const { return *token_bytes_; }

 private:
  static size_t Tokenize(const void* self, const uint8_t* bytes, size_t length, uint32_t* tokens, size_t capacity);
  std::vector<TokenId> EncodeExactly(std::string_view text) const;
  void AppendGreedily(std::string_view text, std::vector<TokenId>& ids) const;
  TokenId LongestPrefix(std::string_view text) const;
  bool IsSpecial(TokenId id) const;
  std::string_view TextOf(TokenId id) const;
  void Create();

  const LlgFunctions& functions_;
  std::shared_ptr<const TokenBytes> token_bytes_;
  size_t vocab_size_;
  std::vector<TokenId> eos_token_ids_;
  Encoder encode_;
  std::vector<TokenId> by_bytes_;  // ids of ordinary tokens in the order of their bytes; only with an encoder
  size_t longest_bytes_ = 0;
  LlgTokenizer* handle_ = nullptr;
};

}  // namespace oga::grammar
