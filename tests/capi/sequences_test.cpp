#include <oga/sequences.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class SequencesTest : public testing::Test {
 protected:
  void SetUp() override {
    OgaSequences* sequences = nullptr;
    Must(OgaCreateSequences(&sequences));
    sequences_.reset(sequences);
  }

  std::vector<int32_t> At(size_t index) const {
    const int32_t* data = OgaSequencesGetSequenceData(sequences_.get(), index);
    return {data, data + OgaSequencesGetSequenceCount(sequences_.get(), index)};
  }

  void Append(const std::vector<int32_t>& tokens) {
    Must(OgaAppendTokenSequence(tokens.data(), tokens.size(), sequences_.get()));
  }

  Owned<OgaSequences, OgaDestroySequences> sequences_;
};

TEST_F(SequencesTest, StartsEmpty) { EXPECT_EQ(OgaSequencesCount(sequences_.get()), 0u); }

TEST_F(SequencesTest, CopiesWhatIsAppended) {
  std::vector<int32_t> tokens{1, -2, INT32_MAX};
  Append(tokens);
  tokens.assign({9, 9, 9});
  EXPECT_EQ(OgaSequencesCount(sequences_.get()), 1u);
  EXPECT_EQ(At(0), (std::vector<int32_t>{1, -2, INT32_MAX}));
}

TEST_F(SequencesTest, TakesAnEmptySequenceWithOrWithoutAPointer) {
  const int32_t token = 5;
  EXPECT_TRUE(Succeeds(OgaAppendTokenSequence(nullptr, 0, sequences_.get())));
  EXPECT_TRUE(Succeeds(OgaAppendTokenSequence(&token, 0, sequences_.get())));
  EXPECT_EQ(OgaSequencesCount(sequences_.get()), 2u);
  EXPECT_EQ(OgaSequencesGetSequenceCount(sequences_.get(), 1), 0u);
}

TEST_F(SequencesTest, AppendsTokensOneByOne) {
  EXPECT_TRUE(Succeeds(OgaAppendTokenToSequence(7, sequences_.get(), 0)));
  EXPECT_TRUE(Succeeds(OgaAppendTokenToSequence(8, sequences_.get(), 0)));
  EXPECT_TRUE(Succeeds(OgaAppendTokenToSequence(9, sequences_.get(), 1)));
  EXPECT_EQ(At(0), (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(At(1), (std::vector<int32_t>{9}));
}

TEST_F(SequencesTest, RefusesAGapInTheIndices) {
  Append({1});
  EXPECT_TRUE(Fails(OgaAppendTokenToSequence(7, sequences_.get(), 2), OgaStatusCode_InvalidArgument,
                    "sequence_index is 2; the list has 1"));
  EXPECT_TRUE(Fails(OgaAppendTokenToSequence(7, sequences_.get(), SIZE_MAX), OgaStatusCode_InvalidArgument));
  EXPECT_EQ(OgaSequencesCount(sequences_.get()), 1u);
}

TEST_F(SequencesTest, AnIndexOutOfRangeReadsAsNothing) {
  Append({1});
  EXPECT_EQ(OgaSequencesGetSequenceCount(sequences_.get(), 1), 0u);
  EXPECT_EQ(OgaSequencesGetSequenceData(sequences_.get(), 1), nullptr);
  EXPECT_EQ(OgaSequencesGetSequenceData(sequences_.get(), SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace oga::capi_test
