#include "model/execution_failure.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <stdexcept>

#include "base/error.h"

namespace oga {

namespace {

// --- What may be tried again --------------------------------------------------------------------------------------------

constexpr StatusCode kOurs[] = {StatusCode::kResourceExhausted, StatusCode::kOutOfMemory};

// std::length_error: a container asked for more than any memory holds.
template <typename... Listed>
bool IsOneOf(const std::exception& error) {
  return (... || (dynamic_cast<const Listed*>(&error) != nullptr));
}
constexpr auto IsOfTheStandardLibrarys = IsOneOf<std::bad_alloc, std::length_error>;

bool IsListed(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  if (ours == nullptr) return IsOfTheStandardLibrarys(error);
  return std::find(std::begin(kOurs), std::end(kOurs), ours->code()) != std::end(kOurs);
}

}  // namespace

ExecutionResult FailureOfCurrentException(ExecutionStatus when_memory_ran_out) noexcept {
  ExecutionResult result;
  result.status = ExecutionStatus::kFatal;
  try {
    try {
      throw;
    } catch (const std::exception& error) {
      if (IsListed(error)) result.status = when_memory_ran_out;
      result.message = error.what();
    } catch (...) {
      result.message = "something was thrown that is no exception";
    }
  } catch (...) {
    // Without memory for the sentence the status still says it.
  }
  return result;
}

}  // namespace oga
