// What a host sees when executions fail: the request-less events, the fatal end, one bad row among good ones.
#include <limits>

#include "capi/boundary/scripted_host.h"

namespace oga::capi_test {
namespace {

class Failures : public ::testing::Test {
 protected:
  void SetUp() override { OgaSetLogBool("warning", false); }
  void TearDown() override { OgaSetLogBool("warning", true); }

  void ExpectARolledBackStep(OgaEngineEventFlags flags, OgaErrorCode error) {
    const RequestHandle request = MakeRequest(host_.engine.get());
    BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 4).get());
    const std::vector<EventCopy> events = Step(host_.engine.get(), host_.buffer.get());
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].flags, flags);
    EXPECT_EQ(events[0].error, error);
    EXPECT_EQ(events[0].request, nullptr);
    EXPECT_EQ(events[0].turn_id, 0u);
    EXPECT_EQ(events[0].stop_index, -1);
    EXPECT_EQ(events[0].prompt_tokens, 0u);
    EXPECT_TRUE(HasPending(host_.engine.get()));
    EXPECT_EQ(RunToEnd(host_.engine.get(), host_.buffer.get())[request.get()].tokens, host_.Expected(Prompt(5), 4))
        << "a rolled-back step left a trace";
    EXPECT_EQ(Count(host_.engine.get(), "rolled_back_steps"), 1u);
  }

  ScriptedHost host_;
};

TEST_F(Failures, AStepThatMayBeRetriedIsToldAndLeavesNoTrace) {
  host_.FailNext(ExecutionStatus::kRetryable);
  ExpectARolledBackStep(OgaEngineEventFlag_Retryable, OgaErrorCode_RetryableExecution);
}

TEST_F(Failures, AStepThatRanOutOfMemoryIsToldAndLeavesNoTrace) {
  host_.FailNext(ExecutionStatus::kCapacityExceeded);
  ExpectARolledBackStep(OgaEngineEventFlag_CapacityBlocked, OgaErrorCode_ExecutionCapacityExceeded);
}

TEST_F(Failures, AFatalExecutionEndsEveryTurnAndTheEngine) {
  const RequestHandle first = MakeRequest(host_.engine.get());
  const RequestHandle second = MakeRequest(host_.engine.get());
  const BufferHandle one = MakeBuffer(host_.engine.get(), 1);
  const BufferHandle none = MakeBuffer(host_.engine.get(), 0);
  BeginTurn(first.get(), Prompt(5));
  BeginTurn(second.get(), Prompt(3));
  host_.FailNext(ExecutionStatus::kFatal);
  for (const OgaRequest* request : {first.get(), second.get()}) {
    const std::vector<EventCopy> events = Step(host_.engine.get(), one.get());
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].flags, OgaEngineEventFlag_TurnFinished | OgaEngineEventFlag_Failed);
    EXPECT_EQ(events[0].reason, OgaFinishReason_Failed);
    EXPECT_EQ(events[0].error, OgaErrorCode_EngineExecutionFailure);
    EXPECT_EQ(events[0].request, request);
  }
  EXPECT_FALSE(HasPending(host_.engine.get()));

  OgaRequest* request = nullptr;
  uint64_t turn_id = 9;
  const int32_t token = 1;
  for (OgaEngineEventBuffer* buffer : {host_.buffer.get(), none.get()}) {
    EXPECT_TRUE(Fails(OgaEngineRun(host_.engine.get(), buffer), OgaStatusCode_EngineUnhealthy, "scripted failure"));
  }
  EXPECT_TRUE(Fails(OgaEngineCreateRequest(host_.engine.get(), nullptr, &request), OgaStatusCode_EngineUnhealthy));
  EXPECT_TRUE(Fails(OgaRequestBeginTurn(first.get(), nullptr, &token, 1, &turn_id), OgaStatusCode_EngineUnhealthy));
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(first.get(), 1), OgaStatusCode_EngineUnhealthy));

  OgaEngineCapabilities* capabilities = nullptr;
  EXPECT_TRUE(Succeeds(OgaEngineGetCapabilities(host_.engine.get(), &capabilities)));
  OgaDestroyEngineCapabilities(capabilities);
  EXPECT_EQ(Count(host_.engine.get(), "steps"), 0u);
  EXPECT_TRUE(Succeeds(OgaRequestClose(first.get())));
  EXPECT_TRUE(Succeeds(OgaRequestClose(second.get())));
  EXPECT_EQ(Count(host_.engine.get(), "live_requests"), 0u);
}

TEST_F(Failures, AnExceptionFromTheModelIsFatalAndNeverReachesTheHost) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  BeginTurn(request.get(), Prompt(5));
  host_.executor->outcomes.push_back({.throws = true});
  EXPECT_EQ(Step(host_.engine.get(), host_.buffer.get()).at(0).error, OgaErrorCode_EngineExecutionFailure);
  EXPECT_TRUE(
      Fails(OgaEngineRun(host_.engine.get(), host_.buffer.get()), OgaStatusCode_EngineUnhealthy, "scripted exception"));
}

TEST_F(Failures, OneBadRowEndsItsOwnTurnOnly) {
  const RequestHandle bad = MakeRequest(host_.engine.get());
  const RequestHandle good = MakeRequest(host_.engine.get());
  host_.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId> history) {
    if (history.front() == 50) logits[7] = std::numeric_limits<float>::quiet_NaN();
  };
  BeginTurn(bad.get(), {50, 1}, ExactlyTokens(bad.get(), 4).get());
  BeginTurn(good.get(), Prompt(5), ExactlyTokens(good.get(), 4).get());
  Transcripts transcripts = RunToEnd(host_.engine.get(), host_.buffer.get());
  ASSERT_EQ(transcripts[bad.get()].endings.size(), 1u);
  EXPECT_EQ(transcripts[bad.get()].endings[0].reason, OgaFinishReason_Failed);
  EXPECT_TRUE(transcripts[bad.get()].tokens.empty());
  EXPECT_EQ(transcripts[good.get()].tokens, host_.Expected(Prompt(5), 4));

  uint64_t turn_id = 9;
  const int32_t token = 1;
  EXPECT_TRUE(
      Fails(OgaRequestBeginTurn(bad.get(), nullptr, &token, 1, &turn_id), OgaStatusCode_InvalidState, "failed"));
  EXPECT_TRUE(Succeeds(OgaRequestRewindToStartOfTurn(bad.get(), 1)));
  EXPECT_EQ(BeginTurn(bad.get(), Prompt(2)), 2u);
}

}  // namespace
}  // namespace oga::capi_test
