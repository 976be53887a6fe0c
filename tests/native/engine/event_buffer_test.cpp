#include "engine/event_buffer.h"

#include <gtest/gtest.h>

#include "native/engine/engine_harness.h"

namespace oga::testing {
namespace {

TEST(EventBuffer, RefusesACapacityItCouldNotHold) {
  EngineHarness harness;
  for (const size_t capacity : {EventBuffer::kMaxCapacity + 1, size_t{1} << 40, size_t{1} << 60, SIZE_MAX}) {
    try {
      harness.engine->CreateEventBuffer(capacity);
      FAIL() << capacity;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(error.message().find(std::to_string(capacity)), std::string::npos) << error.message();
    }
  }
  EXPECT_EQ(harness.engine->CreateEventBuffer(1000)->capacity(), 1000u);
}

TEST(EventBuffer, StartsEmptyAndHasNothingBeyondItsEvents) {
  EngineHarness harness;
  EXPECT_EQ(harness.buffer->size(), 0u);
  EXPECT_EQ(harness.buffer->at(0), nullptr);
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(2), 1);
  harness.Step();
  ASSERT_EQ(harness.buffer->size(), 1u);
  EXPECT_EQ(harness.buffer->at(0)->request, request);
  EXPECT_EQ(harness.buffer->at(1), nullptr);
}

TEST(EventBuffer, EveryAcceptedRunStartsAGeneration) {
  EngineHarness harness;
  const auto empty = harness.engine->CreateEventBuffer(0);
  const uint64_t start = harness.buffer->generation();
  harness.Step();
  EXPECT_EQ(harness.buffer->generation(), start + 1);
  harness.engine->Run(*empty);
  EXPECT_EQ(empty->generation(), 1u);
  EXPECT_EQ(harness.buffer->generation(), start + 1) << "another buffer's run is not this one's";
}

TEST(EventBuffer, ARefusedRunKeepsTheEventsAndTheirGeneration) {
  EngineHarness harness;
  EngineHarness other;
  EngineHarness::Begin(*harness.Create(), EngineHarness::Prompt(2), 1);
  harness.Step();
  const uint64_t generation = harness.buffer->generation();
  EXPECT_THROW(other.engine->Run(*harness.buffer), Error);
  EXPECT_EQ(harness.buffer->generation(), generation);
  EXPECT_EQ(harness.buffer->size(), 1u);
}

TEST(EventBuffer, KeepsWhatItHoldsWhenTheRequestAndTheEngineAreGone) {
  std::unique_ptr<EventBuffer> buffer;
  std::vector<TokenId> expected = EngineHarness::Reference(EngineHarness::Prompt(3), 1);
  {
    EngineHarness harness;
    auto request = harness.Create();
    EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1);
    harness.Step();
    request->Close();
    request.reset();
    buffer = std::move(harness.buffer);
    EXPECT_TRUE(buffer->BelongsTo(*harness.engine));
  }
  ASSERT_EQ(buffer->size(), 1u);
  EXPECT_EQ(buffer->at(0)->token, expected[0]);
  EXPECT_EQ(buffer->at(0)->finish_reason, FinishReason::kMaxGeneratedTokens);
  EXPECT_EQ(buffer->at(0)->usage.prompt_tokens, 3u);
  EXPECT_EQ(buffer->at(0)->request->state(), RequestState::kClosed);
}

}  // namespace
}  // namespace oga::testing
