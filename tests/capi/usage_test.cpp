#include <oga/usage.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Usage : public WithEngine {
 protected:
  static void ExpectUsage(const Transcript& transcript, uint64_t prompt, uint64_t generated) {
    ASSERT_EQ(transcript.endings.size(), 1u);
    EXPECT_EQ(transcript.endings[0].prompt_tokens, prompt);
    EXPECT_EQ(transcript.endings[0].generated_tokens, generated);
    EXPECT_EQ(transcript.endings[0].cached_prompt_tokens, 0u);
  }
};

TEST_F(Usage, CountsTheTurnsOwnInputAndOutput) {
  const RequestHandle request = MakeRequest(engine_.get());
  ExpectUsage(Finish(request.get(), Prompt(5), ExactlyTokens(request.get(), 4).get()), 5, 4);
  ExpectUsage(Finish(request.get(), Prompt(2), ExactlyTokens(request.get(), 3).get()), 2, 3);
}

TEST_F(Usage, ACancelledTurnCountsWhatItGenerated) {
  const RequestHandle request = MakeRequest(engine_.get());
  const uint64_t turn_id = BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 9).get());
  Step(engine_.get(), buffer_.get());
  Step(engine_.get(), buffer_.get());
  bool cancelled = false;
  Must(OgaRequestCancelTurn(request.get(), turn_id, &cancelled));
  ExpectUsage(RunToEnd(engine_.get(), buffer_.get())[request.get()], 5, 2);
}

TEST_F(Usage, LivesAsLongAsItsEvent) {
  const RequestHandle request = MakeRequest(engine_.get());
  BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 1).get());
  Step(engine_.get(), buffer_.get());
  const OgaTurnUsage* usage = nullptr;
  Must(OgaEngineEventGetUsage(OgaEngineEventBufferGet(buffer_.get(), 0), &usage));
  engine_.reset();
  uint64_t tokens = 0;
  EXPECT_TRUE(Succeeds(OgaTurnUsageGetPromptTokens(usage, &tokens)));
  EXPECT_EQ(tokens, 5u);
}

TEST_F(Usage, GettersWriteZeroBeforeTheyRefuseANullUsage) {
  for (const auto getter :
       {OgaTurnUsageGetPromptTokens, OgaTurnUsageGetGeneratedTokens, OgaTurnUsageGetCachedPromptTokens}) {
    uint64_t tokens = 99;
    EXPECT_TRUE(Fails(getter(nullptr, &tokens), OgaStatusCode_InvalidArgument, "usage must not be null."));
    EXPECT_EQ(tokens, 0u);
  }
}

}  // namespace
}  // namespace oga::capi_test
