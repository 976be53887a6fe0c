// Masks computed beside the model: the same as alone, whoever shares the batch.
#include "grammar/mask_batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "native/grammar/grammar_world.h"

namespace oga::grammar {
namespace {

std::vector<uint32_t> MaskOf(GrammarCursor& cursor) { return {cursor.Mask().begin(), cursor.Mask().end()}; }

TEST(MaskBatch, GivesTheMasksThatCursorsComputeAlone) {
  MaskBatch batch(2);
  const std::vector<GrammarSpec> specs{MakeGrammarSpec("json_object", ""), MakeGrammarSpec("regex", "[a-z]{1,30}"),
                                       MakeGrammarSpec("json_schema", R"({"type":"array","items":{"type":"string"}})"),
                                       MakeDelimitedSpec(test::kOpen, test::kClose, "start: \"x\"+")};
  std::vector<std::unique_ptr<GrammarCursor>> together;
  std::vector<std::unique_ptr<GrammarCursor>> alone;
  for (int i = 0; i < 16; ++i) {
    together.push_back(test::NewCursor(specs[static_cast<size_t>(i) % specs.size()]));
    alone.push_back(test::NewCursor(specs[static_cast<size_t>(i) % specs.size()]));
  }
  std::mt19937 random(7);
  for (int step = 0; step < 40; ++step) {
    std::vector<GrammarCursor*> rows;
    for (const auto& cursor : together) {
      if (!cursor->IsComplete() && random() % 4 != 0) rows.push_back(cursor.get());
    }
    batch.Start(rows);
    batch.Wait();
    for (size_t i = 0; i < together.size(); ++i) {
      ASSERT_EQ(MaskOf(*together[i]), MaskOf(*alone[i])) << "row " << i << " of step " << step;
      ASSERT_EQ(together[i]->MayEnd(), alone[i]->MayEnd());
      std::vector<TokenId> allowed = test::AllowedTokens(*alone[i]);
      std::erase_if(allowed, [](TokenId id) { return id == test::kEos || id == test::kEndOfTurn; });
      if (allowed.empty()) continue;
      const TokenId token = allowed[random() % allowed.size()];
      test::Take(*together[i], token);
      test::Take(*alone[i], token);
    }
  }
}

TEST(MaskBatch, AFaultOfOneRowIsItsOwn) {
  MaskBatch batch(2);
  const auto good = test::NewCursor("regex", "[a-z]+");
  const auto bad = test::NewCursor("regex", "(a{1,1000}){1,1000}");
  for (int i = 0; i < 300 && !bad->is_poisoned(); ++i) {
    const std::vector<GrammarCursor*> rows{bad.get(), good.get()};
    batch.Start(rows);
    batch.Wait();
    EXPECT_FALSE(good->is_poisoned());
    test::Take(*good, 'a');
    if (bad->is_poisoned()) break;
    try {
      test::Take(*bad, 'a');
    } catch (const Error&) {
      EXPECT_TRUE(bad->is_poisoned());
    }
  }
  EXPECT_TRUE(bad->is_poisoned());
  EXPECT_TRUE(test::IsAllowed(*good, 'b'));
}

TEST(MaskBatch, MayBeEmptyUnawaitedAndDestroyedInFlight) {
  MaskBatch batch(1);
  batch.Wait();
  batch.Start({});
  batch.Wait();
  std::vector<std::unique_ptr<GrammarCursor>> cursors;
  std::vector<GrammarCursor*> rows;
  for (int i = 0; i < 8; ++i) {
    cursors.push_back(test::NewCursor("json_object", ""));
    test::TakeText(*cursors.back(), "{\"a");
    rows.push_back(cursors.back().get());
  }
  {
    MaskBatch in_flight(2);
    in_flight.Start(rows);
  }
  for (const auto& cursor : cursors) EXPECT_TRUE(test::IsAllowed(*cursor, '"'));
  batch.Start(rows);
  batch.Start(rows);
  batch.Wait();
}

}  // namespace
}  // namespace oga::grammar
