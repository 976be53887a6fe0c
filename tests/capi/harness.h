// The C API as its tests use it: results checked by value, handles that release themselves, the moves of a host.
// Everything goes through liboga.so; nothing here knows its inside.
#pragma once

#include <gtest/gtest.h>
#include <oga/oga.h>

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/test_data.h"

namespace oga::capi_test {

// The tiny decoder of tests/models, and the limits in its config.
constexpr int32_t kVocab = 61;
constexpr uint64_t kContext = 64;
constexpr size_t kMaxBatchSize = 4;
constexpr size_t kMaxScheduledTokens = 32;
constexpr uint64_t kBlockSize = 4;
constexpr uint64_t kBlocks = 24;

// A result by value; the handle is freed.
struct Outcome {
  OgaStatusCode code = OgaStatusCode_Ok;
  std::string field;
  std::string message;
};

inline Outcome Take(OgaResult* result) {
  Outcome outcome{OgaResultGetCode(result), OgaResultGetField(result), OgaResultGetError(result)};
  EXPECT_EQ(result == nullptr, outcome.code == OgaStatusCode_Ok);
  EXPECT_EQ(result == nullptr, outcome.message.empty()) << "a failure says why, a success says nothing";
  OgaDestroyResult(result);
  return outcome;
}

inline ::testing::AssertionResult Succeeds(OgaResult* result) {
  const Outcome outcome = Take(result);
  if (outcome.code == OgaStatusCode_Ok) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "failed with status " << outcome.code << ": " << outcome.message;
}

// Fails with `code` and a message that contains `part`.
inline ::testing::AssertionResult Fails(OgaResult* result, OgaStatusCode code, const std::string& part = "") {
  const Outcome outcome = Take(result);
  if (outcome.code == code && outcome.message.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "status " << outcome.code << " (wanted " << code << "), message \""
                                       << outcome.message << "\" (wanted \"" << part << "\")";
}

template <auto Destroy>
struct Deleter {
  template <typename Type>
  void operator()(Type* pointer) const {
    Destroy(pointer);
  }
};
template <typename Type, auto Destroy>
using Owned = std::unique_ptr<Type, Deleter<Destroy>>;

using ConfigHandle = Owned<OgaConfig, OgaDestroyConfig>;
using ModelHandle = Owned<OgaModel, OgaDestroyModel>;
using EngineHandle = Owned<OgaEngine, OgaDestroyEngine>;
using BufferHandle = Owned<OgaEngineEventBuffer, OgaDestroyEngineEventBuffer>;
using RequestHandle = Owned<OgaRequest, OgaDestroyRequest>;
using RequestOptionsHandle = Owned<OgaRequestOptions, OgaDestroyRequestOptions>;
using TurnOptionsHandle = Owned<OgaTurnOptions, OgaDestroyTurnOptions>;
using StatisticsHandle = Owned<OgaEngineStatistics, OgaDestroyEngineStatistics>;

// Throws, and so ends the test, when the result is a failure: for what a test only builds on.
inline void Must(OgaResult* result) {
  const Outcome outcome = Take(result);
  if (outcome.code != OgaStatusCode_Ok) throw std::runtime_error(outcome.message);
}

inline std::string ModelFolder() { return test::DataPath("models/separate"); }

inline ConfigHandle MakeConfig(const std::string& overlay = "") {
  OgaConfig* config = nullptr;
  Must(OgaCreateConfig(ModelFolder().c_str(), &config));
  ConfigHandle owned(config);
  if (!overlay.empty()) Must(OgaConfigOverlay(config, overlay.c_str()));
  return owned;
}

inline ModelHandle MakeModel(const std::string& overlay = "") {
  OgaModel* model = nullptr;
  Must(OgaCreateModelFromConfig(MakeConfig(overlay).get(), &model));
  return ModelHandle(model);
}

inline EngineHandle MakeEngine(OgaModel* model) {
  OgaEngine* engine = nullptr;
  Must(OgaCreateEngine(model, &engine));
  return EngineHandle(engine);
}

inline BufferHandle MakeBuffer(OgaEngine* engine, size_t capacity = 16) {
  OgaEngineEventBuffer* buffer = nullptr;
  Must(OgaCreateEngineEventBuffer(engine, capacity, &buffer));
  return BufferHandle(buffer);
}

inline RequestHandle MakeRequest(OgaEngine* engine, uint64_t max_session_tokens = 0) {
  OgaRequestOptions* options = nullptr;
  Must(OgaCreateRequestOptions(&options));
  const RequestOptionsHandle owned(options);
  Must(OgaRequestOptionsSetMaxSessionTokens(options, max_session_tokens));
  OgaRequest* request = nullptr;
  Must(OgaEngineCreateRequest(engine, options, &request));
  return RequestHandle(request);
}

inline TurnOptionsHandle MakeTurnOptions(OgaRequest* request) {
  OgaTurnOptions* options = nullptr;
  Must(OgaRequestCreateTurnOptions(request, &options));
  return TurnOptionsHandle(options);
}

// Options that end a turn after `tokens` and mask EOS until then.
inline TurnOptionsHandle ExactlyTokens(OgaRequest* request, uint64_t tokens) {
  TurnOptionsHandle options = MakeTurnOptions(request);
  Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), tokens));
  Must(OgaTurnOptionsSetMinGeneratedTokens(options.get(), tokens));
  return options;
}

inline std::vector<int32_t> Prompt(size_t length, int32_t first = 3) {
  std::vector<int32_t> tokens(length);
  for (size_t i = 0; i < length; ++i) tokens[i] = (first + 7 * static_cast<int32_t>(i)) % kVocab;
  return tokens;
}

inline uint64_t BeginTurn(OgaRequest* request, const std::vector<int32_t>& tokens,
                          const OgaTurnOptions* options = nullptr) {
  uint64_t turn_id = 0;
  Must(OgaRequestBeginTurn(request, options, tokens.data(), tokens.size(), &turn_id));
  return turn_id;
}

// One event by value.
struct EventCopy {
  OgaEngineEventFlags flags = 0;
  const OgaRequest* request = nullptr;
  uint64_t turn_id = 0;
  int32_t token = 0;
  OgaFinishReason reason = 0;
  int32_t stop_index = 0;
  OgaErrorCode error = 0;
  OgaFailureKind failure = 0;
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t cached_prompt_tokens = 0;

  bool has_token() const { return (flags & OgaEngineEventFlag_Token) != 0; }
  bool finished() const { return (flags & OgaEngineEventFlag_TurnFinished) != 0; }
};

inline EventCopy CopyEvent(const OgaEngineEvent* event) {
  EventCopy copy;
  const OgaTurnUsage* usage = nullptr;
  Must(OgaEngineEventGetFlags(event, &copy.flags));
  Must(OgaEngineEventGetRequest(event, &copy.request));
  Must(OgaEngineEventGetTurnId(event, &copy.turn_id));
  Must(OgaEngineEventGetToken(event, &copy.token));
  Must(OgaEngineEventGetFinishReason(event, &copy.reason));
  Must(OgaEngineEventGetMatchedStopStringIndex(event, &copy.stop_index));
  Must(OgaEngineEventGetErrorCode(event, &copy.error));
  Must(OgaEngineEventGetFailure(event, &copy.failure));
  Must(OgaEngineEventGetUsage(event, &usage));
  Must(OgaTurnUsageGetPromptTokens(usage, &copy.prompt_tokens));
  Must(OgaTurnUsageGetGeneratedTokens(usage, &copy.generated_tokens));
  Must(OgaTurnUsageGetCachedPromptTokens(usage, &copy.cached_prompt_tokens));
  return copy;
}

inline std::vector<EventCopy> CopyEvents(const OgaEngineEventBuffer* buffer) {
  std::vector<EventCopy> events;
  for (size_t i = 0; i < OgaEngineEventBufferGetCount(buffer); ++i) {
    events.push_back(CopyEvent(OgaEngineEventBufferGet(buffer, i)));
  }
  return events;
}

inline std::vector<EventCopy> Step(OgaEngine* engine, OgaEngineEventBuffer* buffer) {
  Must(OgaEngineRun(engine, buffer));
  return CopyEvents(buffer);
}

inline bool HasPending(OgaEngine* engine) {
  bool pending = false;
  Must(OgaEngineHasPendingRequests(engine, &pending));
  return pending;
}

inline uint64_t Count(const OgaEngine* engine, const char* name) {
  OgaEngineStatistics* statistics = nullptr;
  Must(OgaEngineGetStatistics(engine, &statistics));
  const StatisticsHandle owned(statistics);
  uint64_t count = 0;
  Must(OgaEngineStatisticsGetCount(statistics, name, &count));
  return count;
}

// What one request was told.
struct Transcript {
  std::vector<int32_t> tokens;
  std::vector<EventCopy> endings;
};
using Transcripts = std::map<const OgaRequest*, Transcript>;

inline Transcripts RunToEnd(OgaEngine* engine, OgaEngineEventBuffer* buffer) {
  Transcripts transcripts;
  for (int step = 0; HasPending(engine); ++step) {
    if (step == 10000) throw std::runtime_error("the engine does not come to an end");
    for (const EventCopy& event : Step(engine, buffer)) {
      Transcript& transcript = transcripts[event.request];
      if (event.has_token()) transcript.tokens.push_back(event.token);
      if (event.finished()) transcript.endings.push_back(event);
    }
  }
  return transcripts;
}

// A loaded model with one engine and a buffer on it.
class WithEngine : public test::WithRuntime {
 protected:
  void SetUp() override {
    WithRuntime::SetUp();
    model_ = MakeModel(Overlay());
    engine_ = MakeEngine(model_.get());
    buffer_ = MakeBuffer(engine_.get());
  }

  virtual std::string Overlay() const { return ""; }

  // Begins a turn and returns all that comes of it.
  Transcript Finish(OgaRequest* request, const std::vector<int32_t>& tokens, const OgaTurnOptions* options = nullptr) {
    BeginTurn(request, tokens, options);
    return RunToEnd(engine_.get(), buffer_.get())[request];
  }

  // The tokens of a fresh request that generates exactly `count`.
  std::vector<int32_t> Generate(const std::vector<int32_t>& prompt, uint64_t count) {
    const RequestHandle request = MakeRequest(engine_.get());
    return Finish(request.get(), prompt, ExactlyTokens(request.get(), count).get()).tokens;
  }

  ModelHandle model_;
  EngineHandle engine_;
  BufferHandle buffer_;
};

}  // namespace oga::capi_test
