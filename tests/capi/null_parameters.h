// What null_parameters_test.cpp calls with NULL: the tables and the handles they need.
#pragma once

#include <functional>
#include <vector>

#include "capi/harness.h"

namespace oga::capi_test {

struct NullCase {
  const char* function;
  const char* parameter;  // named by the refusal; "" when NULL is accepted
  std::function<OgaResult*()> call;
};

// Functions without a result: the expectation is in the call.
template <typename Value>
inline OgaResult* Gives(Value value, Value expected) {
  EXPECT_EQ(value, expected);
  return nullptr;
}

class NullParameters : public WithEngine {
 protected:
  void SetUp() override {
    WithEngine::SetUp();
    config_ = MakeConfig();
    request_ = MakeRequest(engine_.get());
    options_ = MakeTurnOptions(request_.get());
    OgaRequestOptions* request_options = nullptr;
    Must(OgaCreateRequestOptions(&request_options));
    request_options_.reset(request_options);
    OgaSequences* sequences = nullptr;
    Must(OgaCreateSequences(&sequences));
    sequences_.reset(sequences);
    OgaTokenizer* tokenizer = nullptr;
    Must(OgaCreateTokenizerFromPath(test::DataPath("texts/byte_level").c_str(), &tokenizer));
    tokenizer_.reset(tokenizer);
    OgaTokenizerStream* stream = nullptr;
    Must(OgaCreateTokenizerStream(tokenizer, &stream));
    tokenizer_stream_.reset(stream);
    OgaStringArray* strings = nullptr;
    Must(OgaCreateStringArray(&strings));
    strings_.reset(strings);
    OgaEngineStatistics* statistics = nullptr;
    Must(OgaEngineGetStatistics(engine_.get(), &statistics));
    statistics_.reset(statistics);
    BeginTurn(request_.get(), Prompt(2));
    Must(OgaEngineRun(engine_.get(), buffer_.get()));
    event_ = OgaEngineEventBufferGet(buffer_.get(), 0);
    Must(OgaEngineEventGetUsage(event_, &usage_));
  }

  std::vector<NullCase> LibraryCases();
  std::vector<NullCase> EngineCases();
  std::vector<NullCase> EventCases();
  std::vector<NullCase> RequestCases();
  std::vector<NullCase> TurnOptionsCases();
  std::vector<NullCase> ListCases();
  std::vector<NullCase> AllCases();

  // null_parameters_text.cpp
  std::vector<NullCase> OutputCases();
  std::vector<NullCase> TokenizerCases();
  std::vector<NullCase> TokenizerStreamCases();
  std::vector<NullCase> RoleCases();

  ConfigHandle config_;
  RequestHandle request_;
  TurnOptionsHandle options_;
  RequestOptionsHandle request_options_;
  Owned<OgaSequences, OgaDestroySequences> sequences_;
  Owned<OgaStringArray, OgaDestroyStringArray> strings_;
  Owned<OgaTokenizer, OgaDestroyTokenizer> tokenizer_;
  Owned<OgaTokenizerStream, OgaDestroyTokenizerStream> tokenizer_stream_;
  StatisticsHandle statistics_;
  const OgaEngineEvent* event_ = nullptr;
  const OgaTurnUsage* usage_ = nullptr;

  // Where calls that must fail would have stored something.
  OgaConfig* config_out_ = nullptr;
  OgaModel* model_out_ = nullptr;
  OgaEngine* engine_out_ = nullptr;
  OgaRequest* request_out_ = nullptr;
  OgaEngineEventBuffer* buffer_out_ = nullptr;
  OgaEngineCapabilities* capabilities_out_ = nullptr;
  OgaEngineStatistics* statistics_out_ = nullptr;
  OgaTurnOptions* options_out_ = nullptr;
  OgaStringArray* strings_out_ = nullptr;
  OgaTokenizer* tokenizer_out_ = nullptr;
  OgaTokenizerStream* tokenizer_stream_out_ = nullptr;
  const int32_t* tokens_out_ = nullptr;
  const uint8_t* bytes_out_ = nullptr;
  const OgaRequest* identity_out_ = nullptr;
  const OgaTurnUsage* usage_out_ = nullptr;
  const char* string_out_ = nullptr;
  const char* text_out_ = nullptr;
  const int32_t* ids_out_ = nullptr;
  const float* floats_out_ = nullptr;
  bool bool_out_ = false;
  int32_t i32_out_ = 0;
  uint32_t u32_out_ = 0;
  uint64_t u64_out_ = 0;
  size_t size_out_ = 0;
};

}  // namespace oga::capi_test
