// OGA_CHECK guards what can only be false if liboga itself is wrong. It throws; it never aborts the host. The engine
// turns such an error into its permanent unhealthy state.
#pragma once

#include "base/error.h"

namespace oga {

// A violated invariant of our own code. The engine treats it as EngineContractFailure.
class ContractError : public Error {
 public:
  explicit ContractError(std::string message) : Error(StatusCode::kInternal, std::move(message)) {}
};

[[noreturn]] inline void FailCheck(const char* condition, const char* file, int line, const std::string& detail) {
  throw ContractError(
      Message("internal check failed: ", condition, " (", file, ":", line, ")", detail.empty() ? "" : ": ", detail));
}

// Throws ContractError naming the invariant when `holds` is false; the body of every Validate().
inline void CheckInvariant(bool holds, const char* name, const char* sentence) {
  if (!holds) throw ContractError(Message("invariant ", name, " broken: ", sentence));
}

}  // namespace oga

#define OGA_CHECK(condition)                                                     \
  do {                                                                           \
    if (!(condition)) ::oga::FailCheck(#condition, __FILE_NAME__, __LINE__, {}); \
  } while (false)

#define OGA_CHECK_MSG(condition, ...)                                                                     \
  do {                                                                                                    \
    if (!(condition)) ::oga::FailCheck(#condition, __FILE_NAME__, __LINE__, ::oga::Message(__VA_ARGS__)); \
  } while (false)
