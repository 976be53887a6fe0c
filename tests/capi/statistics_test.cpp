#include <oga/statistics.h>

#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Statistics : public WithEngine {};

TEST_F(Statistics, AFreshEngineHasDoneNothingAndHoldsNothing) {
  for (const char* name : {"steps", "rows", "scheduled_tokens", "generated_tokens", "rolled_back_steps", "preemptions",
                           "dropped_residents", "live_requests", "resident_requests"}) {
    EXPECT_EQ(Count(engine_.get(), name), 0u) << name;
  }
  EXPECT_EQ(Count(engine_.get(), "block_size"), kBlockSize);
  EXPECT_EQ(Count(engine_.get(), "total_blocks"), kBlocks);
  EXPECT_EQ(Count(engine_.get(), "free_blocks"), kBlocks);
  // Two layers, keys and values, four slots, two heads of eight floats.
  EXPECT_EQ(Count(engine_.get(), "block_bytes"), 2u * 2 * 4 * 2 * 8 * 4);
}

TEST_F(Statistics, CountWhatWasDoneAndWhatIsHeld) {
  RequestHandle request = MakeRequest(engine_.get());
  Finish(request.get(), Prompt(5), ExactlyTokens(request.get(), 3).get());
  EXPECT_EQ(Count(engine_.get(), "steps"), 3u);
  EXPECT_EQ(Count(engine_.get(), "rows"), 3u);
  EXPECT_EQ(Count(engine_.get(), "scheduled_tokens"), 7u);  // the prompt, then each token but the last
  EXPECT_EQ(Count(engine_.get(), "generated_tokens"), 3u);
  EXPECT_EQ(Count(engine_.get(), "live_requests"), 1u);
  EXPECT_EQ(Count(engine_.get(), "resident_requests"), 1u);
  EXPECT_EQ(Count(engine_.get(), "free_blocks"), kBlocks - 2);  // seven slots
  Must(OgaRequestClose(request.get()));
  EXPECT_EQ(Count(engine_.get(), "live_requests"), 0u);
  EXPECT_EQ(Count(engine_.get(), "free_blocks"), kBlocks);
  EXPECT_EQ(Count(engine_.get(), "generated_tokens"), 3u);
}

TEST_F(Statistics, ASnapshotDoesNotMoveAndOutlivesItsEngine) {
  OgaEngineStatistics* statistics = nullptr;
  Must(OgaEngineGetStatistics(engine_.get(), &statistics));
  const StatisticsHandle owned(statistics);
  Generate(Prompt(3), 2);
  engine_.reset();
  std::thread([&] {
    uint64_t steps = 99;
    EXPECT_TRUE(Succeeds(OgaEngineStatisticsGetCount(statistics, "steps", &steps)));
    EXPECT_EQ(steps, 0u);
  }).join();
}

TEST_F(Statistics, AnUnknownNameListsTheKnown) {
  OgaEngineStatistics* statistics = nullptr;
  Must(OgaEngineGetStatistics(engine_.get(), &statistics));
  const StatisticsHandle owned(statistics);
  uint64_t count = 99;
  EXPECT_TRUE(Fails(OgaEngineStatisticsGetCount(statistics, "step", &count), OgaStatusCode_InvalidArgument,
                    "'step'; the counters are steps, rows"));
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace oga::capi_test
