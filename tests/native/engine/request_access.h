// Requests without an engine, and what their calls never do.
#pragma once

#include <atomic>
#include <memory>

#include "engine/request.h"

namespace oga::testing {

inline std::shared_ptr<Request> LoneRequest(uint64_t max_session_tokens = 100, RequestIndex index = 0,
                                            uint64_t seed = 7) {
  return std::make_shared<Request>(std::weak_ptr<Engine>(), std::make_shared<std::atomic<bool>>(false), index,
                                   index + 1, max_session_tokens, 0, seed);
}

struct RequestAccess {
  static void SetLastTurnId(Request& request, TurnId id) { request.turn_id_ = id; }
};

}  // namespace oga::testing
