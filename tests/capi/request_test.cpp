#include <oga/request.h>

#include <climits>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Request : public WithEngine {
 protected:
  void SetUp() override {
    WithEngine::SetUp();
    request_ = MakeRequest(engine_.get());
  }

  // Begins a turn that must be refused: the out-parameter is reset and no turn id is used up.
  testing::AssertionResult Refused(const std::vector<int32_t>& tokens, OgaStatusCode code, const std::string& part,
                                   const OgaTurnOptions* options = nullptr) {
    uint64_t turn_id = 99;
    const auto failed =
        Fails(OgaRequestBeginTurn(request_.get(), options, tokens.data(), tokens.size(), &turn_id), code, part);
    if (!failed) return failed;
    if (turn_id != 0) return testing::AssertionFailure() << "out_turn_id is " << turn_id;
    return testing::AssertionSuccess();
  }

  bool Cancel(uint64_t turn_id) {
    bool cancelled = false;
    Must(OgaRequestCancelTurn(request_.get(), turn_id, &cancelled));
    return cancelled;
  }

  Transcript FinishTurn(const std::vector<int32_t>& tokens, uint64_t count) {
    return Finish(request_.get(), tokens, ExactlyTokens(request_.get(), count).get());
  }

  RequestHandle request_;
};

TEST_F(Request, TurnIdsCountFromOneAndARefusalUsesNone) {
  EXPECT_TRUE(Refused({}, OgaStatusCode_InvalidArgument, "empty"));
  EXPECT_EQ(BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 1).get()), 1u);
  RunToEnd(engine_.get(), buffer_.get());
  EXPECT_TRUE(Refused({kVocab}, OgaStatusCode_InvalidArgument, "61"));
  EXPECT_EQ(BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 1).get()), 2u);
}

TEST_F(Request, ASecondTurnContinuesTheSequence) {
  const std::vector<int32_t> first = FinishTurn(Prompt(4), 3).tokens;
  const std::vector<int32_t> second = FinishTurn(Prompt(2, 9), 4).tokens;
  std::vector<int32_t> whole = Prompt(4);
  whole.insert(whole.end(), first.begin(), first.end());
  const std::vector<int32_t> follow_up = Prompt(2, 9);
  whole.insert(whole.end(), follow_up.begin(), follow_up.end());
  EXPECT_EQ(Generate(whole, 4), second);
}

TEST_F(Request, InputIsCopied) {
  const std::vector<int32_t> expected = Generate(Prompt(4), 5);
  std::vector<int32_t> prompt = Prompt(4);
  BeginTurn(request_.get(), prompt, ExactlyTokens(request_.get(), 5).get());
  prompt.assign(4, 0);
  EXPECT_EQ(RunToEnd(engine_.get(), buffer_.get())[request_.get()].tokens, expected);
}

TEST_F(Request, EmptyAndMissingInputIsRefused) {
  uint64_t turn_id = 99;
  EXPECT_TRUE(Fails(OgaRequestBeginTurn(request_.get(), nullptr, nullptr, 0, &turn_id), OgaStatusCode_InvalidArgument,
                    "at least one token"));
  EXPECT_EQ(turn_id, 0u);
  EXPECT_TRUE(Fails(OgaRequestBeginTurn(request_.get(), nullptr, nullptr, 3, &turn_id), OgaStatusCode_InvalidArgument,
                    "input_ids must not be null."));
  EXPECT_EQ(FinishTurn(Prompt(2), 2).tokens.size(), 2u);
}

TEST_F(Request, TokensOutsideTheVocabularyAreRefusedByValue) {
  const std::vector<int32_t> expected = Generate(Prompt(2), 2);
  for (const int32_t bad : {-1, kVocab, 200000, INT_MIN, INT_MAX}) {
    EXPECT_TRUE(Refused({1, bad, 2}, OgaStatusCode_InvalidArgument, "input token 1 is " + std::to_string(bad)));
  }
  EXPECT_EQ(FinishTurn(Prompt(2), 2).tokens, expected) << "a refused input left something behind";
}

TEST_F(Request, InputMustLeaveRoomForOneToken) {
  EXPECT_TRUE(Refused(Prompt(kContext), OgaStatusCode_InvalidArgument, "64"));
  EXPECT_TRUE(Refused(Prompt(kContext + 1), OgaStatusCode_InvalidArgument, "65"));
  const Transcript transcript = Finish(request_.get(), Prompt(kContext - 1));
  EXPECT_EQ(transcript.endings.size(), 1u);
  EXPECT_LE(transcript.tokens.size(), 1u);
}

TEST_F(Request, AnAbsurdCountIsRefusedWithoutReading) {
  uint64_t turn_id = 99;
  const int32_t token = 1;
  for (const uint64_t count : {uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_TRUE(Fails(OgaRequestBeginTurn(request_.get(), nullptr, &token, count, &turn_id),
                      OgaStatusCode_InvalidArgument, std::to_string(count)));
    EXPECT_EQ(turn_id, 0u);
  }
}

TEST_F(Request, OnlyOneTurnIsLiveAtATime) {
  BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 2).get());
  EXPECT_TRUE(Refused(Prompt(2), OgaStatusCode_InvalidState, "live"));
  Step(engine_.get(), buffer_.get());
  EXPECT_TRUE(Refused(Prompt(2), OgaStatusCode_InvalidState, "live"));
}

TEST_F(Request, UndrainedEventsBlockTheNextTurnOfTheirRequestOnly) {
  const BufferHandle one = MakeBuffer(engine_.get(), 1);
  const RequestHandle other = MakeRequest(engine_.get());
  BeginTurn(other.get(), Prompt(2), ExactlyTokens(other.get(), 1).get());
  BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 1).get());
  ASSERT_EQ(Step(engine_.get(), one.get())[0].request, other.get());
  EXPECT_TRUE(Refused(Prompt(1), OgaStatusCode_InvalidState, "not taken yet"));
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request_.get(), 1), OgaStatusCode_InvalidState, "not taken yet"));
  EXPECT_EQ(BeginTurn(other.get(), Prompt(1)), 2u);
}

TEST_F(Request, OptionsOfAnotherRequestAreRefused) {
  const RequestHandle other = MakeRequest(engine_.get());
  EXPECT_TRUE(Refused(Prompt(2), OgaStatusCode_InvalidArgument, "another request", MakeTurnOptions(other.get()).get()));
}

TEST_F(Request, ANullOutParameterChangesNothing) {
  const std::vector<int32_t> prompt = Prompt(2);
  EXPECT_TRUE(Fails(OgaRequestBeginTurn(request_.get(), nullptr, prompt.data(), 2, nullptr),
                    OgaStatusCode_InvalidArgument, "out_turn_id must not be null."));
  EXPECT_FALSE(HasPending(engine_.get()));
  EXPECT_EQ(BeginTurn(request_.get(), prompt), 1u);
}

TEST_F(Request, SessionLimitsAreCheckedAtCreation) {
  OgaRequestOptions* options = nullptr;
  Must(OgaCreateRequestOptions(&options));
  const RequestOptionsHandle owned(options);
  OgaRequest* request = request_.get();
  for (const uint64_t tokens : {kContext + 1, UINT64_MAX}) {
    Must(OgaRequestOptionsSetMaxSessionTokens(options, tokens));
    EXPECT_TRUE(Fails(OgaEngineCreateRequest(engine_.get(), options, &request), OgaStatusCode_InvalidArgument,
                      "max_session_tokens is " + std::to_string(tokens)));
    EXPECT_EQ(request, nullptr);
  }
  for (const uint64_t tokens : {uint64_t{0}, uint64_t{1}, kContext}) {
    EXPECT_NE(MakeRequest(engine_.get(), tokens), nullptr) << tokens;
  }
}

TEST_F(Request, OptionsMayBeReusedAndDestroyed) {
  OgaRequestOptions* options = nullptr;
  Must(OgaCreateRequestOptions(&options));
  Must(OgaRequestOptionsSetMaxSessionTokens(options, 4));
  Must(OgaRequestOptionsSetPriority(options, -3));
  OgaRequest* requests[2] = {};
  for (OgaRequest*& request : requests) Must(OgaEngineCreateRequest(engine_.get(), options, &request));
  OgaDestroyRequestOptions(options);
  for (OgaRequest* request : requests) {
    const RequestHandle owned(request);
    EXPECT_EQ(Finish(request, Prompt(3)).endings[0].reason, OgaFinishReason_MaxSessionTokens);
  }
}

TEST_F(Request, PriorityGoesFirstWhenNotEverybodyCan) {
  OgaRequestOptions* options = nullptr;
  Must(OgaCreateRequestOptions(&options));
  const RequestOptionsHandle owned(options);
  Must(OgaRequestOptionsSetPriority(options, 5));
  OgaRequest* urgent = nullptr;
  Must(OgaEngineCreateRequest(engine_.get(), options, &urgent));
  const RequestHandle owned_request(urgent);
  std::vector<RequestHandle> others;
  for (size_t i = 0; i < kMaxBatchSize; ++i) {
    others.push_back(MakeRequest(engine_.get()));
    BeginTurn(others.back().get(), Prompt(2));
  }
  BeginTurn(urgent, Prompt(2));
  const std::vector<EventCopy> events = Step(engine_.get(), buffer_.get());
  ASSERT_EQ(events.size(), kMaxBatchSize);
  EXPECT_EQ(events[0].request, urgent);
}

TEST_F(Request, CancelBeforeTheFirstTurnIsRefusedAndLeavesTheOutParameter) {
  bool cancelled = true;
  EXPECT_TRUE(Fails(OgaRequestCancelTurn(request_.get(), 1, &cancelled), OgaStatusCode_InvalidState));
  EXPECT_TRUE(cancelled);
}

TEST_F(Request, CancelEndsALiveTurnOnce) {
  const uint64_t turn_id = BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 9).get());
  EXPECT_FALSE(Cancel(0));
  EXPECT_FALSE(Cancel(turn_id + 1));
  EXPECT_TRUE(Cancel(turn_id));
  EXPECT_FALSE(Cancel(turn_id));
  EXPECT_TRUE(HasPending(engine_.get()));
  const std::vector<EventCopy> events = Step(engine_.get(), buffer_.get());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].flags, OgaEngineEventFlag_TurnFinished);
  EXPECT_EQ(events[0].reason, OgaFinishReason_Cancelled);
  EXPECT_EQ(events[0].prompt_tokens, 2u);
  EXPECT_EQ(Count(engine_.get(), "steps"), 0u);
}

TEST_F(Request, ACancelledTurnsInputStaysPartOfTheSequence) {
  Cancel(BeginTurn(request_.get(), Prompt(4)));
  RunToEnd(engine_.get(), buffer_.get());
  std::vector<int32_t> whole = Prompt(4);
  whole.push_back(11);
  const Transcript transcript = FinishTurn({11}, 3);
  EXPECT_EQ(transcript.endings[0].prompt_tokens, 1u);
  EXPECT_EQ(transcript.tokens, Generate(whole, 3));
}

TEST_F(Request, ACancelJoinsTheTokenEventThatIsStillRetained) {
  const BufferHandle one = MakeBuffer(engine_.get(), 1);
  const RequestHandle other = MakeRequest(engine_.get());
  BeginTurn(other.get(), Prompt(2), ExactlyTokens(other.get(), 9).get());
  const uint64_t turn_id = BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 9).get());
  ASSERT_EQ(Step(engine_.get(), one.get())[0].request, other.get());
  EXPECT_TRUE(Cancel(turn_id));
  const std::vector<EventCopy> events = Step(engine_.get(), one.get());
  ASSERT_EQ(events[0].request, request_.get());
  EXPECT_EQ(events[0].flags, OgaEngineEventFlag_Token | OgaEngineEventFlag_TurnFinished);
  EXPECT_EQ(events[0].reason, OgaFinishReason_Cancelled);
}

TEST_F(Request, RewindRemovesATurnAndAllLaterOnes) {
  const std::vector<int32_t> first = FinishTurn(Prompt(4), 3).tokens;
  const std::vector<int32_t> second = FinishTurn({9}, 3).tokens;
  EXPECT_TRUE(Succeeds(OgaRequestRewindToStartOfTurn(request_.get(), 2)));
  const Transcript again = FinishTurn({9}, 3);
  EXPECT_EQ(again.tokens, second);
  EXPECT_EQ(again.endings[0].turn_id, 3u) << "ids are never reused";
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request_.get(), 2), OgaStatusCode_NotFound, "turn 2"));
  EXPECT_TRUE(Succeeds(OgaRequestRewindToStartOfTurn(request_.get(), 1)));
  EXPECT_EQ(FinishTurn(Prompt(4), 3).tokens, first);
}

TEST_F(Request, RewindNeedsACompletedTurn) {
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request_.get(), 1), OgaStatusCode_NotFound));
  const uint64_t turn_id = BeginTurn(request_.get(), Prompt(2), ExactlyTokens(request_.get(), 1).get());
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request_.get(), turn_id), OgaStatusCode_InvalidState, "live"));
  RunToEnd(engine_.get(), buffer_.get());
  for (const uint64_t unknown : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request_.get(), unknown), OgaStatusCode_NotFound));
  }
}

TEST_F(Request, AForkContinuesTheSequenceOnItsOwn) {
  std::vector<int32_t> whole = Prompt(4);
  const std::vector<int32_t> first = FinishTurn(Prompt(4), 3).tokens;
  whole.insert(whole.end(), first.begin(), first.end());
  OgaRequest* fork = nullptr;
  ASSERT_TRUE(Succeeds(OgaRequestFork(request_.get(), &fork)));
  const RequestHandle owned(fork);

  // Both go on at once, each with its own input.
  EXPECT_EQ(BeginTurn(request_.get(), {9}, ExactlyTokens(request_.get(), 3).get()), 2u);
  EXPECT_EQ(BeginTurn(fork, {10}, ExactlyTokens(fork, 3).get()), 2u);
  Transcripts transcripts = RunToEnd(engine_.get(), buffer_.get());
  std::vector<int32_t> whole_fork = whole;
  whole.push_back(9);
  whole_fork.push_back(10);
  EXPECT_EQ(transcripts[request_.get()].tokens, Generate(whole, 3));
  EXPECT_EQ(transcripts[fork].tokens, Generate(whole_fork, 3));
}

TEST_F(Request, AForkNeedsASequenceAtRest) {
  OgaRequest* fork = request_.get();
  EXPECT_TRUE(Fails(OgaRequestFork(request_.get(), &fork), OgaStatusCode_InvalidState, "no turn yet"));
  EXPECT_EQ(fork, nullptr);
  BeginTurn(request_.get(), Prompt(2));
  EXPECT_TRUE(Fails(OgaRequestFork(request_.get(), &fork), OgaStatusCode_InvalidState, "live"));
  Must(OgaRequestClose(request_.get()));
  EXPECT_TRUE(Fails(OgaRequestFork(request_.get(), &fork), OgaStatusCode_InvalidState, "closed"));
}

TEST_F(Request, CloseEndsItAnywhereAndTwice) {
  BeginTurn(request_.get(), Prompt(2));
  Step(engine_.get(), buffer_.get());
  EXPECT_TRUE(Succeeds(OgaRequestClose(request_.get())));
  EXPECT_FALSE(HasPending(engine_.get()));
  EXPECT_EQ(Count(engine_.get(), "free_blocks"), kBlocks);
  EXPECT_TRUE(Succeeds(OgaRequestClose(request_.get())));
  EXPECT_TRUE(Refused(Prompt(2), OgaStatusCode_InvalidState, "closed"));
  bool cancelled = true;
  EXPECT_TRUE(Fails(OgaRequestCancelTurn(request_.get(), 1, &cancelled), OgaStatusCode_InvalidState, "closed"));
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request_.get(), 1), OgaStatusCode_InvalidState, "closed"));
}

TEST_F(Request, ClosePurgesItsUndrainedEvents) {
  const BufferHandle one = MakeBuffer(engine_.get(), 1);
  const RequestHandle other = MakeRequest(engine_.get());
  BeginTurn(other.get(), Prompt(2), ExactlyTokens(other.get(), 1).get());
  BeginTurn(request_.get(), Prompt(2));
  ASSERT_EQ(Step(engine_.get(), one.get())[0].request, other.get());
  Must(OgaRequestClose(request_.get()));
  EXPECT_FALSE(HasPending(engine_.get()));
  EXPECT_TRUE(Step(engine_.get(), one.get()).empty());
}

}  // namespace
}  // namespace oga::capi_test
