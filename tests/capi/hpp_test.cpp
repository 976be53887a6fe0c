// oga.hpp and tokenizer.hpp as a C++ host uses them. Only the public headers are included: they have to stand alone.
#include <gtest/gtest.h>
#include <oga/oga.hpp>
#include <oga/tokenizer.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/temp_folder.h"
#include "support/test_data.h"

namespace {

using Tokens = std::vector<int32_t>;

std::string ModelFolder() { return oga::test::DataPath("models/separate"); }

class Hpp : public oga::test::WithRuntime {
 protected:
  void SetUp() override {
    WithRuntime::SetUp();
    engine_ = std::make_unique<oga::Engine>(oga::Model(ModelFolder()));
  }

  // The tokens of one more turn of `request`.
  Tokens Finish(oga::Request& request, const Tokens& input, uint64_t count) {
    oga::TurnOptions options = request.CreateTurnOptions();
    options.SetMaxGeneratedTokens(count).SetMinGeneratedTokens(count);
    request.BeginTurn(input, options);
    oga::EventBuffer events = engine_->CreateEventBuffer(8);
    Tokens tokens;
    while (engine_->HasPendingRequests()) {
      engine_->Run(events);
      for (const oga::Event event : events) {
        EXPECT_TRUE(event.IsOf(request));
        if (event.has_token()) tokens.push_back(event.token());
        if (event.turn_finished()) last_usage_ = event.usage();
      }
    }
    return tokens;
  }

  std::unique_ptr<oga::Engine> engine_;
  oga::TurnUsage last_usage_;
};

// The field of the Error that `call` throws.
template <typename Call>
std::string FieldOf(const Call& call) {
  try {
    call();
  } catch (const oga::Error& error) {
    return error.field();
  }
  return "nothing was thrown";
}

// The code of the Error that `call` throws; Ok when it throws nothing.
template <typename Call>
OgaStatusCode CodeOf(const Call& call, const std::string& part = "") {
  try {
    call();
  } catch (const oga::Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return error.code();
  }
  return OgaStatusCode_Ok;
}

TEST_F(Hpp, HandlesMoveAndNeverCopy) {
  static_assert(std::is_nothrow_move_constructible_v<oga::Request>);
  static_assert(std::is_nothrow_move_assignable_v<oga::EventBuffer>);
  static_assert(!std::is_copy_constructible_v<oga::Model>);
  static_assert(!std::is_copy_assignable_v<oga::Engine>);
  static_assert(!std::is_default_constructible_v<oga::Request>);
  static_assert(std::is_base_of_v<std::runtime_error, oga::Error>);

  oga::Request first = engine_->CreateRequest();
  const OgaRequest* identity = first.get();
  oga::Request second = std::move(first);
  EXPECT_EQ(second.get(), identity);
  EXPECT_EQ(CodeOf([&] { first.Close(); }, "request must not be null."), OgaStatusCode_InvalidArgument);
  EXPECT_EQ(Finish(second, {3, 4}, 2).size(), 2u);
}

TEST_F(Hpp, TwoTurnsOfAConversationContinueTheSequence) {
  oga::Request request = engine_->CreateRequest();
  const Tokens first = Finish(request, {3, 10, 17}, 4);
  EXPECT_EQ(last_usage_.prompt_tokens, 3u);
  EXPECT_EQ(last_usage_.generated_tokens, 4u);
  const Tokens second = Finish(request, {9}, 4);
  Tokens whole{3, 10, 17};
  whole.insert(whole.end(), first.begin(), first.end());
  whole.push_back(9);
  oga::Request fresh = engine_->CreateRequest();
  EXPECT_EQ(Finish(fresh, whole, 4), second);
}

TEST_F(Hpp, RewindCancelForkAndClose) {
  oga::Request request = engine_->CreateRequest();
  const Tokens first = Finish(request, {3, 10}, 3);
  request.RewindToStartOfTurn(1);
  EXPECT_EQ(Finish(request, {3, 10}, 3), first);
  const uint64_t turn_id = request.BeginTurn({5});
  EXPECT_EQ(turn_id, 3u);
  EXPECT_FALSE(request.CancelTurn(1));
  EXPECT_TRUE(request.CancelTurn(turn_id));
  oga::EventBuffer events = engine_->CreateEventBuffer(4);
  engine_->Run(events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finish_reason(), OgaFinishReason_Cancelled);
  EXPECT_EQ(events[0].turn_id(), 3u);
  EXPECT_EQ(events[0].error_code(), OgaErrorCode_None);
  EXPECT_EQ(events[0].failure(), OgaFailureKind_None);
  EXPECT_EQ(events[0].matched_stop_string_index(), -1);
  EXPECT_EQ(CodeOf([&] { events[1].token(); }, "event must not be null."), OgaStatusCode_InvalidArgument);
  oga::Request fork = request.Fork();
  request.Close();
  EXPECT_EQ(Finish(fork, {6}, 2).size(), 2u);
  EXPECT_EQ(CodeOf([&] { request.BeginTurn({5}); }, "closed"), OgaStatusCode_InvalidState);
}

TEST_F(Hpp, ATurnThatFailedSaysWhy) {
  oga::Request request = engine_->CreateRequest();
  oga::Sequences banned;
  banned.Append({5, 5});
  oga::TurnOptions options = request.CreateTurnOptions();
  options.SetAllowedTokens({5}).SetBannedSequences(banned);
  request.BeginTurn({3, 10}, options);
  oga::EventBuffer events = engine_->CreateEventBuffer(4);
  OgaFailureKind failure = OgaFailureKind_None;
  while (engine_->HasPendingRequests()) {
    engine_->Run(events);
    for (const oga::Event event : events) failure = event.failure();
  }
  EXPECT_EQ(failure, OgaFailureKind_NoAllowedToken);
}

TEST_F(Hpp, ErrorsCarryCodeFieldAndSentence) {
  EXPECT_EQ(CodeOf([] { oga::Model("no/such/folder"); }, "no/such/folder"), OgaStatusCode_NotFound);
  EXPECT_EQ(CodeOf([] { oga::Config("no/such/folder"); }), OgaStatusCode_NotFound);
  oga::Request request = engine_->CreateRequest();
  EXPECT_EQ(CodeOf([&] { request.BeginTurn({}); }, "at least one token"), OgaStatusCode_InvalidArgument);
  EXPECT_EQ(CodeOf([&] { request.CreateTurnOptions().SetTopP(2.0f); }, "top_p"), OgaStatusCode_InvalidArgument);
  EXPECT_EQ(FieldOf([&] { request.CreateTurnOptions().SetTopP(2.0f); }), "top_p");
  EXPECT_EQ(FieldOf([] { oga::Config("no/such/folder"); }), std::filesystem::absolute("no/such/folder").string());
  EXPECT_EQ(CodeOf([&] { engine_->CreateRequest(oga::RequestOptions().SetMaxSessionTokens(999)); }, "999"),
            OgaStatusCode_InvalidArgument);
  EXPECT_EQ(CodeOf([&] { engine_->GetStatistics().Count("nothing"); }, "'nothing'"), OgaStatusCode_InvalidArgument);
}

TEST_F(Hpp, TurnOptionsTakeNamesAndLists) {
  oga::Request request = engine_->CreateRequest();
  oga::TurnOptions options = request.CreateTurnOptions();
  oga::Sequences banned;
  banned.Append({21, 21});
  options.SetBool("do_sample", true).SetNumber("temperature", 0).SetNoRepeatNgramSize(0).SetMaxGeneratedTokens(4);
  options.SetAllowedTokens({20, 21}).SetLogitBias({21}, {1000.0f}).SetBannedSequences(banned).SetDryBreakers({3});
  request.BeginTurn({5}, options);
  oga::EventBuffer events = engine_->CreateEventBuffer(8);
  Tokens tokens;
  while (engine_->HasPendingRequests()) {
    engine_->Run(events);
    for (const oga::Event event : events) tokens.push_back(event.token());
  }
  EXPECT_EQ(tokens, (Tokens{21, 20, 21, 20}));
  options.SetStopTokens({20}).SetBool("ignore_eos", true);
  EXPECT_EQ(CodeOf([&] { options.SetNumber("no_such", 1); }, "'no_such'"), OgaStatusCode_InvalidArgument);
  EXPECT_THROW(options.SetLogitBias({1, 2}, {1.0f}), std::invalid_argument);
}

TEST_F(Hpp, AStringWithANulInsideIsRefusedInsteadOfCut) {
  const std::string cut("a\0b", 3);
  EXPECT_EQ(CodeOf([&] { oga::Config config(cut); }, "NUL"), OgaStatusCode_InvalidArgument);
  EXPECT_EQ(CodeOf([&] { oga::StringArray().Add(cut); }, "NUL"), OgaStatusCode_InvalidArgument);
}

TEST_F(Hpp, ConfigsAndModels) {
  oga::Config config(ModelFolder());
  config.ClearProviders().AppendProvider("cpu").Overlay(R"({"engine": {"dynamic_batching": {"max_batch_size": 3}}})");
  const oga::Model model(config);
  EXPECT_EQ(model.type(), "llama");
  EXPECT_EQ(model.device_type(), "CPU");
  const oga::EngineCapabilities capabilities = oga::Engine(model).GetCapabilities();
  EXPECT_EQ(capabilities.configured_max_batch_size, 3u);
  EXPECT_EQ(capabilities.max_scheduled_tokens, 32u);
  EXPECT_EQ(capabilities.max_request_length, 64u);
}

TEST_F(Hpp, AReleasedHandleBelongsToTheCaller) {
  oga::Request request = engine_->CreateRequest();
  OgaRequest* raw = request.release();
  EXPECT_EQ(request.get(), nullptr);
  oga::Check(OgaRequestClose(raw));
  OgaDestroyRequest(raw);
}

TEST_F(Hpp, Lists) {
  oga::Sequences sequences;
  sequences.Append({1, 2});
  sequences.AppendToken(3, 1);
  EXPECT_EQ(sequences.size(), 2u);
  EXPECT_EQ(sequences[0], (Tokens{1, 2}));
  EXPECT_EQ(sequences[1], (Tokens{3}));
  EXPECT_EQ(sequences[2], Tokens{});
  const oga::StringArray strings({"a", "b"});
  EXPECT_EQ(strings.size(), 2u);
  EXPECT_EQ(strings[1], "b");
  EXPECT_EQ(oga::StringArray(std::vector<std::string>{}).size(), 0u);
  EXPECT_EQ(CodeOf(
                [] {
                  oga::StringArray strings({"a", std::string("a\0b", 3)});
                },
                "NUL"),
            OgaStatusCode_InvalidArgument);
  EXPECT_EQ(CodeOf([&] { strings[2]; }), OgaStatusCode_InvalidArgument);
}

TEST_F(Hpp, Text) {
  EXPECT_EQ(CodeOf([] { oga::Tokenizer tokenizer{oga::Model(ModelFolder())}; }, "tokenizer.json"),
            OgaStatusCode_NotFound);
  oga::Tokenizer tokenizer(oga::test::TextFolder("llama3"));
  const Tokens plain = tokenizer.Encode("hi 🙂");
  EXPECT_EQ(tokenizer.Decode(plain), "hi 🙂");
  tokenizer.SetOption("add_special_tokens", true);
  EXPECT_EQ(tokenizer.Encode("hi 🙂").size(), plain.size() + 2);
  oga::TokenizerStream stream = tokenizer.CreateStream();
  std::string text;
  for (const int32_t token : plain) text += stream.Decode(token);
  EXPECT_EQ(text + stream.Finish(), "hi 🙂");
  EXPECT_EQ(tokenizer.ToTokenId("<|bos|>"), 0);
  EXPECT_EQ(CodeOf([&] { tokenizer.ApplyChatTemplate("[]", "template"); }, "messages"), OgaStatusCode_InvalidArgument);
}

constexpr const char* kRoles = R"({"model": {"type": "t", "vocab_size": 430, "context_length": 8,
    "bos_token_id": 0, "eos_token_id": [2, 7], "pad_token_id": 9, "bot_token_id": 11, "eot_token_id": 12,
    "bor_token_id": 13, "eor_token_id": 14, "decoder": {"filename": "m", "num_hidden_layers": 1,
    "num_attention_heads": 1, "num_key_value_heads": 1, "head_size": 1}}})";

TEST_F(Hpp, TokensWithARole) {
  const oga::test::TempFolder folder;
  std::filesystem::copy(oga::test::TextFolder("byte_level"), folder.path());
  std::ofstream(folder.path() / "genai_config.json") << kRoles;
  const oga::Tokenizer named(folder.path().native());
  const oga::Tokenizer nameless(oga::test::TextFolder("byte_level"));
  const std::tuple<int32_t (oga::Tokenizer::*)() const, int32_t, std::string> roles[] = {
      {&oga::Tokenizer::bos_token_id, 0, "model.bos_token_id"},
      {&oga::Tokenizer::pad_token_id, 9, "model.pad_token_id"},
      {&oga::Tokenizer::bot_token_id, 11, "model.bot_token_id"},
      {&oga::Tokenizer::eot_token_id, 12, "model.eot_token_id"},
      {&oga::Tokenizer::bor_token_id, 13, "model.bor_token_id"},
      {&oga::Tokenizer::eor_token_id, 14, "model.eor_token_id"}};
  for (const auto& [role, id, field] : roles) {
    EXPECT_EQ((named.*role)(), id) << field;
    try {
      (nameless.*role)();
      ADD_FAILURE() << field << ": the folder names no such token";
    } catch (const oga::Error& error) {
      EXPECT_EQ(error.code(), OgaStatusCode_NotFound);
      EXPECT_EQ(error.field(), field);
    }
  }
  EXPECT_EQ(named.eos_token_ids(), (Tokens{2, 7}));
  EXPECT_EQ(nameless.eos_token_ids(), Tokens{});
}

TEST_F(Hpp, TheBytesOfTokensAddUpToTheText) {
  const oga::Tokenizer tokenizer(oga::test::TextFolder("llama3"));
  std::string text;
  for (const int32_t token : tokenizer.Encode("hi 🙂")) text += tokenizer.token_bytes(token);
  EXPECT_EQ(text, "hi 🙂");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
}

TEST_F(Hpp, TheLibrary) {
  EXPECT_EQ(oga::ApiVersion(), OGA_API_VERSION);
  EXPECT_NE(oga::OrtVersion().find("libonnxruntime"), std::string::npos);
  EXPECT_FALSE(oga::CpuIsa().empty());
  oga::SetLlguidanceLibrary("no/such/library.so");
  EXPECT_NE(CodeOf([] { oga::LlguidanceVersion(); }, "no/such/library.so"), OgaStatusCode_Ok);
  oga::SetLlguidanceLibrary("");
  EXPECT_EQ(CodeOf([] { oga::SetLog("nothing", true); }, "'nothing'"), OgaStatusCode_InvalidArgument);
  oga::SetLogCallback(nullptr);
  EXPECT_EQ(CodeOf([] { oga::SetOrtLibrary("other.so"); }, "already in use"), OgaStatusCode_InvalidState);
  oga::SetOrtExtensionsLibrary("");
  EXPECT_EQ(engine_->GetStatistics().Count("steps"), 0u);
  EXPECT_EQ(CodeOf([&] { engine_->SetTraceFile("no/such/folder/trace"); }, "no/such"), OgaStatusCode_IoError);
  engine_->SetTraceFile("");
  oga::Shutdown();
}

}  // namespace
