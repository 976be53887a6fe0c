// The whole state of an engine and its requests as text, to see that a call changed nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "native/engine/engine_harness.h"

namespace oga::testing {

using Requests = std::vector<std::shared_ptr<Request>>;

std::string StateOf(const Request& request);
std::string StateOf(EngineHarness& harness, const Requests& requests);

// Expects the call to be refused with this code, and to change nothing.
void ExpectRefused(EngineHarness& harness, const Requests& requests, StatusCode code, const std::string& what,
                   const std::function<void()>& call);

uint32_t BlocksOf(const EngineHarness& harness, const Request& request);
std::vector<TokenId> TokensOf(const Request& request);
std::vector<TokenId> Joined(std::vector<TokenId> a, const std::vector<TokenId>& b);

}  // namespace oga::testing
