// The tokenizer of a model folder: the bytes of its tokens, the tokens with a role, encoding.
//
// Immutable and shared; any thread. What encoding needs is read when it is first asked for, since most of a tokenizer's
// file is for it alone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/genai_config.h"
#include "step/token_bytes.h"
#include "text/text_encoder.h"
#include "text/tokenizer_json.h"

namespace oga {

// Ids of tokens with a role, as far as the folder names them.
struct TokenRoles {
  std::optional<TokenId> bos;
  std::optional<TokenId> pad;
  std::vector<TokenId> eos;
  MarkerTokenIds markers;
};

class Tokenizer {
 public:
  // The tokenizer of a folder. Roles are those of its genai_config.json; of tokenizer_config.json when it has none.
  // Throws what ReadTokenizerFiles and MakeTokenBytes throw, and for a config that is damaged what GenaiConfig throws.
  static std::shared_ptr<const Tokenizer> FromFolder(const std::string& folder);
  static std::shared_ptr<const Tokenizer> FromConfig(const GenaiConfig& config);

  Tokenizer(TokenizerFiles files, TokenRoles roles);

  const std::string& folder() const { return files_->folder; }
  const JsonValue& settings() const { return files_->settings; }  // tokenizer_config.json
  const TokenRoles& roles() const { return roles_; }
  const std::shared_ptr<const TokenBytes>& token_bytes() const { return token_bytes_; }

  // The id of the token that the files write like this.
  std::optional<TokenId> FindToken(std::string_view text) const;

  // As TextEncoder::Encode. Throws Error{kUnsupported} too for a tokenizer that cannot be encoded with, by name.
  std::vector<TokenId> Encode(std::string_view text, bool add_special) const;

 private:
  std::shared_ptr<const TokenizerFiles> files_;
  TokenRoles roles_;
  std::shared_ptr<const TokenBytes> token_bytes_;
  mutable std::mutex encoder_mutex_;
  mutable std::unique_ptr<const TextEncoder> encoder_;  // null until it is needed
};

}  // namespace oga
