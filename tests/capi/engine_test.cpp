#include <oga/engine.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Engine : public WithEngine {};

TEST_F(Engine, ManyRequestsTogetherGenerateWhatEachGeneratesAlone) {
  std::vector<std::vector<int32_t>> alone;
  for (int32_t i = 0; i < 6; ++i) alone.push_back(Generate(Prompt(3 + 2 * static_cast<size_t>(i), i), 8));

  std::vector<RequestHandle> requests;
  for (int32_t i = 0; i < 6; ++i) {
    requests.push_back(MakeRequest(engine_.get()));
    BeginTurn(requests.back().get(), Prompt(3 + 2 * static_cast<size_t>(i), i),
              ExactlyTokens(requests.back().get(), 8).get());
  }
  Transcripts transcripts = RunToEnd(engine_.get(), buffer_.get());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(transcripts[requests[i].get()].tokens, alone[i]) << "request " << i;
    EXPECT_EQ(transcripts[requests[i].get()].endings.size(), 1u);
  }
  EXPECT_NE(alone[0], alone[1]);
}

TEST_F(Engine, OneRunIsOneStepWithEventsInOrder) {
  const RequestHandle first = MakeRequest(engine_.get());
  const RequestHandle second = MakeRequest(engine_.get());
  // The order of turns counts, not the order of creation.
  BeginTurn(second.get(), Prompt(2), ExactlyTokens(second.get(), 2).get());
  BeginTurn(first.get(), Prompt(3), ExactlyTokens(first.get(), 2).get());
  const std::vector<EventCopy> events = Step(engine_.get(), buffer_.get());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].request, second.get());
  EXPECT_EQ(events[1].request, first.get());
  EXPECT_EQ(Count(engine_.get(), "steps"), 1u);
}

TEST_F(Engine, RetainsWhatDoesNotFitAndNeverMixesSteps) {
  const BufferHandle small = MakeBuffer(engine_.get(), 2);
  std::vector<RequestHandle> requests;
  for (int32_t i = 0; i < 3; ++i) {
    requests.push_back(MakeRequest(engine_.get()));
    BeginTurn(requests.back().get(), Prompt(2, i), ExactlyTokens(requests.back().get(), 2).get());
  }
  for (const uint64_t step : {1, 2}) {
    const std::vector<EventCopy> head = Step(engine_.get(), small.get());
    ASSERT_EQ(head.size(), 2u);
    EXPECT_EQ(head[0].request, requests[0].get());
    EXPECT_EQ(head[1].request, requests[1].get());
    EXPECT_EQ(Count(engine_.get(), "steps"), step);
    const std::vector<EventCopy> tail = Step(engine_.get(), small.get());
    ASSERT_EQ(tail.size(), 1u);
    EXPECT_EQ(tail[0].request, requests[2].get());
    EXPECT_EQ(Count(engine_.get(), "steps"), step);
  }
  EXPECT_FALSE(HasPending(engine_.get()));
}

TEST_F(Engine, CapacityZeroRunsNothing) {
  const BufferHandle none = MakeBuffer(engine_.get(), 0);
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2));
  EXPECT_TRUE(Succeeds(OgaEngineRun(engine_.get(), none.get())));
  EXPECT_EQ(OgaEngineEventBufferGetCount(none.get()), 0u);
  EXPECT_EQ(Count(engine_.get(), "steps"), 0u);
  EXPECT_TRUE(HasPending(engine_.get()));
}

TEST_F(Engine, AnIdleEngineRunsEmpty) {
  EXPECT_FALSE(HasPending(engine_.get()));
  EXPECT_TRUE(Step(engine_.get(), buffer_.get()).empty());
}

TEST_F(Engine, AChunkOfALongPromptCommitsWithoutAnEvent) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(kMaxScheduledTokens + 5), ExactlyTokens(request.get(), 1).get());
  EXPECT_TRUE(Step(engine_.get(), buffer_.get()).empty());
  EXPECT_TRUE(HasPending(engine_.get()));
  EXPECT_EQ(Step(engine_.get(), buffer_.get()).size(), 1u);
}

TEST_F(Engine, RefusesABufferOfAnotherEngineAndKeepsItsContent) {
  const EngineHandle other = MakeEngine(model_.get());
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2));
  const std::vector<EventCopy> before = Step(engine_.get(), buffer_.get());
  EXPECT_TRUE(Fails(OgaEngineRun(other.get(), buffer_.get()), OgaStatusCode_InvalidArgument, "another engine"));
  ASSERT_EQ(OgaEngineEventBufferGetCount(buffer_.get()), before.size());
  EXPECT_EQ(CopyEvents(buffer_.get())[0].token, before[0].token);
}

TEST_F(Engine, TwoEnginesOnOneModelDoNotDisturbEachOther) {
  const std::vector<int32_t> expected = Generate(Prompt(5), 10);
  const EngineHandle other = MakeEngine(model_.get());
  const BufferHandle other_buffer = MakeBuffer(other.get());
  model_.reset();
  const RequestHandle here = MakeRequest(engine_.get());
  const RequestHandle there = MakeRequest(other.get());
  BeginTurn(here.get(), Prompt(5), ExactlyTokens(here.get(), 10).get());
  BeginTurn(there.get(), Prompt(5), ExactlyTokens(there.get(), 10).get());
  std::vector<int32_t> tokens_here;
  std::vector<int32_t> tokens_there;
  while (HasPending(engine_.get()) || HasPending(other.get())) {
    for (const EventCopy& event : Step(engine_.get(), buffer_.get())) tokens_here.push_back(event.token);
    for (const EventCopy& event : Step(other.get(), other_buffer.get())) tokens_there.push_back(event.token);
  }
  EXPECT_EQ(tokens_here, expected);
  EXPECT_EQ(tokens_there, expected);
}

TEST_F(Engine, ItsEndLeavesClosedRequestsAndAReadableBuffer) {
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle options = MakeTurnOptions(request.get());
  BeginTurn(request.get(), Prompt(2));
  const std::vector<EventCopy> before = Step(engine_.get(), buffer_.get());
  engine_.reset();

  uint64_t turn_id = 99;
  bool cancelled = true;
  OgaTurnOptions* more = nullptr;
  const std::vector<int32_t> prompt = Prompt(2);
  EXPECT_TRUE(Fails(OgaRequestBeginTurn(request.get(), nullptr, prompt.data(), 2, &turn_id), OgaStatusCode_InvalidState,
                    "closed"));
  EXPECT_EQ(turn_id, 0u);
  EXPECT_TRUE(Fails(OgaRequestCancelTurn(request.get(), 1, &cancelled), OgaStatusCode_InvalidState, "closed"));
  EXPECT_TRUE(Fails(OgaRequestRewindToStartOfTurn(request.get(), 1), OgaStatusCode_InvalidState, "closed"));
  EXPECT_TRUE(Fails(OgaRequestCreateTurnOptions(request.get(), &more), OgaStatusCode_InvalidState, "closed"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetTopK(options.get(), 3), OgaStatusCode_InvalidState));
  EXPECT_TRUE(Succeeds(OgaRequestClose(request.get())));
  EXPECT_TRUE(Succeeds(OgaRequestClose(request.get())));

  ASSERT_EQ(OgaEngineEventBufferGetCount(buffer_.get()), 1u);
  EXPECT_EQ(CopyEvents(buffer_.get())[0].token, before[0].token);
  const EngineHandle other = MakeEngine(model_.get());
  EXPECT_TRUE(Fails(OgaEngineRun(other.get(), buffer_.get()), OgaStatusCode_InvalidArgument, "another engine"));
}

TEST_F(Engine, MayBeDestroyedOnAnotherThread) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2));
  Step(engine_.get(), buffer_.get());
  OgaEngine* engine = engine_.release();
  std::thread([engine] { OgaDestroyEngine(engine); }).join();
  EXPECT_TRUE(Succeeds(OgaRequestClose(request.get())));
}

TEST_F(Engine, ReclaimsRequestsWhoseHandlesAreGone) {
  RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2));
  Step(engine_.get(), buffer_.get());
  EXPECT_TRUE(HasPending(engine_.get()));
  std::thread([&] { request.reset(); }).join();
  EXPECT_FALSE(HasPending(engine_.get()));
  EXPECT_EQ(Count(engine_.get(), "live_requests"), 0u);
  EXPECT_EQ(Count(engine_.get(), "free_blocks"), kBlocks);
}

TEST_F(Engine, SharesCachedBeginningsUntilTheyAreDropped) {
  const auto cached = [&](uint64_t salt) {
    OgaRequestOptions* options = nullptr;
    Must(OgaCreateRequestOptions(&options));
    Must(OgaRequestOptionsSetCacheSalt(options, salt));
    OgaRequest* request = nullptr;
    Must(OgaEngineCreateRequest(engine_.get(), options, &request));
    OgaDestroyRequestOptions(options);
    BeginTurn(request, Prompt(3 * kBlockSize + 1));
    uint64_t tokens = 0;
    while (HasPending(engine_.get())) {
      for (const EventCopy& event : Step(engine_.get(), buffer_.get())) tokens += event.cached_prompt_tokens;
    }
    OgaDestroyRequest(request);
    return tokens;
  };
  EXPECT_EQ(cached(0), 0u);
  EXPECT_EQ(cached(0), 3 * kBlockSize);
  EXPECT_EQ(cached(7), 0u) << "another salt saw what it must not see";
  EXPECT_FALSE(HasPending(engine_.get()));
  Must(OgaEngineDropPrefixCache(engine_.get()));
  EXPECT_EQ(Count(engine_.get(), "cached_blocks"), 0u);
  EXPECT_EQ(cached(0), 0u);
}

TEST_F(Engine, TracesEachStepToAFileWhileItIsAsked) {
  const std::string path = testing::TempDir() + "oga_engine_trace.jsonl";
  ASSERT_TRUE(Succeeds(OgaEngineSetTraceFile(engine_.get(), path.c_str())));
  Generate(Prompt(3), 4);
  ASSERT_TRUE(Succeeds(OgaEngineSetTraceFile(engine_.get(), "")));
  Generate(Prompt(3), 2);
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    EXPECT_EQ(line.front(), '{');
    EXPECT_EQ(line.back(), '}');
  }
  EXPECT_EQ(lines, 4);
  std::remove(path.c_str());
}

TEST_F(Engine, ATraceFileThatCannotBeWrittenIsNamed) {
  EXPECT_TRUE(Fails(OgaEngineSetTraceFile(engine_.get(), "no/such/folder/trace"), OgaStatusCode_IoError,
                    "no/such/folder/trace"));
  EXPECT_EQ(Generate(Prompt(3), 2).size(), 2u);
}

class HugeCacheEngine : public test::WithRuntime {};

TEST_F(HugeCacheEngine, ACacheThatDoesNotFitIsRefusedWithBothSizes) {
  const ModelHandle model = MakeModel(R"({"engine": {"dynamic_batching": {"num_blocks": 2000000000}}})");
  OgaEngine* engine = reinterpret_cast<OgaEngine*>(this);
  EXPECT_TRUE(Fails(OgaCreateEngine(model.get(), &engine), OgaStatusCode_ResourceExhausted, "num_blocks"));
  EXPECT_EQ(engine, nullptr);
}

}  // namespace
}  // namespace oga::capi_test
