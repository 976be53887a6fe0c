#include <oga/result.h>

#include <cstdlib>
#include <functional>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

TEST(Result, NullIsSuccess) {
  EXPECT_STREQ(OgaResultGetError(nullptr), "");
  EXPECT_EQ(OgaResultGetCode(nullptr), OgaStatusCode_Ok);
  EXPECT_STREQ(OgaResultGetField(nullptr), "");
  OgaDestroyResult(nullptr);
  OgaDestroyString(nullptr);
}

TEST(Result, CarriesACodeAFieldAndASentence) {
  OgaResult* result = OgaSetLogBool("loud", true);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(OgaResultGetCode(result), OgaStatusCode_InvalidArgument);
  EXPECT_STREQ(OgaResultGetField(result), "name");
  EXPECT_STREQ(OgaResultGetError(result),
               "there is no log channel 'loud'; the channels are 'enabled' (all of them), "
               "'warning' and 'info'");
  OgaDestroyResult(result);
}

class Fields : public WithEngine {
 protected:
  void SetUp() override {
    WithEngine::SetUp();
    request_ = MakeRequest(engine_.get());
    options_ = MakeTurnOptions(request_.get());
  }

  OgaResult* Begin(const std::vector<int32_t>& tokens) {
    uint64_t turn_id = 0;
    return OgaRequestBeginTurn(request_.get(), options_.get(), tokens.data(), tokens.size(), &turn_id);
  }

  static OgaResult* Overlay(const char* json) { return OgaConfigOverlay(MakeConfig().get(), json); }

  // Loads the model with an environment variable set.
  static OgaResult* LoadWith(const char* variable, const char* value) {
    setenv(variable, value, 1);
    OgaModel* model = nullptr;
    OgaResult* const result = OgaCreateModel(ModelFolder().c_str(), &model);
    unsetenv(variable);
    OgaDestroyModel(model);
    return result;
  }

  struct Row {
    std::string field;
    OgaStatusCode code;
    std::function<OgaResult*()> call;
  };

  static void ExpectFields(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      const Outcome outcome = Take(row.call());
      EXPECT_EQ(outcome.field, row.field) << outcome.message;
      EXPECT_EQ(outcome.code, row.code) << outcome.message;
    }
  }

  RequestHandle request_;
  TurnOptionsHandle options_;
};

TEST_F(Fields, NameTheOptionOrInputThatATurnIsRefusedFor) {
  OgaTurnOptions* const options = options_.get();
  OgaStringArray* strings = nullptr;
  Must(OgaCreateStringArray(&strings));
  const Owned<OgaStringArray, OgaDestroyStringArray> owned(strings);
  Must(OgaStringArrayAddString(strings, ""));
  const int32_t negative = -1;
  ExpectFields({
      {"top_p", OgaStatusCode_InvalidArgument, [&] { return OgaTurnOptionsSetTopP(options, 2); }},
      {"min_p", OgaStatusCode_InvalidArgument, [&] { return OgaTurnOptionsSetNumber(options, "min_p", -1); }},
      {"no_such_option", OgaStatusCode_InvalidArgument,
       [&] { return OgaTurnOptionsSetNumber(options, "no_such_option", 1); }},
      {"stop_strings", OgaStatusCode_InvalidArgument, [&] { return OgaTurnOptionsSetStopStrings(options, strings); }},
      {"stop_tokens", OgaStatusCode_InvalidArgument,
       [&] { return OgaTurnOptionsSetStopTokens(options, &negative, 1); }},
      {"guidance", OgaStatusCode_InvalidArgument, [&] { return OgaTurnOptionsSetGuidance(options, "poem", "x"); }},
      {"logprobs", OgaStatusCode_InvalidArgument, [&] { return OgaTurnOptionsSetLogprobs(options, -7, false); }},
      {"temperature", OgaStatusCode_InvalidArgument,
       [&] {
         Must(OgaTurnOptionsSetDoSample(options, false));
         Must(OgaTurnOptionsSetTemperature(options, 0.5f));
         return Begin(Prompt(3));
       }},
      {"min_generated_tokens", OgaStatusCode_InvalidArgument,
       [&] {
         Must(OgaTurnOptionsReset(options));
         Must(OgaTurnOptionsSetMaxGeneratedTokens(options, 2));
         Must(OgaTurnOptionsSetMinGeneratedTokens(options, 3));
         return Begin(Prompt(3));
       }},
      // what a turn is given
      {"input_ids", OgaStatusCode_InvalidArgument,
       [&] {
         Must(OgaTurnOptionsReset(options));
         return Begin({});
       }},
      {"input_ids", OgaStatusCode_InvalidArgument,
       [&] {
         return Begin({1, kVocab});
       }},
      {"input_ids_count", OgaStatusCode_InvalidArgument, [&] { return Begin(Prompt(kContext)); }},
  });
}

TEST_F(Fields, NameTheKeyVariableFileOrParameter) {
  OgaConfig* config = nullptr;
  OgaStringArray* strings = nullptr;
  Must(OgaCreateStringArray(&strings));
  const Owned<OgaStringArray, OgaDestroyStringArray> owned(strings);
  const std::string missing = ModelFolder() + "/nowhere";
  const char* text = nullptr;
  ExpectFields({
      // keys of the config, one that is not known among them
      {"engine.dynamic_batching.num_blocks", OgaStatusCode_InvalidArgument,
       [&] { return Overlay(R"({"engine": {"dynamic_batching": {"num_blocks": 0}}})"); }},
      {"engine.batching", OgaStatusCode_InvalidArgument, [&] { return Overlay(R"({"engine": {"batching": {}}})"); }},
      {"search.top_p", OgaStatusCode_InvalidArgument, [&] { return Overlay(R"({"search": {"top_p": 7}})"); }},
      // variables of the environment
      {"OGA_NUM_THREADS", OgaStatusCode_InvalidArgument, [&] { return LoadWith("OGA_NUM_THREADS", "many"); }},
      {"OGA_CPU_MATMUL", OgaStatusCode_InvalidArgument, [&] { return LoadWith("OGA_CPU_MATMUL", "fp7"); }},
      // files
      {missing, OgaStatusCode_NotFound, [&] { return OgaCreateConfig(missing.c_str(), &config); }},
      {"/elsewhere/onnxruntime.so", OgaStatusCode_InvalidState,
       [&] { return OgaSetOrtLibrary("/elsewhere/onnxruntime.so"); }},
      // parameters
      {"config_path", OgaStatusCode_InvalidArgument, [&] { return OgaCreateConfig("", &config); }},
      {"engine", OgaStatusCode_InvalidArgument, [&] { return OgaEngineDropPrefixCache(nullptr); }},
      {"json", OgaStatusCode_InvalidArgument, [&] { return Overlay("{"); }},
      {"index", OgaStatusCode_InvalidArgument, [&] { return OgaStringArrayGetString(strings, 5, &text); }},
      {"provider", OgaStatusCode_Unsupported, [&] { return OgaConfigAppendProvider(MakeConfig().get(), "abacus"); }},
      {"turn_id", OgaStatusCode_NotFound, [&] { return OgaRequestRewindToStartOfTurn(request_.get(), 9); }},
      // none, or several
      {"", OgaStatusCode_InvalidState,
       [&] {
         bool cancelled = false;
         return OgaRequestCancelTurn(request_.get(), 1, &cancelled);
       }},
  });
}

TEST(Result, ResultsAreIndependentOfEachOther) {
  OgaResult* first = OgaSetLogBool("one", true);
  OgaResult* second = OgaSetLogBool("two", true);
  OgaDestroyResult(first);
  EXPECT_NE(std::string(OgaResultGetError(second)).find("'two'"), std::string::npos);
  OgaDestroyResult(second);
}

TEST(Result, AnImpossibleAllocationIsOutOfMemory) {
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  const Owned<OgaSequences, OgaDestroySequences> owned(sequences);
  const int32_t token = 1;
  for (int i = 0; i < 2; ++i) {  // destroying the first must not harm the second
    EXPECT_TRUE(Fails(OgaAppendTokenSequence(&token, SIZE_MAX / 2, sequences), OgaStatusCode_OutOfMemory, "memory"));
  }
  EXPECT_EQ(OgaSequencesCount(sequences), 0u);
}

}  // namespace
}  // namespace oga::capi_test
