#include <oga/event.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Event : public WithEngine {
 protected:
  // An overlay that makes `token` the model's only EOS.
  static std::string EosOverlay(int32_t token) {
    return R"({"model": {"eos_token_id": )" + std::to_string(token) + "}}";
  }
};

TEST_F(Event, ATokenEventCarriesItsTokenAndNoEnding) {
  const RequestHandle request = MakeRequest(engine_.get());
  const uint64_t turn_id = BeginTurn(request.get(), Prompt(3), ExactlyTokens(request.get(), 2).get());
  const std::vector<EventCopy> events = Step(engine_.get(), buffer_.get());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].flags, OgaEngineEventFlag_Token);
  EXPECT_EQ(events[0].request, request.get()) << "an event names the request by the pointer the caller holds";
  EXPECT_EQ(events[0].turn_id, turn_id);
  EXPECT_GE(events[0].token, 0);
  EXPECT_LT(events[0].token, kVocab);
  EXPECT_EQ(events[0].reason, OgaFinishReason_None);
  EXPECT_EQ(events[0].stop_index, -1);
  EXPECT_EQ(events[0].error, OgaErrorCode_None);
  EXPECT_EQ(events[0].failure, OgaFailureKind_None);
  EXPECT_EQ(events[0].prompt_tokens + events[0].generated_tokens + events[0].cached_prompt_tokens, 0u);
}

TEST_F(Event, TheLastTokenAndTheEndingShareOneEvent) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(3), ExactlyTokens(request.get(), 1).get());
  const std::vector<EventCopy> events = Step(engine_.get(), buffer_.get());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].flags, OgaEngineEventFlag_Token | OgaEngineEventFlag_TurnFinished);
  EXPECT_EQ(events[0].reason, OgaFinishReason_MaxGeneratedTokens);
  EXPECT_EQ(events[0].prompt_tokens, 3u);
  EXPECT_EQ(events[0].generated_tokens, 1u);
}

TEST_F(Event, AnEosEndsTheTurnWithoutAToken) {
  const int32_t first = Generate(Prompt(3), 1)[0];
  const ModelHandle model = MakeModel(EosOverlay(first));
  const EngineHandle engine = MakeEngine(model.get());
  const BufferHandle buffer = MakeBuffer(engine.get());
  const RequestHandle request = MakeRequest(engine.get());
  BeginTurn(request.get(), Prompt(3));
  const std::vector<EventCopy> events = Step(engine.get(), buffer.get());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].flags, OgaEngineEventFlag_TurnFinished);
  EXPECT_EQ(events[0].reason, OgaFinishReason_Eos);
  EXPECT_EQ(events[0].token, 0);
  EXPECT_EQ(events[0].generated_tokens, 0u);
}

TEST_F(Event, TheSessionLimitHasItsOwnReason) {
  const RequestHandle request = MakeRequest(engine_.get(), 4);
  const Transcript transcript = Finish(request.get(), Prompt(3));
  ASSERT_EQ(transcript.endings.size(), 1u);
  EXPECT_EQ(transcript.endings[0].reason, OgaFinishReason_MaxSessionTokens);
  EXPECT_EQ(transcript.tokens.size(), 1u);
}

TEST_F(Event, OfATurnThatFailedSaysWhy) {
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle options = ExactlyTokens(request.get(), 4);
  const int32_t only = 5;
  Must(OgaTurnOptionsSetAllowedTokens(options.get(), &only, 1));
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  const Owned<OgaSequences, OgaDestroySequences> banned(sequences);
  const int32_t twice[] = {only, only};
  Must(OgaAppendTokenSequence(twice, 2, sequences));
  Must(OgaTurnOptionsSetBannedSequences(options.get(), sequences));
  const Transcript transcript = Finish(request.get(), Prompt(3), options.get());
  EXPECT_EQ(transcript.tokens, std::vector<int32_t>{only});
  ASSERT_EQ(transcript.endings.size(), 1u);
  EXPECT_EQ(transcript.endings[0].reason, OgaFinishReason_Failed);
  EXPECT_EQ(transcript.endings[0].failure, OgaFailureKind_NoAllowedToken);
  EXPECT_EQ(transcript.endings[0].error, OgaErrorCode_RequestUnserviceable);
}

TEST_F(Event, OutlivesTheRequestItIsAbout) {
  RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(3));
  const std::vector<EventCopy> before = Step(engine_.get(), buffer_.get());
  Must(OgaRequestClose(request.get()));
  request.reset();
  const std::vector<EventCopy> after = CopyEvents(buffer_.get());
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].token, before[0].token);
  EXPECT_EQ(after[0].request, before[0].request);
}

TEST_F(Event, FlagsWriteFourBytes) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(3));
  Step(engine_.get(), buffer_.get());
  struct {
    uint32_t value = 0xaaaaaaaa;
    uint32_t guard = 0xbbbbbbbb;
  } cell;
  const OgaEngineEvent* event = OgaEngineEventBufferGet(buffer_.get(), 0);
  Must(OgaEngineEventGetFlags(event, &cell.value));
  Must(OgaEngineEventGetFinishReason(event, &cell.value));
  Must(OgaEngineEventGetErrorCode(event, &cell.value));
  Must(OgaEngineEventGetFailure(event, &cell.value));
  EXPECT_EQ(cell.value, 0u);
  EXPECT_EQ(cell.guard, 0xbbbbbbbb);
}

TEST_F(Event, GettersWriteTheirNeutralValueBeforeTheyRefuseANullEvent) {
  OgaEngineEventFlags flags = 7;
  const OgaRequest* request = reinterpret_cast<const OgaRequest*>(this);
  uint64_t turn_id = 7;
  int32_t token = 7;
  OgaFinishReason reason = 7;
  int32_t index = 7;
  OgaErrorCode error = 7;
  OgaFailureKind failure = 7;
  const OgaTurnUsage* usage = reinterpret_cast<const OgaTurnUsage*>(this);
  EXPECT_TRUE(Fails(OgaEngineEventGetFlags(nullptr, &flags), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetRequest(nullptr, &request), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetTurnId(nullptr, &turn_id), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetToken(nullptr, &token), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetFinishReason(nullptr, &reason), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetMatchedStopStringIndex(nullptr, &index), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetErrorCode(nullptr, &error), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetFailure(nullptr, &failure), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaEngineEventGetUsage(nullptr, &usage), OgaStatusCode_InvalidArgument));
  EXPECT_EQ(flags + turn_id + static_cast<uint32_t>(token) + reason + error + failure, 0u);
  EXPECT_EQ(index, -1);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(usage, nullptr);
}

}  // namespace
}  // namespace oga::capi_test
