// Every pointer parameter of every function, passed as NULL: an error that names the parameter, or a documented neutral
// answer, never a crash. The table is checked against symbols.txt, so a new function cannot be left out.
#include "capi/null_parameters.h"

#include <fstream>
#include <set>

namespace oga::capi_test {

std::vector<NullCase> NullParameters::LibraryCases() {
  return {
      {"OgaResultGetError", "", [] { return Gives(std::string(OgaResultGetError(nullptr)), std::string()); }},
      {"OgaResultGetCode", "", [] { return Gives(OgaResultGetCode(nullptr), OgaStatusCode_Ok); }},
      {"OgaResultGetField", "", [] { return Gives(std::string(OgaResultGetField(nullptr)), std::string()); }},
      {"OgaDestroyResult", "", [] { return OgaDestroyResult(nullptr), nullptr; }},
      {"OgaDestroyString", "", [] { return OgaDestroyString(nullptr), nullptr; }},
      {"OgaSetLogBool", "name", [] { return OgaSetLogBool(nullptr, true); }},
      {"OgaSetLogCallback", "", [] { return OgaSetLogCallback(nullptr); }},
      {"OgaGetApiVersion", "", [] { return Gives(OgaGetApiVersion(), OGA_API_VERSION); }},
      {"OgaSetOrtLibrary", "", [] { return OgaSetOrtLibrary(nullptr); }},
      {"OgaSetOrtExtensionsLibrary", "", [] { return OgaSetOrtExtensionsLibrary(nullptr); }},
      {"OgaSetLlguidanceLibrary", "", [] { return OgaSetLlguidanceLibrary(nullptr); }},
      {"OgaGetLlguidanceVersion", "out", [] { return OgaGetLlguidanceVersion(nullptr); }},
      {"OgaGetOrtVersion", "out", [] { return OgaGetOrtVersion(nullptr); }},
      {"OgaGetCpuIsa", "out", [] { return OgaGetCpuIsa(nullptr); }},
      {"OgaShutdown", "", [] { return OgaShutdown(), nullptr; }},
      {"OgaCreateConfig", "config_path", [&] { return OgaCreateConfig(nullptr, &config_out_); }},
      {"OgaCreateConfig", "out", [] { return OgaCreateConfig("folder", nullptr); }},
      {"OgaDestroyConfig", "", [] { return OgaDestroyConfig(nullptr), nullptr; }},
      {"OgaConfigOverlay", "config", [] { return OgaConfigOverlay(nullptr, "{}"); }},
      {"OgaConfigOverlay", "json", [&] { return OgaConfigOverlay(config_.get(), nullptr); }},
      {"OgaConfigClearProviders", "config", [] { return OgaConfigClearProviders(nullptr); }},
      {"OgaConfigAppendProvider", "config", [] { return OgaConfigAppendProvider(nullptr, "cpu"); }},
      {"OgaConfigAppendProvider", "provider", [&] { return OgaConfigAppendProvider(config_.get(), nullptr); }},
      {"OgaCreateModel", "config_path", [&] { return OgaCreateModel(nullptr, &model_out_); }},
      {"OgaCreateModel", "out", [] { return OgaCreateModel("folder", nullptr); }},
      {"OgaCreateModelFromConfig", "config", [&] { return OgaCreateModelFromConfig(nullptr, &model_out_); }},
      {"OgaCreateModelFromConfig", "out", [&] { return OgaCreateModelFromConfig(config_.get(), nullptr); }},
      {"OgaDestroyModel", "", [] { return OgaDestroyModel(nullptr), nullptr; }},
      {"OgaModelGetType", "model", [&] { return OgaModelGetType(nullptr, &string_out_); }},
      {"OgaModelGetType", "out", [&] { return OgaModelGetType(model_.get(), nullptr); }},
      {"OgaModelGetDeviceType", "model", [&] { return OgaModelGetDeviceType(nullptr, &string_out_); }},
      {"OgaModelGetDeviceType", "out", [&] { return OgaModelGetDeviceType(model_.get(), nullptr); }},
  };
}

std::vector<NullCase> NullParameters::EngineCases() {
  return {
      {"OgaCreateEngine", "model", [&] { return OgaCreateEngine(nullptr, &engine_out_); }},
      {"OgaCreateEngine", "out", [&] { return OgaCreateEngine(model_.get(), nullptr); }},
      {"OgaDestroyEngine", "", [] { return OgaDestroyEngine(nullptr), nullptr; }},
      {"OgaEngineCreateRequest", "engine", [&] { return OgaEngineCreateRequest(nullptr, nullptr, &request_out_); }},
      {"OgaEngineCreateRequest", "out", [&] { return OgaEngineCreateRequest(engine_.get(), nullptr, nullptr); }},
      {"OgaEngineRun", "buffer", [] { return OgaEngineRun(nullptr, nullptr); }},  // before engine
      {"OgaEngineRun", "buffer", [&] { return OgaEngineRun(engine_.get(), nullptr); }},
      {"OgaEngineRun", "engine", [&] { return OgaEngineRun(nullptr, buffer_.get()); }},
      {"OgaEngineHasPendingRequests", "engine", [&] { return OgaEngineHasPendingRequests(nullptr, &bool_out_); }},
      {"OgaEngineHasPendingRequests", "out", [&] { return OgaEngineHasPendingRequests(engine_.get(), nullptr); }},
      {"OgaEngineGetCapabilities", "engine", [&] { return OgaEngineGetCapabilities(nullptr, &capabilities_out_); }},
      {"OgaEngineGetCapabilities", "out", [&] { return OgaEngineGetCapabilities(engine_.get(), nullptr); }},
      {"OgaEngineGetStatistics", "engine", [&] { return OgaEngineGetStatistics(nullptr, &statistics_out_); }},
      {"OgaEngineGetStatistics", "out", [&] { return OgaEngineGetStatistics(engine_.get(), nullptr); }},
      {"OgaEnginePrepareGuidance", "engine", [] { return OgaEnginePrepareGuidance(nullptr, "regex", "a"); }},
      {"OgaEnginePrepareGuidance", "guidance_type",
       [&] { return OgaEnginePrepareGuidance(engine_.get(), nullptr, "a"); }},
      {"OgaEnginePrepareGuidance", "guidance_data",
       [&] { return OgaEnginePrepareGuidance(engine_.get(), "regex", nullptr); }},
      {"OgaEngineDropPrefixCache", "engine", [] { return OgaEngineDropPrefixCache(nullptr); }},
      {"OgaEngineSetTraceFile", "engine", [] { return OgaEngineSetTraceFile(nullptr, "file"); }},
      {"OgaEngineSetTraceFile", "", [&] { return OgaEngineSetTraceFile(engine_.get(), nullptr); }},
      {"OgaDestroyEngineCapabilities", "", [] { return OgaDestroyEngineCapabilities(nullptr), nullptr; }},
      {"OgaEngineCapabilitiesGetConfiguredMaxBatchSize", "",
       [] { return Gives(OgaEngineCapabilitiesGetConfiguredMaxBatchSize(nullptr), size_t{0}); }},
      {"OgaEngineCapabilitiesGetMaxScheduledTokens", "",
       [] { return Gives(OgaEngineCapabilitiesGetMaxScheduledTokens(nullptr), size_t{0}); }},
      {"OgaEngineCapabilitiesGetMaxRequestLength", "",
       [] { return Gives(OgaEngineCapabilitiesGetMaxRequestLength(nullptr), uint64_t{0}); }},
      {"OgaEngineCapabilitiesGetPrefixCaching", "",
       [] { return Gives(OgaEngineCapabilitiesGetPrefixCaching(nullptr), false); }},
      {"OgaDestroyEngineStatistics", "", [] { return OgaDestroyEngineStatistics(nullptr), nullptr; }},
      {"OgaEngineStatisticsGetCount", "statistics",
       [&] { return OgaEngineStatisticsGetCount(nullptr, "steps", &u64_out_); }},
      {"OgaEngineStatisticsGetCount", "name",
       [&] { return OgaEngineStatisticsGetCount(statistics_.get(), nullptr, &u64_out_); }},
      {"OgaEngineStatisticsGetCount", "out",
       [&] { return OgaEngineStatisticsGetCount(statistics_.get(), "steps", nullptr); }},
  };
}

std::vector<NullCase> NullParameters::EventCases() {
  return {
      {"OgaCreateEngineEventBuffer", "engine", [&] { return OgaCreateEngineEventBuffer(nullptr, 1, &buffer_out_); }},
      {"OgaCreateEngineEventBuffer", "out", [&] { return OgaCreateEngineEventBuffer(engine_.get(), 1, nullptr); }},
      {"OgaDestroyEngineEventBuffer", "", [] { return OgaDestroyEngineEventBuffer(nullptr), nullptr; }},
      {"OgaEngineEventBufferGetCount", "", [] { return Gives(OgaEngineEventBufferGetCount(nullptr), size_t{0}); }},
      {"OgaEngineEventBufferGet", "",
       [] { return Gives(OgaEngineEventBufferGet(nullptr, 0), static_cast<const OgaEngineEvent*>(nullptr)); }},
      {"OgaEngineEventGetFlags", "event", [&] { return OgaEngineEventGetFlags(nullptr, &u32_out_); }},
      {"OgaEngineEventGetFlags", "out", [&] { return OgaEngineEventGetFlags(event_, nullptr); }},
      {"OgaEngineEventGetRequest", "event", [&] { return OgaEngineEventGetRequest(nullptr, &identity_out_); }},
      {"OgaEngineEventGetRequest", "out", [&] { return OgaEngineEventGetRequest(event_, nullptr); }},
      {"OgaEngineEventGetTurnId", "event", [&] { return OgaEngineEventGetTurnId(nullptr, &u64_out_); }},
      {"OgaEngineEventGetTurnId", "out", [&] { return OgaEngineEventGetTurnId(event_, nullptr); }},
      {"OgaEngineEventGetToken", "event", [&] { return OgaEngineEventGetToken(nullptr, &i32_out_); }},
      {"OgaEngineEventGetToken", "out", [&] { return OgaEngineEventGetToken(event_, nullptr); }},
      {"OgaEngineEventGetFinishReason", "event", [&] { return OgaEngineEventGetFinishReason(nullptr, &u32_out_); }},
      {"OgaEngineEventGetFinishReason", "out", [&] { return OgaEngineEventGetFinishReason(event_, nullptr); }},
      {"OgaEngineEventGetMatchedStopStringIndex", "event",
       [&] { return OgaEngineEventGetMatchedStopStringIndex(nullptr, &i32_out_); }},
      {"OgaEngineEventGetMatchedStopStringIndex", "out",
       [&] { return OgaEngineEventGetMatchedStopStringIndex(event_, nullptr); }},
      {"OgaEngineEventGetErrorCode", "event", [&] { return OgaEngineEventGetErrorCode(nullptr, &u32_out_); }},
      {"OgaEngineEventGetErrorCode", "out", [&] { return OgaEngineEventGetErrorCode(event_, nullptr); }},
      {"OgaEngineEventGetFailure", "event", [&] { return OgaEngineEventGetFailure(nullptr, &u32_out_); }},
      {"OgaEngineEventGetFailure", "out", [&] { return OgaEngineEventGetFailure(event_, nullptr); }},
      {"OgaEngineEventGetText", "event", [&] { return OgaEngineEventGetText(nullptr, &text_out_, nullptr); }},
      {"OgaEngineEventGetText", "out", [&] { return OgaEngineEventGetText(event_, nullptr, nullptr); }},
      {"OgaEngineEventGetLogprobs", "event",
       [&] { return OgaEngineEventGetLogprobs(nullptr, &ids_out_, &floats_out_, &ids_out_, &size_out_); }},
      {"OgaEngineEventGetLogprobs", "tokens",
       [&] { return OgaEngineEventGetLogprobs(event_, nullptr, &floats_out_, &ids_out_, &size_out_); }},
      {"OgaEngineEventGetLogprobs", "logprobs",
       [&] { return OgaEngineEventGetLogprobs(event_, &ids_out_, nullptr, &ids_out_, &size_out_); }},
      {"OgaEngineEventGetLogprobs", "ranks",
       [&] { return OgaEngineEventGetLogprobs(event_, &ids_out_, &floats_out_, nullptr, &size_out_); }},
      {"OgaEngineEventGetLogprobs", "count",
       [&] { return OgaEngineEventGetLogprobs(event_, &ids_out_, &floats_out_, &ids_out_, nullptr); }},
      {"OgaEngineEventGetPromptLogprobsCount", "event",
       [&] { return OgaEngineEventGetPromptLogprobsCount(nullptr, &size_out_); }},
      {"OgaEngineEventGetPromptLogprobsCount", "out",
       [&] { return OgaEngineEventGetPromptLogprobsCount(event_, nullptr); }},
      {"OgaEngineEventGetPromptLogprobs", "event",
       [&] { return OgaEngineEventGetPromptLogprobs(nullptr, 0, &ids_out_, &floats_out_, &ids_out_, &size_out_); }},
      {"OgaEngineEventGetPromptLogprobs", "tokens",
       [&] { return OgaEngineEventGetPromptLogprobs(event_, 0, nullptr, &floats_out_, &ids_out_, &size_out_); }},
      {"OgaEngineEventGetPromptLogprobs", "logprobs",
       [&] { return OgaEngineEventGetPromptLogprobs(event_, 0, &ids_out_, nullptr, &ids_out_, &size_out_); }},
      {"OgaEngineEventGetPromptLogprobs", "ranks",
       [&] { return OgaEngineEventGetPromptLogprobs(event_, 0, &ids_out_, &floats_out_, nullptr, &size_out_); }},
      {"OgaEngineEventGetPromptLogprobs", "count",
       [&] { return OgaEngineEventGetPromptLogprobs(event_, 0, &ids_out_, &floats_out_, &ids_out_, nullptr); }},
      {"OgaEngineEventGetUsage", "event", [&] { return OgaEngineEventGetUsage(nullptr, &usage_out_); }},
      {"OgaEngineEventGetUsage", "out", [&] { return OgaEngineEventGetUsage(event_, nullptr); }},
      {"OgaTurnUsageGetPromptTokens", "usage", [&] { return OgaTurnUsageGetPromptTokens(nullptr, &u64_out_); }},
      {"OgaTurnUsageGetPromptTokens", "out", [&] { return OgaTurnUsageGetPromptTokens(usage_, nullptr); }},
      {"OgaTurnUsageGetGeneratedTokens", "usage", [&] { return OgaTurnUsageGetGeneratedTokens(nullptr, &u64_out_); }},
      {"OgaTurnUsageGetGeneratedTokens", "out", [&] { return OgaTurnUsageGetGeneratedTokens(usage_, nullptr); }},
      {"OgaTurnUsageGetCachedPromptTokens", "usage",
       [&] { return OgaTurnUsageGetCachedPromptTokens(nullptr, &u64_out_); }},
      {"OgaTurnUsageGetCachedPromptTokens", "out", [&] { return OgaTurnUsageGetCachedPromptTokens(usage_, nullptr); }},
  };
}

std::vector<NullCase> NullParameters::RequestCases() {
  static const int32_t kToken = 1;
  return {
      {"OgaCreateRequestOptions", "out", [] { return OgaCreateRequestOptions(nullptr); }},
      {"OgaDestroyRequestOptions", "", [] { return OgaDestroyRequestOptions(nullptr), nullptr; }},
      {"OgaRequestOptionsSetCacheSalt", "options", [] { return OgaRequestOptionsSetCacheSalt(nullptr, 1); }},
      {"OgaRequestOptionsSetMaxSessionTokens", "options",
       [] { return OgaRequestOptionsSetMaxSessionTokens(nullptr, 1); }},
      {"OgaRequestOptionsSetPriority", "options", [] { return OgaRequestOptionsSetPriority(nullptr, 1); }},
      {"OgaRequestBeginTurn", "request", [&] { return OgaRequestBeginTurn(nullptr, nullptr, &kToken, 1, &u64_out_); }},
      {"OgaRequestBeginTurn", "input_ids",
       [&] { return OgaRequestBeginTurn(request_.get(), nullptr, nullptr, 1, &u64_out_); }},
      {"OgaRequestBeginTurn", "out_turn_id",
       [&] { return OgaRequestBeginTurn(request_.get(), nullptr, &kToken, 1, nullptr); }},
      {"OgaRequestCancelTurn", "request", [&] { return OgaRequestCancelTurn(nullptr, 1, &bool_out_); }},
      {"OgaRequestCancelTurn", "out_cancelled", [&] { return OgaRequestCancelTurn(request_.get(), 1, nullptr); }},
      {"OgaRequestRewindToStartOfTurn", "request", [] { return OgaRequestRewindToStartOfTurn(nullptr, 1); }},
      {"OgaRequestFork", "request", [&] { return OgaRequestFork(nullptr, &request_out_); }},
      {"OgaRequestFork", "out", [&] { return OgaRequestFork(request_.get(), nullptr); }},
      {"OgaRequestClose", "request", [] { return OgaRequestClose(nullptr); }},
      {"OgaDestroyRequest", "", [] { return OgaDestroyRequest(nullptr), nullptr; }},
  };
}

std::vector<NullCase> NullParameters::TurnOptionsCases() {
  static const int32_t kToken = 1;
  static const float kBias = 1.0f;
  return {
      {"OgaRequestCreateTurnOptions", "request", [&] { return OgaRequestCreateTurnOptions(nullptr, &options_out_); }},
      {"OgaRequestCreateTurnOptions", "out", [&] { return OgaRequestCreateTurnOptions(request_.get(), nullptr); }},
      {"OgaDestroyTurnOptions", "", [] { return OgaDestroyTurnOptions(nullptr), nullptr; }},
      {"OgaTurnOptionsReset", "options", [] { return OgaTurnOptionsReset(nullptr); }},
      {"OgaTurnOptionsSetMaxGeneratedTokens", "options",
       [] { return OgaTurnOptionsSetMaxGeneratedTokens(nullptr, 1); }},
      {"OgaTurnOptionsSetMinGeneratedTokens", "options",
       [] { return OgaTurnOptionsSetMinGeneratedTokens(nullptr, 1); }},
      {"OgaTurnOptionsSetDoSample", "options", [] { return OgaTurnOptionsSetDoSample(nullptr, true); }},
      {"OgaTurnOptionsSetTemperature", "options", [] { return OgaTurnOptionsSetTemperature(nullptr, 1.0f); }},
      {"OgaTurnOptionsSetTopK", "options", [] { return OgaTurnOptionsSetTopK(nullptr, 1); }},
      {"OgaTurnOptionsSetTopP", "options", [] { return OgaTurnOptionsSetTopP(nullptr, 1.0f); }},
      {"OgaTurnOptionsSetRepetitionPenalty", "options",
       [] { return OgaTurnOptionsSetRepetitionPenalty(nullptr, 1.0f); }},
      {"OgaTurnOptionsSetNoRepeatNgramSize", "options", [] { return OgaTurnOptionsSetNoRepeatNgramSize(nullptr, 1); }},
      {"OgaTurnOptionsSetNumber", "options", [] { return OgaTurnOptionsSetNumber(nullptr, "top_k", 1); }},
      {"OgaTurnOptionsSetNumber", "name", [&] { return OgaTurnOptionsSetNumber(options_.get(), nullptr, 1); }},
      {"OgaTurnOptionsSetBool", "options", [] { return OgaTurnOptionsSetBool(nullptr, "ignore_eos", true); }},
      {"OgaTurnOptionsSetBool", "name", [&] { return OgaTurnOptionsSetBool(options_.get(), nullptr, true); }},
      {"OgaTurnOptionsSetLogitBias", "options", [] { return OgaTurnOptionsSetLogitBias(nullptr, &kToken, &kBias, 1); }},
      {"OgaTurnOptionsSetLogitBias", "tokens",
       [&] { return OgaTurnOptionsSetLogitBias(options_.get(), nullptr, &kBias, 1); }},
      {"OgaTurnOptionsSetLogitBias", "biases",
       [&] { return OgaTurnOptionsSetLogitBias(options_.get(), &kToken, nullptr, 1); }},
      {"OgaTurnOptionsSetLogitBias", "",
       [&] { return OgaTurnOptionsSetLogitBias(options_.get(), nullptr, nullptr, 0); }},
      {"OgaTurnOptionsSetStopTokens", "options", [] { return OgaTurnOptionsSetStopTokens(nullptr, &kToken, 1); }},
      {"OgaTurnOptionsSetStopTokens", "tokens",
       [&] { return OgaTurnOptionsSetStopTokens(options_.get(), nullptr, 1); }},
      {"OgaTurnOptionsSetStopTokens", "", [&] { return OgaTurnOptionsSetStopTokens(options_.get(), nullptr, 0); }},
      {"OgaTurnOptionsSetBannedSequences", "options",
       [] { return OgaTurnOptionsSetBannedSequences(nullptr, nullptr); }},
      {"OgaTurnOptionsSetBannedSequences", "sequences",
       [&] { return OgaTurnOptionsSetBannedSequences(options_.get(), nullptr); }},
      {"OgaTurnOptionsSetAllowedTokens", "options", [] { return OgaTurnOptionsSetAllowedTokens(nullptr, &kToken, 1); }},
      {"OgaTurnOptionsSetAllowedTokens", "tokens",
       [&] { return OgaTurnOptionsSetAllowedTokens(options_.get(), nullptr, 1); }},
      {"OgaTurnOptionsSetDryBreakers", "options", [] { return OgaTurnOptionsSetDryBreakers(nullptr, &kToken, 1); }},
      {"OgaTurnOptionsSetDryBreakers", "tokens",
       [&] { return OgaTurnOptionsSetDryBreakers(options_.get(), nullptr, 1); }},
      {"OgaTurnOptionsSetSeed", "options", [] { return OgaTurnOptionsSetSeed(nullptr, 1); }},
      {"OgaTurnOptionsClearSeed", "options", [] { return OgaTurnOptionsClearSeed(nullptr); }},
  };
}

std::vector<NullCase> NullParameters::ListCases() {
  static const char* const kStrings[] = {"a"};
  static const int32_t kToken = 1;
  return {
      {"OgaCreateSequences", "out", [] { return OgaCreateSequences(nullptr); }},
      {"OgaDestroySequences", "", [] { return OgaDestroySequences(nullptr), nullptr; }},
      {"OgaSequencesCount", "", [] { return Gives(OgaSequencesCount(nullptr), size_t{0}); }},
      {"OgaAppendTokenSequence", "sequences", [] { return OgaAppendTokenSequence(&kToken, 1, nullptr); }},
      {"OgaAppendTokenSequence", "token_ptr", [&] { return OgaAppendTokenSequence(nullptr, 1, sequences_.get()); }},
      {"OgaAppendTokenToSequence", "sequences", [] { return OgaAppendTokenToSequence(1, nullptr, 0); }},
      {"OgaSequencesGetSequenceCount", "", [] { return Gives(OgaSequencesGetSequenceCount(nullptr, 0), size_t{0}); }},
      {"OgaSequencesGetSequenceData", "",
       [] { return Gives(OgaSequencesGetSequenceData(nullptr, 0), static_cast<const int32_t*>(nullptr)); }},
      {"OgaCreateStringArray", "out", [] { return OgaCreateStringArray(nullptr); }},
      {"OgaCreateStringArrayFromStrings", "strs",
       [&] { return OgaCreateStringArrayFromStrings(nullptr, 1, &strings_out_); }},
      {"OgaCreateStringArrayFromStrings", "out", [] { return OgaCreateStringArrayFromStrings(kStrings, 1, nullptr); }},
      {"OgaDestroyStringArray", "", [] { return OgaDestroyStringArray(nullptr), nullptr; }},
      {"OgaStringArrayAddString", "string_array", [] { return OgaStringArrayAddString(nullptr, "a"); }},
      {"OgaStringArrayAddString", "str", [&] { return OgaStringArrayAddString(strings_.get(), nullptr); }},
      {"OgaStringArrayGetCount", "string_array", [&] { return OgaStringArrayGetCount(nullptr, &size_out_); }},
      {"OgaStringArrayGetCount", "out", [&] { return OgaStringArrayGetCount(strings_.get(), nullptr); }},
      {"OgaStringArrayGetString", "string_array", [&] { return OgaStringArrayGetString(nullptr, 0, &string_out_); }},
      {"OgaStringArrayGetString", "out", [&] { return OgaStringArrayGetString(strings_.get(), 0, nullptr); }},
  };
}

std::vector<NullCase> NullParameters::AllCases() {
  std::vector<NullCase> all;
  for (const auto& cases : {LibraryCases(), EngineCases(), EventCases(), RequestCases(), TurnOptionsCases(),
                            OutputCases(), ListCases(), TokenizerCases(), TokenizerStreamCases(), RoleCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

namespace {

TEST_F(NullParameters, AreRefusedByNameOrAnsweredNeutrally) {
  for (const NullCase& null_case : AllCases()) {
    SCOPED_TRACE(null_case.function);
    const Outcome outcome = Take(null_case.call());
    if (*null_case.parameter == '\0') {
      EXPECT_EQ(outcome.code, OgaStatusCode_Ok) << outcome.message;
    } else {
      EXPECT_EQ(outcome.code, OgaStatusCode_InvalidArgument);
      EXPECT_EQ(outcome.message, std::string(null_case.parameter) + " must not be null.");
    }
  }
}

TEST_F(NullParameters, ChangeNothing) {
  for (const NullCase& null_case : AllCases()) OgaDestroyResult(null_case.call());
  EXPECT_EQ(CopyEvents(buffer_.get()).size(), 1u);
  bool cancelled = false;
  Must(OgaRequestCancelTurn(request_.get(), 1, &cancelled));
  EXPECT_TRUE(cancelled) << "the live turn was lost";
}

TEST_F(NullParameters, AreTestedForEveryFunction) {
  std::set<std::string> tested;
  for (const NullCase& null_case : AllCases()) tested.insert(null_case.function);
  const std::string source = test::RequireEnvironment("OGA_TEST_SOURCE_DIR", nullptr, "the folder tests/");
  std::ifstream ledger(source + "/../include/oga/symbols.txt");
  ASSERT_TRUE(ledger) << "cannot read symbols.txt";
  std::string function;
  std::string version;
  while (ledger >> function >> version) {
    EXPECT_EQ(tested.erase(function), 1u) << "add " << function << " to the tables of this file";
  }
  EXPECT_TRUE(tested.empty()) << *tested.begin() << " is not in symbols.txt";
}

}  // namespace
}  // namespace oga::capi_test
