#include <oga/event_buffer.h>

#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class EventBuffer : public WithEngine {};

TEST_F(EventBuffer, StartsEmpty) {
  EXPECT_EQ(OgaEngineEventBufferGetCount(buffer_.get()), 0u);
  EXPECT_EQ(OgaEngineEventBufferGet(buffer_.get(), 0), nullptr);
}

TEST_F(EventBuffer, HoldsTheEventsOfTheLastRunOnly) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2), ExactlyTokens(request.get(), 1).get());
  Step(engine_.get(), buffer_.get());
  EXPECT_EQ(OgaEngineEventBufferGetCount(buffer_.get()), 1u);
  EXPECT_NE(OgaEngineEventBufferGet(buffer_.get(), 0), nullptr);
  EXPECT_EQ(OgaEngineEventBufferGet(buffer_.get(), 1), nullptr);
  EXPECT_EQ(OgaEngineEventBufferGet(buffer_.get(), SIZE_MAX), nullptr);
  Step(engine_.get(), buffer_.get());
  EXPECT_EQ(OgaEngineEventBufferGetCount(buffer_.get()), 0u);
}

TEST_F(EventBuffer, RefusesACapacityBeyondReason) {
  for (const size_t capacity : {(size_t{1} << 20) + 1, size_t{1} << 40, size_t{1} << 60, SIZE_MAX}) {
    OgaEngineEventBuffer* buffer = buffer_.get();
    EXPECT_TRUE(Fails(OgaCreateEngineEventBuffer(engine_.get(), capacity, &buffer), OgaStatusCode_InvalidArgument,
                      "at most 1048576"));
    EXPECT_EQ(buffer, nullptr);
  }
  EXPECT_NE(MakeBuffer(engine_.get(), size_t{1} << 20), nullptr);
}

TEST_F(EventBuffer, ReadsOnAnotherThreadBetweenRuns) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2));
  Step(engine_.get(), buffer_.get());
  std::thread([&] { EXPECT_EQ(CopyEvents(buffer_.get())[0].request, request.get()); }).join();
}

TEST_F(EventBuffer, MayBeDestroyedAnywhereAndAfterItsEngine) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2));
  Step(engine_.get(), buffer_.get());
  engine_.reset();
  OgaEngineEventBuffer* buffer = buffer_.release();
  std::thread([buffer] { OgaDestroyEngineEventBuffer(buffer); }).join();
}

TEST_F(EventBuffer, TwoBuffersOfOneEngineTakeTurns) {
  const BufferHandle other = MakeBuffer(engine_.get());
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(2), ExactlyTokens(request.get(), 2).get());
  const std::vector<EventCopy> first = Step(engine_.get(), buffer_.get());
  const std::vector<EventCopy> second = Step(engine_.get(), other.get());
  EXPECT_FALSE(first[0].finished());
  EXPECT_TRUE(second[0].finished());
  EXPECT_EQ(CopyEvents(buffer_.get())[0].token, first[0].token) << "a run through another buffer changed this one";
}

}  // namespace
}  // namespace oga::capi_test
