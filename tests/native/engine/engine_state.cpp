#include "native/engine/engine_state.h"

#include <gtest/gtest.h>

#include <sstream>

#include "engine/snapshot.h"

namespace oga::testing {

std::string StateOf(const Request& request) {
  std::ostringstream out;
  const CandidateView& view = request.view();
  out << "request " << request.id() << " state " << static_cast<int>(request.state()) << " turn " << request.turn_id()
      << " seed " << request.seed() << " failed " << request.failed() << " limit " << request.max_session_tokens()
      << " usage " << request.usage().prompt_tokens << '/' << request.usage().generated_tokens << " view "
      << view.priority << ' ' << view.arrival << ' ' << view.cached_tokens << ' ' << view.owned_blocks << ' '
      << view.live << view.decoding << view.preemptible << ' ' << view.last_progress_step << " tokens";
  for (const TokenId token : request.tokens()) out << ' ' << token;
  out << " turns";
  for (const Request::TurnRecord& turn : request.turns()) {
    out << ' ' << turn.id << '@' << turn.start_tokens << ':' << turn.seed;
  }
  out << '\n';
  return out.str();
}

std::string StateOf(EngineHarness& harness, const Requests& requests) {
  std::ostringstream out;
  const EngineSnapshot snapshot = harness.engine->Snapshot();
  for (const RequestSnapshot& request : snapshot.requests) {
    out << "index " << request.index << " state " << static_cast<int>(request.state) << " place "
        << static_cast<int>(request.place) << " filled " << request.filled_slots << " blocks " << request.table_blocks
        << '\n';
  }
  out << "free slots";
  for (const RequestIndex index : snapshot.free_indices) out << ' ' << index;
  const EngineStatistics statistics = harness.engine->GetStatistics();
  out << "\nsteps " << statistics.steps << " rolled back " << statistics.rolled_back_steps << " preempted "
      << statistics.preemptions << " dropped " << statistics.dropped_residents << " free blocks "
      << statistics.free_blocks << " pending " << harness.engine->HasPendingRequests() << " executions "
      << harness.executor->executions << '\n';
  for (const std::shared_ptr<Request>& request : requests) out << StateOf(*request);
  return out.str();
}

void ExpectRefused(EngineHarness& harness, const Requests& requests, StatusCode code, const std::string& what,
                   const std::function<void()>& call) {
  const std::string before = StateOf(harness, requests);
  try {
    call();
    ADD_FAILURE() << what << ": was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << what << ": " << error.message();
  }
  EXPECT_EQ(StateOf(harness, requests), before) << what;
}

uint32_t BlocksOf(const EngineHarness& harness, const Request& request) {
  for (const RequestSnapshot& snapshot : harness.engine->Snapshot().requests) {
    if (snapshot.index == request.index()) return snapshot.table_blocks;
  }
  return 0;
}

std::vector<TokenId> TokensOf(const Request& request) { return {request.tokens().begin(), request.tokens().end()}; }

std::vector<TokenId> Joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace oga::testing
