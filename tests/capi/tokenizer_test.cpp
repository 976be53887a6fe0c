#include <oga/tokenizer.h>

#include <filesystem>
#include <fstream>

#include "capi/harness.h"
#include "support/temp_folder.h"

namespace oga::capi_test {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<int32_t>;
using TokenizerHandle = Owned<OgaTokenizer, OgaDestroyTokenizer>;
using StreamHandle = Owned<OgaTokenizerStream, OgaDestroyTokenizerStream>;
using SequencesHandle = Owned<OgaSequences, OgaDestroySequences>;

TokenizerHandle MakeTokenizer(const std::string& folder) {
  OgaTokenizer* tokenizer = nullptr;
  Must(OgaCreateTokenizerFromPath(folder.c_str(), &tokenizer));
  return TokenizerHandle(tokenizer);
}

StreamHandle MakeStream(const TokenizerHandle& tokenizer) {
  OgaTokenizerStream* stream = nullptr;
  Must(OgaCreateTokenizerStream(tokenizer.get(), &stream));
  return StreamHandle(stream);
}

void SetOption(const TokenizerHandle& tokenizer, const char* key, const char* value) {
  Must(OgaUpdateTokenizerOptions(tokenizer.get(), &key, &value, 1));
}

Tokens Encode(const TokenizerHandle& tokenizer, const std::string& text) {
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  const SequencesHandle owned(sequences);
  Must(OgaTokenizerEncode(tokenizer.get(), text.c_str(), sequences));
  const int32_t* data = OgaSequencesGetSequenceData(sequences, 0);
  return {data, data + OgaSequencesGetSequenceCount(sequences, 0)};
}

std::string TakeString(const char* owned) {
  const std::string text = owned;
  OgaDestroyString(owned);
  return text;
}

std::string Decode(const TokenizerHandle& tokenizer, const Tokens& tokens) {
  const char* text = nullptr;
  Must(OgaTokenizerDecode(tokenizer.get(), tokens.data(), tokens.size(), &text));
  return TakeString(text);
}

std::string Next(const StreamHandle& stream, int32_t token) {
  const char* piece = nullptr;
  Must(OgaTokenizerStreamDecode(stream.get(), token, &piece));
  return piece;
}

std::string Finish(const StreamHandle& stream) {
  const char* piece = nullptr;
  size_t count = 0;
  Must(OgaTokenizerStreamFinish(stream.get(), &piece, &count));
  EXPECT_EQ(piece[count], '\0');
  return std::string(piece, count);
}

int32_t TokenId(const TokenizerHandle& tokenizer, const char* text) {
  int32_t id = 0;
  Must(OgaTokenizerToTokenId(tokenizer.get(), text, &id));
  return id;
}

// A copy of a tokenizer's folder with more files, gone at the end.
class Folder {
 public:
  Folder(const std::string& kind, const std::map<std::string, std::string>& files) {
    fs::copy_file(test::TextFolder(kind) + "/tokenizer.json", folder_.path() / "tokenizer.json");
    for (const auto& [name, content] : files) std::ofstream(folder_.path() / name) << content;
  }
  std::string path() const { return folder_.path().native(); }

 private:
  const test::TempFolder folder_;
};

constexpr const char* kConfig = R"({"model": {"type": "t", "vocab_size": 430, "context_length": 8,
    "bos_token_id": 0, "eos_token_id": [2, 7], "pad_token_id": 9, "bot_token_id": 11, "eot_token_id": 12,
    "bor_token_id": 13, "eor_token_id": 14, "decoder": {"filename": "m", "num_hidden_layers": 1,
    "num_attention_heads": 1, "num_key_value_heads": 1, "head_size": 1}}})";
constexpr const char* kSettings = R"({"bos_token": "<|bos|>", "eos_token": {"content": "<|im_end|>"},
    "chat_template": "the folder's template"})";

TEST(Tokenizer, TextSurvivesTheRoundTrip) {
  for (const char* kind : {"byte_level", "smollm2", "gemma", "llama2", "mistral"}) {
    const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder(kind));
    for (const std::string text : {"Hello world", "", "日本語 🙂 e\u0301", "a  b\n\tc <3"}) {
      EXPECT_EQ(Decode(tokenizer, Encode(tokenizer, text)), text) << kind;
    }
  }
}

TEST(Tokenizer, AddsAndHidesSpecialTokensAsItsOptionsSay) {
  const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("llama2"));
  const Tokens plain = Encode(tokenizer, "hello");
  SetOption(tokenizer, "add_special_tokens", "true");
  const Tokens framed = Encode(tokenizer, "hello");
  ASSERT_EQ(framed.size(), plain.size() + 1);
  EXPECT_EQ(framed[0], TokenId(tokenizer, "<|bos|>"));
  EXPECT_EQ(Decode(tokenizer, framed), "hello");
  SetOption(tokenizer, "skip_special_tokens", "0");
  EXPECT_EQ(Decode(tokenizer, framed), "<|bos|> hello");
  SetOption(tokenizer, "add_special_tokens", "0");
  EXPECT_EQ(Encode(tokenizer, "hello"), plain);
}

TEST(Tokenizer, RefusesOptionsThatItDoesNotHaveAndChangesNone) {
  const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("llama2"));
  const Tokens plain = Encode(tokenizer, "hello");
  const char* const keys[] = {"add_special_tokens", "add_specials"};
  const char* const values[] = {"true", "true"};
  EXPECT_TRUE(Fails(OgaUpdateTokenizerOptions(tokenizer.get(), keys, values, 2), OgaStatusCode_InvalidArgument,
                    "there is no tokenizer option 'add_specials'"));
  const char* const wrong[] = {"yes"};
  EXPECT_TRUE(Fails(OgaUpdateTokenizerOptions(tokenizer.get(), keys, wrong, 1), OgaStatusCode_InvalidArgument,
                    "add_special_tokens is 'yes'; it must be true or false"));
  const char* const null[] = {nullptr};
  EXPECT_TRUE(Fails(OgaUpdateTokenizerOptions(tokenizer.get(), null, values, 1), OgaStatusCode_InvalidArgument,
                    "keys[0] must not be null."));
  EXPECT_TRUE(Fails(OgaUpdateTokenizerOptions(tokenizer.get(), keys, null, 1), OgaStatusCode_InvalidArgument,
                    "values[0] must not be null."));
  EXPECT_TRUE(Succeeds(OgaUpdateTokenizerOptions(tokenizer.get(), nullptr, nullptr, 0)));
  EXPECT_EQ(Encode(tokenizer, "hello"), plain);
}

TEST(Tokenizer, StreamsWholeCharacters) {
  TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("byte_level"));
  const Tokens ids = Encode(tokenizer, "a🙃b");
  const StreamHandle stream = MakeStream(tokenizer);
  tokenizer.reset();
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = Next(stream, id);
    EXPECT_TRUE(piece == "" || piece == "a" || piece == "🙃" || piece == "b") << piece;
    text += piece;
  }
  EXPECT_EQ(text + Finish(stream), "a🙃b");
  EXPECT_EQ(Next(stream, ids[0]), "a") << "a finished stream starts afresh";
  EXPECT_EQ(Next(stream, ids[1]), "");
  EXPECT_EQ(Finish(stream), "\ufffd");
}

TEST(Tokenizer, KeepsNulCharactersWhereALengthGoesWithTheText) {
  const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("byte_level"));
  const Tokens tokens{TokenId(tokenizer, "a"), TokenId(tokenizer, "Ā"), TokenId(tokenizer, "b")};
  EXPECT_EQ(Decode(tokenizer, tokens), "ab");
  const StreamHandle stream = MakeStream(tokenizer);
  EXPECT_EQ(Next(stream, tokens[1]), "");
  const char* text = nullptr;
  size_t count = 0;
  ASSERT_TRUE(Succeeds(OgaTokenizerStreamDecodeTokens(stream.get(), tokens.data(), tokens.size(), &text, &count)));
  EXPECT_EQ(std::string(text, count), std::string("a\0b", 3));
  ASSERT_TRUE(Succeeds(OgaTokenizerStreamDecodeTokens(stream.get(), nullptr, 0, &text, &count)));
  EXPECT_EQ(count, 0u);
}

TEST(Tokenizer, TakesAnyTokenIds) {
  const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("byte_level"));
  EXPECT_EQ(Decode(tokenizer, {-1, INT32_MAX, INT32_MIN, 100000}), "");
  const char* text = nullptr;
  EXPECT_TRUE(Succeeds(OgaTokenizerDecode(tokenizer.get(), nullptr, 0, &text)));
  EXPECT_EQ(TakeString(text), "");
}

TEST(Tokenizer, FindsTokensAndTheirBytes) {
  const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("byte_level"));
  EXPECT_EQ(TokenId(tokenizer, "<|im_start|>"), 1);
  EXPECT_EQ(TokenId(tokenizer, "no such token"), -1);
  const uint8_t* bytes = nullptr;
  size_t count = 0;
  ASSERT_TRUE(Succeeds(OgaTokenizerGetTokenBytes(tokenizer.get(), TokenId(tokenizer, "Ġthe"), &bytes, &count)));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes), count), " the");
  ASSERT_TRUE(Succeeds(OgaTokenizerGetTokenBytes(tokenizer.get(), 100000, &bytes, &count)));
  EXPECT_EQ(count, 0u);
}

TEST(Tokenizer, TellsTheTokensWithARoleByTheConfig) {
  const Folder folder("byte_level", {{"genai_config.json", kConfig}, {"tokenizer_config.json", kSettings}});
  const TokenizerHandle tokenizer = MakeTokenizer(folder.path());
  const std::pair<OgaResult* (*)(const OgaTokenizer*, int32_t*), int32_t> roles[] = {
      {OgaTokenizerGetBosTokenId, 0},  {OgaTokenizerGetPadTokenId, 9},  {OgaTokenizerGetBotTokenId, 11},
      {OgaTokenizerGetEotTokenId, 12}, {OgaTokenizerGetBorTokenId, 13}, {OgaTokenizerGetEorTokenId, 14}};
  for (const auto& [get, wanted] : roles) {
    int32_t id = -7;
    EXPECT_TRUE(Succeeds(get(tokenizer.get(), &id)));
    EXPECT_EQ(id, wanted);
  }
  const int32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_TRUE(Succeeds(OgaTokenizerGetEosTokenIds(tokenizer.get(), &ids, &count)));
  EXPECT_EQ(Tokens(ids, ids + count), (Tokens{2, 7}));
}

TEST(Tokenizer, TellsTheTokensWithARoleByTheSettingsWhereThereIsNoConfig) {
  const TokenizerHandle tokenizer = MakeTokenizer(Folder("byte_level", {{"tokenizer_config.json", kSettings}}).path());
  int32_t id = -7;
  ASSERT_TRUE(Succeeds(OgaTokenizerGetBosTokenId(tokenizer.get(), &id)));
  EXPECT_EQ(id, 0);
  EXPECT_TRUE(Fails(OgaTokenizerGetPadTokenId(tokenizer.get(), &id), OgaStatusCode_NotFound, "names no pad token"));
  EXPECT_EQ(id, -1);
  EXPECT_TRUE(Fails(OgaTokenizerGetBotTokenId(tokenizer.get(), &id), OgaStatusCode_NotFound, "model.bot_token_id"));
  const int32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_TRUE(Succeeds(OgaTokenizerGetEosTokenIds(tokenizer.get(), &ids, &count)));
  EXPECT_EQ(Tokens(ids, ids + count), (Tokens{2}));
}

TEST(Tokenizer, ComesFromAConfigToo) {
  const Folder folder("byte_level", {{"genai_config.json", kConfig}});
  OgaConfig* config = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateConfig(folder.path().c_str(), &config)));
  const ConfigHandle owned(config);
  ASSERT_TRUE(Succeeds(OgaConfigOverlay(config, R"({"model": {"bos_token_id": 5}})")));
  OgaTokenizer* tokenizer = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateTokenizerFromConfig(config, &tokenizer)));
  const TokenizerHandle owned_tokenizer(tokenizer);
  int32_t id = -7;
  ASSERT_TRUE(Succeeds(OgaTokenizerGetBosTokenId(tokenizer, &id)));
  EXPECT_EQ(id, 5);
}

class TokenizerOfAModel : public WithEngine {};

TEST_F(TokenizerOfAModel, IsOptional) {
  OgaTokenizer* tokenizer = reinterpret_cast<OgaTokenizer*>(this);
  EXPECT_TRUE(Fails(OgaCreateTokenizer(model_.get(), &tokenizer), OgaStatusCode_NotFound,
                    ModelFolder() + "/tokenizer.json' does not exist; text needs it, token ids work without"));
  EXPECT_EQ(tokenizer, nullptr);
  EXPECT_EQ(Generate(Prompt(3), 4).size(), 4u);
}

// The model of the other tests in a folder with a tokenizer.
class ModelWithTokenizer {
 public:
  explicit ModelWithTokenizer(const std::string& tokenizer_json) {
    fs::copy(ModelFolder(), folder_.path(), fs::copy_options::recursive);
    fs::copy_file(tokenizer_json, folder_.path() / "tokenizer.json");
    OgaModel* model = nullptr;
    Must(OgaCreateModel(folder_.path().c_str(), &model));
    model_.reset(model);
  }

  OgaModel* get() const { return model_.get(); }
  void Destroy() { model_.reset(); }

 private:
  const test::TempFolder folder_;
  ModelHandle model_;
};

TEST_F(TokenizerOfAModel, OutlivesIt) {
  ModelWithTokenizer model(test::TextFolder("byte_level") + "/tokenizer.json");
  OgaTokenizer* tokenizer = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateTokenizer(model.get(), &tokenizer)));
  const TokenizerHandle owned(tokenizer);
  model.Destroy();
  EXPECT_EQ(Decode(owned, Encode(owned, "hello")), "hello");
}

// The tokenizer has 8 tokens, the logits have 61: those above are padding.
TEST_F(TokenizerOfAModel, KeepsTokensItDoesNotKnowFromBeingSampled) {
  const ModelWithTokenizer model(test::TextFolder("words") + "/tokenizer.json");
  const EngineHandle engine = MakeEngine(model.get());
  const BufferHandle buffer = MakeBuffer(engine.get());
  for (const bool samples : {false, true}) {
    const RequestHandle request = MakeRequest(engine.get());
    const TurnOptionsHandle options = ExactlyTokens(request.get(), 40);
    Must(OgaTurnOptionsSetDoSample(options.get(), samples));
    BeginTurn(request.get(), Prompt(4), options.get());
    const Tokens tokens = RunToEnd(engine.get(), buffer.get())[request.get()].tokens;
    EXPECT_EQ(tokens.size(), 40u);
    for (const int32_t token : tokens) EXPECT_LT(token, 8);
  }
}

TEST_F(TokenizerOfAModel, DoesNotHinderAModelWhenItCannotBeUsed) {
  const fs::path broken = fs::temp_directory_path() / "oga-broken-tokenizer.json";
  std::ofstream(broken) << "{";
  const ModelWithTokenizer model(broken.native());
  fs::remove(broken);
  const EngineHandle engine = MakeEngine(model.get());
  const BufferHandle buffer = MakeBuffer(engine.get());
  const RequestHandle request = MakeRequest(engine.get());
  BeginTurn(request.get(), Prompt(4), ExactlyTokens(request.get(), 5).get());
  EXPECT_EQ(RunToEnd(engine.get(), buffer.get())[request.get()].tokens, Generate(Prompt(4), 5));
  OgaTokenizer* tokenizer = nullptr;
  EXPECT_TRUE(Fails(OgaCreateTokenizer(model.get(), &tokenizer), OgaStatusCode_InvalidArgument, "not valid JSON"));
}

TEST(Tokenizer, NamesWhatIsWrongWithItsFolder) {
  OgaTokenizer* tokenizer = nullptr;
  EXPECT_TRUE(
      Fails(OgaCreateTokenizerFromPath("no/such/folder", &tokenizer), OgaStatusCode_NotFound, "no/such/folder"));
  const Folder broken("byte_level", {{"tokenizer.json", R"({"model": {"type": "BPE", "vocab": {}, "merges": []},
                                       "decoder": {"type": "WordPiece"}})"}});
  EXPECT_TRUE(Fails(OgaCreateTokenizerFromPath(broken.path().c_str(), &tokenizer), OgaStatusCode_Unsupported,
                    "the decoder 'WordPiece' is not supported"));
  const Folder config("byte_level", {{"genai_config.json", "{}"}});
  EXPECT_TRUE(Fails(OgaCreateTokenizerFromPath(config.path().c_str(), &tokenizer), OgaStatusCode_InvalidArgument,
                    "genai_config.json"));
}

TEST(Tokenizer, RefusesToEncodeWhatItWouldNotEncodeExactly) {
  const TokenizerHandle tokenizer = MakeTokenizer(test::TextFolder("unigram_always"));
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  const SequencesHandle owned(sequences);
  EXPECT_TRUE(Fails(OgaTokenizerEncode(tokenizer.get(), "x", sequences), OgaStatusCode_Unsupported,
                    "encoding by a Unigram model is not supported"));
  EXPECT_EQ(OgaSequencesCount(sequences), 0u);
  EXPECT_EQ(Decode(tokenizer, {TokenId(tokenizer, "▁the"), TokenId(tokenizer, "▁world")}), "the world");
}

// One library is used for the life of a process, so this is one test: without it, then with one that echoes.
TEST(Tokenizer, RendersConversationsWhereTheLibraryForThatIsThere) {
  unsetenv("OGA_ORTX_LIBRARY");
  const TokenizerHandle tokenizer = MakeTokenizer(Folder("byte_level", {{"tokenizer_config.json", kSettings}}).path());
  const auto apply = [&](const char* chat_template, const char* messages, const char* tools, const char** out) {
    return OgaTokenizerApplyChatTemplate(tokenizer.get(), chat_template, messages, tools, true, out);
  };
  const char* const hello = R"([{"role": "user", "content": "\"hello\""}])";
  const char* text = nullptr;
  EXPECT_TRUE(
      Fails(apply(nullptr, hello, nullptr, &text), OgaStatusCode_Unsupported, "pip install onnxruntime-extensions"));
  EXPECT_EQ(text, nullptr);

  ASSERT_TRUE(Succeeds(OgaSetOrtExtensionsLibrary(test::DataPath("libfake_extensions.so").c_str())));
  const std::string settings =
      R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|bos|>", "eos_token": "<|im_end|>"})";
  ASSERT_TRUE(Succeeds(apply(nullptr, hello, nullptr, &text)));
  EXPECT_EQ(TakeString(text), settings + "|the folder's template|" + hello + "|no tools|1|0|1");
  ASSERT_TRUE(Succeeds(apply("given", hello, "", &text)));
  EXPECT_EQ(TakeString(text), settings + "|given|" + hello + "|no tools|1|0|1");

  EXPECT_TRUE(Fails(apply("refuse", hello, nullptr, &text), OgaStatusCode_InvalidArgument, "roles must alternate"));
  EXPECT_TRUE(Fails(apply("t", hello, "[]", &text), OgaStatusCode_Unsupported, "tools cannot be rendered here"));
  for (const char* wrong : {"", "nothing", "{}", "[]", "[1]", R"([{"role": "user"}])", R"([{"content": "x"}])"}) {
    EXPECT_TRUE(Fails(apply("t", wrong, nullptr, &text), OgaStatusCode_InvalidArgument, "messages")) << wrong;
  }
  EXPECT_TRUE(Fails(apply("t", R"([{"role": "user", "content": [1]}])", nullptr, &text), OgaStatusCode_Unsupported,
                    "messages[0].content is a list of 1 value"));
  EXPECT_TRUE(Fails(OgaSetOrtExtensionsLibrary("another.so"), OgaStatusCode_InvalidState, "already in use"));
  EXPECT_TRUE(Succeeds(OgaSetOrtExtensionsLibrary(nullptr)));

  const TokenizerHandle bare = MakeTokenizer(test::TextFolder("byte_level"));
  EXPECT_TRUE(Fails(OgaTokenizerApplyChatTemplate(bare.get(), nullptr, hello, nullptr, true, &text),
                    OgaStatusCode_NotFound, "there is no chat template"));
}

}  // namespace
}  // namespace oga::capi_test
