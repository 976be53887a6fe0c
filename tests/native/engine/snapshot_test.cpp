#include "engine/snapshot.h"

#include <gtest/gtest.h>

#include "native/engine/engine_harness.h"
#include "support/invariants.h"

namespace oga::testing {
namespace {

// Gives a snapshot the Validate() of everything else.
struct Checked {
  EngineSnapshot snapshot;
  void Validate() const { ValidateSnapshot(snapshot); }
};

RequestSnapshot Resident(RequestIndex index, bool live) {
  RequestSnapshot request;
  request.index = index;
  request.index_in_request = index;
  request.state = live ? RequestState::kActive : RequestState::kTurnComplete;
  request.place = live ? QueuePlace::kRunning : QueuePlace::kDormant;
  request.cached_tokens = request.filled_slots = 5;
  request.owned_blocks = request.table_blocks = 2;
  request.turn_live = live;
  return request;
}

// One running, one dormant and one waiting request, one without a turn, and two free slots.
Checked Sound() {
  Checked checked;
  checked.snapshot.requests = {Resident(0, true), Resident(1, false)};
  RequestSnapshot waiting;
  waiting.index = waiting.index_in_request = 3;
  waiting.state = RequestState::kQueued;
  waiting.place = QueuePlace::kWaiting;
  waiting.turn_live = true;
  RequestSnapshot created;
  created.index = created.index_in_request = 4;
  checked.snapshot.requests.push_back(waiting);
  checked.snapshot.requests.push_back(created);
  checked.snapshot.free_indices = {5, 2};
  checked.snapshot.free_index_blocks = {0, 0};
  checked.snapshot.indices = 6;
  checked.snapshot.queued = 3;
  return checked;
}

TEST(EngineSnapshot, AcceptsASoundOne) { EXPECT_NO_THROW(Sound().Validate()); }

TEST(EngineSnapshot, NamesTheRuleThatIsBroken) {
  struct Case {
    const char* what;
    const char* rule;
    void (*breaks)(EngineSnapshot&);
  };
  const std::vector<Case> cases{
      {"an index is neither free nor taken", "E1", [](EngineSnapshot& s) { s.free_indices.pop_back(); }},
      {"a free index owns blocks", "E1", [](EngineSnapshot& s) { s.free_index_blocks[1] = 3; }},
      {"a request lies in another index", "E1", [](EngineSnapshot& s) { s.requests[2].index_in_request = 4; }},
      {"a closed request holds an index", "E1", [](EngineSnapshot& s) { s.requests[3].state = RequestState::kClosed; }},
      {"the view counts other blocks than the cache", "E2", [](EngineSnapshot& s) { s.requests[0].owned_blocks = 1; }},
      {"a running one is not queued", "E2", [](EngineSnapshot& s) { s.requests[0].place = QueuePlace::kNone; }},
      {"a dormant one runs", "E2", [](EngineSnapshot& s) { s.requests[1].place = QueuePlace::kRunning; }},
      {"a waiting one is dormant", "E2", [](EngineSnapshot& s) { s.requests[2].place = QueuePlace::kDormant; }},
      {"one without a turn waits", "E2", [](EngineSnapshot& s) { s.requests[3].place = QueuePlace::kWaiting; }},
      {"a queue holds somebody unknown", "E2", [](EngineSnapshot& s) { s.queued = 4; }},
      {"cached tokens are not in the cache", "E3", [](EngineSnapshot& s) { s.requests[1].filled_slots = 4; }},
      {"an event names a closed request", "E4", [](EngineSnapshot& s) { s.events_name_open_requests = false; }},
  };
  for (const Case& broken : cases) {
    Checked checked = Sound();
    broken.breaks(checked.snapshot);
    EXPECT_TRUE(Breaks(checked, broken.rule)) << broken.what;
  }
}

TEST(EngineSnapshot, ShowsWhatAnEngineHolds) {
  EngineHarness harness;
  const auto running = harness.Create();
  const auto created = harness.Create();
  const auto gone = harness.Create();
  gone->Close();
  EngineHarness::Begin(*running, EngineHarness::Prompt(6), 5);
  harness.Step();
  const EngineSnapshot snapshot = harness.engine->Snapshot();
  ASSERT_EQ(snapshot.requests.size(), 2u);
  EXPECT_EQ(snapshot.indices, 2 + snapshot.free_indices.size());
  EXPECT_EQ(snapshot.requests[0].place, QueuePlace::kRunning);
  EXPECT_EQ(snapshot.requests[0].cached_tokens, 6u);
  EXPECT_EQ(snapshot.requests[0].table_blocks, 2u);
  EXPECT_EQ(snapshot.requests[1].place, QueuePlace::kNone);
  EXPECT_EQ(snapshot.queued, 1u);
  harness.engine->Validate();
}

TEST(Engine, ValidateSeesEveryPartOfIt) {
  struct Case {
    const char* rule;
    void (*breaks)(Request&);
  };
  const std::vector<Case> cases{
      {"E2", [](Request& request) { request.place = QueuePlace::kDormant; }},
      {"E3", [](Request& request) { request.view().cached_tokens -= 1; }},
      {"E2", [](Request& request) { request.view().owned_blocks += 1; }},
      {"Q2", [](Request& request) { request.view().arrival = 0; }},
      {"R4", [](Request& request) { request.view().sequence_tokens += 1; }},
  };
  for (const Case& broken : cases) {
    EngineHarness harness;
    const auto first = harness.Create();
    const auto second = harness.Create();
    EngineHarness::Begin(*first, EngineHarness::Prompt(6), 5);
    EngineHarness::Begin(*second, EngineHarness::Prompt(6, 9), 5);
    harness.Step();
    broken.breaks(*second);
    EXPECT_TRUE(Breaks(*harness.engine, broken.rule));
  }
}

TEST(Engine, ABrokenInvariantEndsEveryTurnAsAContractFailure) {
  EngineHarness harness;
  const auto first = harness.Create();
  const auto second = harness.Create();
  EngineHarness::Begin(*first, EngineHarness::Prompt(6), 5);
  EngineHarness::Begin(*second, EngineHarness::Prompt(6, 9), 5);
  harness.Step();
  second->view().cached_tokens -= 1;
  harness.Step();
  for (const auto& request : {first, second}) {
    ASSERT_EQ(harness.Of(request).endings.size(), 1u);
    EXPECT_EQ(harness.Of(request).endings[0].error_code, EventErrorCode::kEngineContractFailure);
  }
  try {
    harness.engine->Run(*harness.buffer);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kEngineUnhealthy);
    EXPECT_NE(error.message().find("check failed"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace oga::testing
