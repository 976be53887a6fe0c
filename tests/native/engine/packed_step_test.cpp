#include "engine/packed_step.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace oga::testing {
namespace {

template <typename T>
std::vector<T> Values(std::span<const T> span) {
  return {span.begin(), span.end()};
}

TEST(PackedStep, PacksRowsOneAfterAnother) {
  PackedStep packed;
  packed.Begin(3, 6, 2);
  const auto first = packed.AddRow(std::vector<TokenId>{5, 6, 7}, 0, 0);
  std::fill(first.begin(), first.end(), 1);
  packed.AddRow(std::vector<TokenId>{8}, 9, 1)[0] = 2;
  packed.AddRow(std::vector<TokenId>{3, 4}, 4, 1);
  const std::vector<BlockCopy> copies{{1, 2}};
  const ExecutionBatch batch = packed.Batch(copies);
  EXPECT_EQ(batch.rows(), 3u);
  EXPECT_EQ(Values(batch.token_ids), (std::vector<TokenId>{5, 6, 7, 8, 3, 4}));
  EXPECT_EQ(Values(batch.cumulative_lengths), (std::vector<int32_t>{0, 3, 4, 6}));
  EXPECT_EQ(Values(batch.past_lengths), (std::vector<int32_t>{0, 9, 4}));
  EXPECT_EQ(batch.block_table_columns, 2);
  EXPECT_EQ(Values(batch.block_table), (std::vector<BlockId>{1, 1, 2, kUnmappedBlock, kUnmappedBlock, kUnmappedBlock}));
  EXPECT_EQ(Values(batch.logits_indices), (std::vector<int64_t>{3, 5})) << "the last token of each row that samples";
  EXPECT_EQ(batch.block_copies.size(), 1u);
}

TEST(PackedStep, ASmallerStepKeepsNothingOfALargerOne) {
  PackedStep packed;
  packed.Begin(2, 8, 4);
  packed.AddRow(std::vector<TokenId>{1, 2, 3, 4}, 5, 1)[3] = 9;
  packed.AddRow(std::vector<TokenId>{1, 2, 3, 4}, 5, 1)[3] = 9;
  packed.Begin(1, 1, 3);
  packed.AddRow(std::vector<TokenId>{6}, 2, 0);
  const ExecutionBatch batch = packed.Batch({});
  EXPECT_EQ(Values(batch.token_ids), std::vector<TokenId>{6});
  EXPECT_EQ(Values(batch.cumulative_lengths), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(Values(batch.block_table), std::vector<BlockId>(3, kUnmappedBlock));
  EXPECT_TRUE(batch.logits_indices.empty());
}

TEST(PackedStep, WantsTheLogitsOfARowsLastTokens) {
  PackedStep packed;
  packed.Begin(2, 6, 1);
  packed.AddRow(std::vector<TokenId>{5, 6, 7, 8}, 0, 3);
  packed.AddRow(std::vector<TokenId>{1, 2}, 4, 2);
  EXPECT_EQ(Values(packed.Batch({}).logits_indices), (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST(PackedStep, AddingARowMovesNothing) {
  PackedStep packed;
  packed.Begin(64, 640, 16);
  const std::vector<TokenId> tokens(10, 1);
  const BlockId* first = packed.AddRow(tokens, 0, 1).data();
  for (int i = 1; i < 64; ++i) packed.AddRow(tokens, 0, 1);
  EXPECT_EQ(packed.Batch({}).block_table.data(), first) << "tables handed out before stay valid";
}

TEST(PackedStep, WideningTablesOneColumnAtATimeMovesRarely) {
  PackedStep packed;
  const BlockId* place = nullptr;
  int moves = 0;
  for (uint32_t columns = 1; columns <= 512; ++columns) {
    packed.Begin(4, 4, columns);
    const BlockId* table = packed.AddRow(std::vector<TokenId>{1}, 0, 1).data();
    moves += table != place;
    place = table;
  }
  EXPECT_LE(moves, 12);
}

}  // namespace
}  // namespace oga::testing
