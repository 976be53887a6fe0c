#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "capi/boundary.h"
#include "text/chat_template.h"

using oga::Field;
using oga::StatusCode;
using oga::Throw;
using oga::TokenId;
using oga::capi::Guard;
using oga::capi::NewString;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

std::string WithoutNul(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\0'), text.end());
  return text;
}

std::span<const TokenId> Tokens(const int32_t* tokens, size_t count) {
  if (count > 0) Require(tokens, "tokens");
  return {tokens, count};
}

bool ReadFlag(std::string_view key, std::string_view value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  Throw(StatusCode::kInvalidArgument, Field{std::string(key)}, "the tokenizer option ", std::string(key), " is '",
        std::string(value), "'; it must be true or false");
}

// The options with one more change. Throws for an option that there is not.
OgaTokenizer WithOption(OgaTokenizer options, const char* key, const char* value, size_t index) {
  if (key == nullptr) Throw(StatusCode::kInvalidArgument, Field{"keys"}, "keys[", index, "] must not be null.");
  if (value == nullptr) Throw(StatusCode::kInvalidArgument, Field{"values"}, "values[", index, "] must not be null.");
  const std::string_view name = key;
  if (name == "add_special_tokens") {
    options.add_special_tokens = ReadFlag(name, value);
  } else if (name == "skip_special_tokens") {
    options.skip_special_tokens = ReadFlag(name, value);
  } else {
    Throw(StatusCode::kInvalidArgument, Field{key}, "there is no tokenizer option '", key,
          "'; the options are add_special_tokens and skip_special_tokens");
  }
  return options;
}

// Writes the id in a role. `select` takes it from the roles, `role` names it when there is none.
template <typename Select>
OgaResult* GetRole(const OgaTokenizer* tokenizer, int32_t* token_id, const char* role, const Select& select) {
  return Guard([&] {
    RequireOut<int32_t>(token_id, -1, "token_id");
    const std::optional<TokenId> id = select(Require(tokenizer, "tokenizer").tokenizer->roles());
    if (!id) {
      const std::string key = oga::Message("model.", role, "_token_id");
      Throw(StatusCode::kNotFound, Field{key}, "this model names no ", role, " token (", key, " in genai_config.json)");
    }
    *token_id = *id;
  });
}

void HandOut(const std::string& piece, const char** out, size_t* byte_count) {
  *out = piece.c_str();
  *byte_count = piece.size();
}

}  // namespace

OgaResult* OGA_API_CALL OgaCreateTokenizer(const OgaModel* model, OgaTokenizer** out) {
  return Guard([&] {
    RequireOut<OgaTokenizer*>(out, nullptr);
    *out = new OgaTokenizer{Require(model, "model").model->tokenizer()};
  });
}

OgaResult* OGA_API_CALL OgaCreateTokenizerFromConfig(const OgaConfig* config, OgaTokenizer** out) {
  return Guard([&] {
    RequireOut<OgaTokenizer*>(out, nullptr);
    *out = new OgaTokenizer{oga::Tokenizer::FromConfig(Require(config, "config").config)};
  });
}

OgaResult* OGA_API_CALL OgaCreateTokenizerFromPath(const char* config_path, OgaTokenizer** out) {
  return Guard([&] {
    RequireOut<OgaTokenizer*>(out, nullptr);
    *out = new OgaTokenizer{oga::Tokenizer::FromFolder(&Require(config_path, "config_path"))};
  });
}

void OGA_API_CALL OgaDestroyTokenizer(OgaTokenizer* tokenizer) { delete tokenizer; }

OgaResult* OGA_API_CALL OgaUpdateTokenizerOptions(OgaTokenizer* tokenizer, const char* const* keys,
                                                  const char* const* values, size_t num_options) {
  return Guard([&] {
    OgaTokenizer changed = Require(tokenizer, "tokenizer");
    if (num_options > 0) {
      Require(keys, "keys");
      Require(values, "values");
    }
    for (size_t i = 0; i < num_options; ++i) changed = WithOption(std::move(changed), keys[i], values[i], i);
    *tokenizer = std::move(changed);
  });
}

OgaResult* OGA_API_CALL OgaTokenizerEncode(const OgaTokenizer* tokenizer, const char* str, OgaSequences* sequences) {
  return Guard([&] {
    const OgaTokenizer& source = Require(tokenizer, "tokenizer");
    const char* text = &Require(str, "str");
    auto& list = Require(sequences, "sequences").sequences;
    list.push_back(source.tokenizer->Encode(text, source.add_special_tokens));
  });
}

OgaResult* OGA_API_CALL OgaTokenizerDecode(const OgaTokenizer* tokenizer, const int32_t* tokens, size_t token_count,
                                           const char** out_string) {
  return Guard([&] {
    RequireOut<const char*>(out_string, nullptr, "out_string");
    const OgaTokenizer& source = Require(tokenizer, "tokenizer");
    *out_string = NewString(WithoutNul(
        oga::DecodeText(source.tokenizer->token_bytes(), Tokens(tokens, token_count), source.skip_special_tokens)));
  });
}

OgaResult* OGA_API_CALL OgaTokenizerApplyChatTemplate(const OgaTokenizer* tokenizer, const char* template_str,
                                                      const char* messages, const char* tools,
                                                      bool add_generation_prompt, const char** out_string) {
  return Guard([&] {
    RequireOut<const char*>(out_string, nullptr, "out_string");
    const oga::Tokenizer& source = *Require(tokenizer, "tokenizer").tokenizer;
    const std::string conversation = &Require(messages, "messages");
    if (tools != nullptr && *tools != '\0') {
      Throw(StatusCode::kUnsupported, Field{"tools"},
            "tools cannot be rendered here: onnxruntime-extensions drops parts of their definitions. Render the "
            "conversation in Python with oga.ChatTemplate, or write the tools into a message");
    }
    const bool is_given = template_str != nullptr && *template_str != '\0';
    const std::string chosen = is_given ? template_str : oga::ReadChatTemplate(source);
    *out_string = NewString(oga::RenderConversation(source, chosen, conversation, add_generation_prompt));
  });
}

OgaResult* OGA_API_CALL OgaTokenizerToTokenId(const OgaTokenizer* tokenizer, const char* str, int32_t* token_id) {
  return Guard([&] {
    RequireOut<int32_t>(token_id, -1, "token_id");
    const OgaTokenizer& source = Require(tokenizer, "tokenizer");
    *token_id = source.tokenizer->FindToken(&Require(str, "str")).value_or(-1);
  });
}

OgaResult* OGA_API_CALL OgaTokenizerGetTokenBytes(const OgaTokenizer* tokenizer, int32_t token, const uint8_t** bytes,
                                                  size_t* byte_count) {
  return Guard([&] {
    RequireOut<const uint8_t*>(bytes, nullptr, "bytes");
    RequireOut<size_t>(byte_count, 0, "byte_count");
    const std::string_view found = Require(tokenizer, "tokenizer").tokenizer->token_bytes()->Of(token);
    *bytes = reinterpret_cast<const uint8_t*>(found.data());
    *byte_count = found.size();
  });
}

OgaResult* OGA_API_CALL OgaTokenizerGetBosTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return GetRole(tokenizer, token_id, "bos", [](const oga::TokenRoles& roles) { return roles.bos; });
}

OgaResult* OGA_API_CALL OgaTokenizerGetEosTokenIds(const OgaTokenizer* tokenizer, const int32_t** eos_token_ids,
                                                   size_t* token_count) {
  return Guard([&] {
    RequireOut<const int32_t*>(eos_token_ids, nullptr, "eos_token_ids");
    RequireOut<size_t>(token_count, 0, "token_count");
    const std::vector<TokenId>& ids = Require(tokenizer, "tokenizer").tokenizer->roles().eos;
    *eos_token_ids = ids.data();
    *token_count = ids.size();
  });
}

OgaResult* OGA_API_CALL OgaTokenizerGetPadTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return GetRole(tokenizer, token_id, "pad", [](const oga::TokenRoles& roles) { return roles.pad; });
}

OgaResult* OGA_API_CALL OgaTokenizerGetBotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return GetRole(tokenizer, token_id, "bot", [](const auto& roles) { return roles.markers.tool_call_begin; });
}

OgaResult* OGA_API_CALL OgaTokenizerGetEotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return GetRole(tokenizer, token_id, "eot", [](const auto& roles) { return roles.markers.tool_call_end; });
}

OgaResult* OGA_API_CALL OgaTokenizerGetBorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return GetRole(tokenizer, token_id, "bor", [](const auto& roles) { return roles.markers.reasoning_begin; });
}

OgaResult* OGA_API_CALL OgaTokenizerGetEorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return GetRole(tokenizer, token_id, "eor", [](const auto& roles) { return roles.markers.reasoning_end; });
}

OgaResult* OGA_API_CALL OgaCreateTokenizerStream(const OgaTokenizer* tokenizer, OgaTokenizerStream** out) {
  return Guard([&] {
    RequireOut<OgaTokenizerStream*>(out, nullptr);
    const OgaTokenizer& source = Require(tokenizer, "tokenizer");
    *out = new OgaTokenizerStream{oga::TextStream(source.tokenizer->token_bytes(), source.skip_special_tokens), {}};
  });
}

void OGA_API_CALL OgaDestroyTokenizerStream(OgaTokenizerStream* stream) { delete stream; }

OgaResult* OGA_API_CALL OgaTokenizerStreamDecode(OgaTokenizerStream* stream, int32_t token, const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    OgaTokenizerStream& source = Require(stream, "stream");
    source.piece.clear();
    source.stream.Append(token, source.piece);
    source.piece = WithoutNul(std::move(source.piece));
    *out = source.piece.c_str();
  });
}

OgaResult* OGA_API_CALL OgaTokenizerStreamDecodeTokens(OgaTokenizerStream* stream, const int32_t* tokens,
                                                       size_t token_count, const char** out, size_t* byte_count) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    RequireOut<size_t>(byte_count, 0, "byte_count");
    OgaTokenizerStream& source = Require(stream, "stream");
    const std::span<const TokenId> ids = Tokens(tokens, token_count);
    source.piece.clear();
    for (const TokenId token : ids) source.stream.Append(token, source.piece);
    HandOut(source.piece, out, byte_count);
  });
}

OgaResult* OGA_API_CALL OgaTokenizerStreamFinish(OgaTokenizerStream* stream, const char** out, size_t* byte_count) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    RequireOut<size_t>(byte_count, 0, "byte_count");
    OgaTokenizerStream& source = Require(stream, "stream");
    source.piece.clear();
    source.stream.Finish(source.piece);
    HandOut(source.piece, out, byte_count);
  });
}
