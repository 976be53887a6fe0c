#include <oga/result.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

TEST(Result, NullIsSuccess) {
  EXPECT_STREQ(OgaResultGetError(nullptr), "");
  EXPECT_EQ(OgaResultGetCode(nullptr), OgaStatusCode_Ok);
  OgaDestroyResult(nullptr);
  OgaDestroyString(nullptr);
}

TEST(Result, CarriesACodeAndASentence) {
  OgaResult* result = OgaSetLogBool("loud", true);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(OgaResultGetCode(result), OgaStatusCode_InvalidArgument);
  EXPECT_STREQ(OgaResultGetError(result),
               "there is no log channel 'loud'; the channels are 'enabled' (all of them), "
               "'warning' and 'info'");
  OgaDestroyResult(result);
}

TEST(Result, ResultsAreIndependentOfEachOther) {
  OgaResult* first = OgaSetLogBool("one", true);
  OgaResult* second = OgaSetLogBool("two", true);
  OgaDestroyResult(first);
  EXPECT_NE(std::string(OgaResultGetError(second)).find("'two'"), std::string::npos);
  OgaDestroyResult(second);
}

TEST(Result, AnImpossibleAllocationIsOutOfMemory) {
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  const Owned<OgaSequences, OgaDestroySequences> owned(sequences);
  const int32_t token = 1;
  for (int i = 0; i < 2; ++i) {  // destroying the first must not harm the second
    EXPECT_TRUE(Fails(OgaAppendTokenSequence(&token, SIZE_MAX / 2, sequences), OgaStatusCode_OutOfMemory, "memory"));
  }
  EXPECT_EQ(OgaSequencesCount(sequences), 0u);
}

}  // namespace
}  // namespace oga::capi_test
