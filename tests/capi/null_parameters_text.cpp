// NULL for the functions of text: tokenizers, and the options of what a turn tells and must look like.
#include "capi/null_parameters.h"

namespace oga::capi_test {

// Options of what a turn tells and must look like.
std::vector<NullCase> NullParameters::OutputCases() {
  static const int32_t kToken = 1;
  return {
      {"OgaTurnOptionsSetStopStrings", "options", [] { return OgaTurnOptionsSetStopStrings(nullptr, nullptr); }},
      {"OgaTurnOptionsSetStopStrings", "stop_strings",
       [&] { return OgaTurnOptionsSetStopStrings(options_.get(), nullptr); }},
      {"OgaTurnOptionsSetEmitText", "options", [] { return OgaTurnOptionsSetEmitText(nullptr, true, false); }},
      {"OgaTurnOptionsSetGuidance", "options", [] { return OgaTurnOptionsSetGuidance(nullptr, "regex", "a"); }},
      {"OgaTurnOptionsSetGuidance", "guidance_type",
       [&] { return OgaTurnOptionsSetGuidance(options_.get(), nullptr, "a"); }},
      {"OgaTurnOptionsSetGuidance", "guidance_data",
       [&] { return OgaTurnOptionsSetGuidance(options_.get(), "regex", nullptr); }},
      {"OgaTurnOptionsSetDelimitedGuidance", "options",
       [] { return OgaTurnOptionsSetDelimitedGuidance(nullptr, 1, 2, "start: \"a\""); }},
      {"OgaTurnOptionsSetDelimitedGuidance", "grammar",
       [&] { return OgaTurnOptionsSetDelimitedGuidance(options_.get(), 1, 2, nullptr); }},
      {"OgaTurnOptionsClearGuidance", "options", [] { return OgaTurnOptionsClearGuidance(nullptr); }},
      {"OgaTurnOptionsSetLogprobs", "options", [] { return OgaTurnOptionsSetLogprobs(nullptr, 1, false); }},
      {"OgaTurnOptionsSetLogprobTokens", "options", [] { return OgaTurnOptionsSetLogprobTokens(nullptr, &kToken, 1); }},
      {"OgaTurnOptionsSetLogprobTokens", "tokens",
       [&] { return OgaTurnOptionsSetLogprobTokens(options_.get(), nullptr, 1); }},
      {"OgaTurnOptionsSetPromptLogprobs", "options", [] { return OgaTurnOptionsSetPromptLogprobs(nullptr, 1); }},
  };
}

std::vector<NullCase> NullParameters::TokenizerCases() {
  static const int32_t kToken = 1;
  static const char* const kKeys[] = {"skip_special_tokens"};
  const OgaTokenizer* source = tokenizer_.get();
  return {
      {"OgaCreateTokenizer", "model", [&] { return OgaCreateTokenizer(nullptr, &tokenizer_out_); }},
      {"OgaCreateTokenizer", "out", [&] { return OgaCreateTokenizer(model_.get(), nullptr); }},
      {"OgaCreateTokenizerFromConfig", "config",
       [&] { return OgaCreateTokenizerFromConfig(nullptr, &tokenizer_out_); }},
      {"OgaCreateTokenizerFromConfig", "out", [&] { return OgaCreateTokenizerFromConfig(config_.get(), nullptr); }},
      {"OgaCreateTokenizerFromPath", "config_path",
       [&] { return OgaCreateTokenizerFromPath(nullptr, &tokenizer_out_); }},
      {"OgaCreateTokenizerFromPath", "out", [] { return OgaCreateTokenizerFromPath("folder", nullptr); }},
      {"OgaDestroyTokenizer", "", [] { return OgaDestroyTokenizer(nullptr), nullptr; }},
      {"OgaUpdateTokenizerOptions", "tokenizer", [] { return OgaUpdateTokenizerOptions(nullptr, kKeys, kKeys, 1); }},
      {"OgaUpdateTokenizerOptions", "keys",
       [&] { return OgaUpdateTokenizerOptions(tokenizer_.get(), nullptr, kKeys, 1); }},
      {"OgaUpdateTokenizerOptions", "values",
       [&] { return OgaUpdateTokenizerOptions(tokenizer_.get(), kKeys, nullptr, 1); }},
      {"OgaTokenizerEncode", "tokenizer", [&] { return OgaTokenizerEncode(nullptr, "a", sequences_.get()); }},
      {"OgaTokenizerEncode", "str", [=, this] { return OgaTokenizerEncode(source, nullptr, sequences_.get()); }},
      {"OgaTokenizerEncode", "sequences", [=] { return OgaTokenizerEncode(source, "a", nullptr); }},
      {"OgaTokenizerDecode", "tokenizer", [&] { return OgaTokenizerDecode(nullptr, &kToken, 1, &string_out_); }},
      {"OgaTokenizerDecode", "tokens", [=, this] { return OgaTokenizerDecode(source, nullptr, 1, &string_out_); }},
      {"OgaTokenizerDecode", "out_string", [=] { return OgaTokenizerDecode(source, &kToken, 1, nullptr); }},
      {"OgaTokenizerApplyChatTemplate", "tokenizer",
       [&] { return OgaTokenizerApplyChatTemplate(nullptr, "t", "[]", nullptr, true, &string_out_); }},
      {"OgaTokenizerApplyChatTemplate", "messages",
       [=, this] { return OgaTokenizerApplyChatTemplate(source, "t", nullptr, nullptr, true, &string_out_); }},
      {"OgaTokenizerApplyChatTemplate", "out_string",
       [=] { return OgaTokenizerApplyChatTemplate(source, "t", "[]", nullptr, true, nullptr); }},
      {"OgaTokenizerToTokenId", "tokenizer", [&] { return OgaTokenizerToTokenId(nullptr, "a", &i32_out_); }},
      {"OgaTokenizerToTokenId", "str", [=, this] { return OgaTokenizerToTokenId(source, nullptr, &i32_out_); }},
      {"OgaTokenizerToTokenId", "token_id", [=] { return OgaTokenizerToTokenId(source, "a", nullptr); }},
      {"OgaTokenizerGetTokenBytes", "tokenizer",
       [&] { return OgaTokenizerGetTokenBytes(nullptr, 0, &bytes_out_, &size_out_); }},
      {"OgaTokenizerGetTokenBytes", "bytes",
       [=, this] { return OgaTokenizerGetTokenBytes(source, 0, nullptr, &size_out_); }},
      {"OgaTokenizerGetTokenBytes", "byte_count",
       [=, this] { return OgaTokenizerGetTokenBytes(source, 0, &bytes_out_, nullptr); }},
      {"OgaTokenizerGetEosTokenIds", "tokenizer",
       [&] { return OgaTokenizerGetEosTokenIds(nullptr, &tokens_out_, &size_out_); }},
      {"OgaTokenizerGetEosTokenIds", "eos_token_ids",
       [=, this] { return OgaTokenizerGetEosTokenIds(source, nullptr, &size_out_); }},
      {"OgaTokenizerGetEosTokenIds", "token_count",
       [=, this] { return OgaTokenizerGetEosTokenIds(source, &tokens_out_, nullptr); }},
  };
}

std::vector<NullCase> NullParameters::TokenizerStreamCases() {
  static const int32_t kToken = 1;
  OgaTokenizerStream* stream = tokenizer_stream_.get();
  return {
      {"OgaCreateTokenizerStream", "tokenizer",
       [&] { return OgaCreateTokenizerStream(nullptr, &tokenizer_stream_out_); }},
      {"OgaCreateTokenizerStream", "out", [&] { return OgaCreateTokenizerStream(tokenizer_.get(), nullptr); }},
      {"OgaDestroyTokenizerStream", "", [] { return OgaDestroyTokenizerStream(nullptr), nullptr; }},
      {"OgaTokenizerStreamDecode", "stream", [&] { return OgaTokenizerStreamDecode(nullptr, 0, &string_out_); }},
      {"OgaTokenizerStreamDecode", "out", [=] { return OgaTokenizerStreamDecode(stream, 0, nullptr); }},
      {"OgaTokenizerStreamDecodeTokens", "stream",
       [&] { return OgaTokenizerStreamDecodeTokens(nullptr, &kToken, 1, &string_out_, &size_out_); }},
      {"OgaTokenizerStreamDecodeTokens", "tokens",
       [=, this] { return OgaTokenizerStreamDecodeTokens(stream, nullptr, 1, &string_out_, &size_out_); }},
      {"OgaTokenizerStreamDecodeTokens", "out",
       [=, this] { return OgaTokenizerStreamDecodeTokens(stream, &kToken, 1, nullptr, &size_out_); }},
      {"OgaTokenizerStreamDecodeTokens", "byte_count",
       [=, this] { return OgaTokenizerStreamDecodeTokens(stream, &kToken, 1, &string_out_, nullptr); }},
      {"OgaTokenizerStreamFinish", "stream",
       [&] { return OgaTokenizerStreamFinish(nullptr, &string_out_, &size_out_); }},
      {"OgaTokenizerStreamFinish", "out", [=, this] { return OgaTokenizerStreamFinish(stream, nullptr, &size_out_); }},
      {"OgaTokenizerStreamFinish", "byte_count",
       [=, this] { return OgaTokenizerStreamFinish(stream, &string_out_, nullptr); }},
  };
}

std::vector<NullCase> NullParameters::RoleCases() {
  std::vector<NullCase> cases;
  const std::pair<const char*, OgaResult* (*)(const OgaTokenizer*, int32_t*)> getters[] = {
      {"OgaTokenizerGetBosTokenId", OgaTokenizerGetBosTokenId},
      {"OgaTokenizerGetPadTokenId", OgaTokenizerGetPadTokenId},
      {"OgaTokenizerGetBotTokenId", OgaTokenizerGetBotTokenId},
      {"OgaTokenizerGetEotTokenId", OgaTokenizerGetEotTokenId},
      {"OgaTokenizerGetBorTokenId", OgaTokenizerGetBorTokenId},
      {"OgaTokenizerGetEorTokenId", OgaTokenizerGetEorTokenId}};
  for (const auto& [name, get] : getters) {
    const auto getter = get;
    cases.push_back({name, "tokenizer", [=, this] { return getter(nullptr, &i32_out_); }});
    cases.push_back({name, "token_id", [=, this] { return getter(tokenizer_.get(), nullptr); }});
  }
  return cases;
}

}  // namespace oga::capi_test
