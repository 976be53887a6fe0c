#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "config/config_file.h"
#include "config/read_file.h"
#include "text/token_bytes_loader.h"

namespace oga {

namespace {

// Added tokens cover the vocabulary.
std::optional<TokenId> Find(const TokenizerFiles& files, std::string_view text) {
  const auto& added = files.added_tokens;
  const auto found = std::find_if(added.begin(), added.end(), [&](const auto& token) { return token.content == text; });
  return found != added.end() ? std::optional(found->id) : files.vocabulary.Find(text);
}

TokenRoles RolesOf(const GenaiConfig& config) {
  return {.bos = config.bos_token_id(),
          .pad = config.pad_token_id(),
          .eos = config.eos_token_ids(),
          .markers = config.marker_token_ids()};
}

TokenRoles RolesOf(const TokenizerFiles& files) {
  const auto id = [&](const char* role) -> std::optional<TokenId> {
    const std::optional<std::string> text = TokenOfRole(files.settings, role);
    return text ? Find(files, *text) : std::nullopt;
  };
  TokenRoles roles{.bos = id("bos_token"), .pad = id("pad_token"), .eos = {}, .markers = {}};
  if (const std::optional<TokenId> eos = id("eos_token")) roles.eos.push_back(*eos);
  return roles;
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::FromFolder(const std::string& folder) {
  const std::string absolute = AbsoluteFolder(folder);
  CheckFolder(absolute, kTokenizerFileName);
  if (FileExists(absolute + "/" + kConfigFileName)) return FromConfig(GenaiConfig::FromFolder(absolute));
  TokenizerFiles files = ReadTokenizerFiles(absolute);
  TokenRoles roles = RolesOf(files);
  return std::make_shared<const Tokenizer>(std::move(files), std::move(roles));
}

std::shared_ptr<const Tokenizer> Tokenizer::FromConfig(const GenaiConfig& config) {
  return std::make_shared<const Tokenizer>(ReadTokenizerFiles(config.folder()), RolesOf(config));
}

Tokenizer::Tokenizer(TokenizerFiles files, TokenRoles roles)
    : files_(std::make_shared<const TokenizerFiles>(std::move(files))),
      roles_(std::move(roles)),
      token_bytes_(std::make_shared<const TokenBytes>(MakeTokenBytes(*files_))) {}

std::optional<TokenId> Tokenizer::FindToken(std::string_view text) const { return Find(*files_, text); }

std::vector<TokenId> Tokenizer::Encode(std::string_view text, bool add_special) const {
  const TextEncoder* encoder = nullptr;
  {
    const std::lock_guard lock(encoder_mutex_);
    if (!encoder_) encoder_ = std::make_unique<const TextEncoder>(files_, ReadMerges(files_->folder));
    encoder = encoder_.get();
  }
  return encoder->Encode(text, add_special);
}

}  // namespace oga
