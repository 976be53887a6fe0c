// Every query and every split is somebody's work once, and what is split has room for its partials.
#include "kernels/attention/paged_attention_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace oga::kernels {
namespace {

struct Row {
  int32_t past;
  int32_t num_new;
};

// 2 kv heads of 2 query heads each, tiles of 8 queries.
class Planned {
 public:
  explicit Planned(const std::vector<Row>& rows, bool may_join_heads = false, int32_t window = -1, int32_t threads = 1)
      : cumulative_{0} {
    for (const Row& row : rows) {
      past_.push_back(row.past);
      cumulative_.push_back(cumulative_.back() + row.num_new);
    }
    call_.args.shape = {.num_tokens = cumulative_.back(),
                        .num_rows = static_cast<int32_t>(rows.size()),
                        .num_heads = 4,
                        .num_kv_heads = kKvHeads,
                        .head_size = 64};
    call_.args.params.window = window;
    call_.args.num_threads = threads;
    call_.args.past_lengths = past_.data();
    call_.args.cumulative_lengths = cumulative_.data();
    plan_.emplace(call_, may_join_heads);
  }

  // The plan refers to the call beside it.
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  const WorkPlan* operator->() const { return &*plan_; }

  // All runs by row and kv head, in the order they are counted off.
  std::map<std::pair<int32_t, int32_t>, std::vector<SplitRun>> Runs() const {
    std::map<std::pair<int32_t, int32_t>, std::vector<SplitRun>> runs;
    for (size_t i = 0; i < plan_->split_items(); ++i) {
      const SplitRun run = plan_->RunAt(i);
      runs[{run.tile.row, run.tile.kv_head}].push_back(run);
    }
    return runs;
  }

  static constexpr int32_t kKvHeads = 2, kGroup = 2, kTileQueries = 8, kPadded = 64;

 private:
  std::vector<int32_t> past_, cumulative_;
  PagedAttentionCall call_{.args = {},
                           .group_size = kGroup,
                           .padded_head_size = kPadded,
                           .tile_queries = kTileQueries,
                           .score_scale = 1.0f,
                           .score_cap = 0.0f};
  std::optional<WorkPlan> plan_;
};

TEST(WorkPlan, GivesEveryQueryToOneTileAndThoseOfMostKeysFirst) {
  const std::vector<Row> rows = {{0, 100}, {300, 77}, {20, 0}, {5000, 1}};
  const Planned plan(rows);
  EXPECT_EQ(plan->split_items(), 0u) << "a busy call splits nothing";
  std::set<std::tuple<int32_t, int32_t, int32_t>> queries;
  std::map<std::pair<int32_t, int32_t>, int32_t> last;
  for (size_t i = 0; i < plan->tile_items(); ++i) {
    const QueryTile tile = plan->TileAt(i);
    EXPECT_EQ(tile.num_kv_heads, 1);
    EXPECT_LE(tile.num_queries, Planned::kTileQueries);
    const auto place = last.try_emplace({tile.row, tile.kv_head}, INT32_MAX).first;
    EXPECT_LT(tile.first_query, std::exchange(place->second, tile.first_query));
    for (int32_t query = 0; query < tile.num_queries; ++query) {
      EXPECT_TRUE(queries.emplace(tile.row, tile.kv_head, tile.first_query + query).second) << "a query twice";
    }
  }
  EXPECT_EQ(queries.size(), static_cast<size_t>((100 + 77 + 1) * Planned::kGroup * Planned::kKvHeads));
}

TEST(WorkPlan, CutsLongRowsOfFewQueriesIntoRunsInPositionOrder) {
  for (const int32_t threads : {1, 4, 64}) {
    const Planned plan({{50000, 1}, {100, 1}, {3000, 2}}, false, -1, threads);
    EXPECT_EQ(plan->tile_items(), 2u) << "the row within one split";
    const auto runs = plan.Runs();
    ASSERT_EQ(runs.size(), 4u);
    for (const auto& [place, of_head] : runs) {
      int32_t next = 0;
      for (const SplitRun& run : of_head) {
        EXPECT_EQ(run.first_split, next);
        EXPECT_GE(run.num_splits, 1);
        EXPECT_EQ(plan->Starts(run), next == 0);
        next += run.num_splits;
        EXPECT_EQ(plan->Ends(run), &run == &of_head.back());
        EXPECT_EQ(run.tile.num_queries, place.first == 0 ? 2 : 4);
      }
      EXPECT_EQ(next, (place.first == 0 ? 50000 : 3001) / kKvSplit + 1);
    }
  }
}

TEST(WorkPlan, HasRoomForThePartialsOfAWave) {
  for (const bool joins : {false, true}) {
    for (const int32_t threads : {1, 4, 64}) {
      const Planned plan({{50000, 1}, {3000, 1}}, joins, -1, threads);
      ASSERT_GT(plan->split_items(), 0u);
      ASSERT_GT(plan->wave_items(), 0u);
      const int64_t queries = Planned::kGroup * (plan->running_slots() == 1 ? Planned::kKvHeads : 1);
      EXPECT_GE(plan->slot_floats(), queries * (kPartialHeaderFloats + Planned::kPadded));
      const int64_t wave = static_cast<int64_t>(plan->wave_items()) * plan->run_floats();
      EXPECT_LE(wave + plan->running_slots() * plan->slot_floats(), int64_t{kPartialFloats});
    }
  }
}

TEST(WorkPlan, LeavesOutTheSplitsBeforeAWindow) {
  const Planned plan({{5000, 1}}, false, 600);
  const auto runs = plan.Runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs.at({0, 0}).front().first_split, (5000 - 599) / kKvSplit);
  EXPECT_TRUE(plan->Starts(runs.at({0, 0}).front()));
  EXPECT_TRUE(plan->Ends(runs.at({0, 0}).back()));
}

TEST(WorkPlan, JoinsHeadsWhereTheVariantMayAndEnoughIsLeft) {
  const Planned joined({{5000, 1}}, true);
  EXPECT_EQ(joined->running_slots(), 1);
  EXPECT_EQ(joined->RunAt(0).tile.num_kv_heads, Planned::kKvHeads);
  EXPECT_EQ(joined.Runs().size(), 1u);
  const Planned forbidden({{5000, 1}}, false), few_splits({{300, 1}}, true), several_tokens({{5000, 2}}, true);
  for (const Planned* apart : {&forbidden, &few_splits, &several_tokens}) {
    EXPECT_EQ((*apart)->running_slots(), Planned::kKvHeads);
    EXPECT_EQ((*apart)->RunAt(0).tile.num_kv_heads, 1);
  }
}

}  // namespace
}  // namespace oga::kernels
