// The one exception type of liboga and the status codes it carries.
//
// Expected outcomes (a full pool, a stale turn id) are values; an `Error` is for what a caller has to be told.
// `capi/boundary.h` turns it into a result. Below, only those catch who can handle what they name, or add a word to it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace oga {

// Values equal `OgaStatusCode` of include/oga/result.h; the C boundary asserts it.
enum class StatusCode : uint32_t {
  kOk = 0,
  kInvalidArgument = 1,
  kInvalidState = 2,
  kNotFound = 3,
  kUnsupported = 4,
  kResourceExhausted = 5,
  kIoError = 6,
  kModelError = 7,
  kEngineUnhealthy = 8,
  kOutOfMemory = 9,
  kInternal = 10,
};

// What an error is about, in the host's spelling: the option, config key, argument or file. Programs read it, so it is
// the bare name: "top_p", "engine.dynamic_batching.num_blocks", "tokens", a path.
struct Field {
  std::string name;
};

// Carries a code and a field for programs and a sentence for people: what was wrong, what was found, what was wanted,
// what to do.
class Error : public std::exception {
 public:
  Error(StatusCode code, std::string message) : Error(code, Field{}, std::move(message)) {}
  Error(StatusCode code, Field field, std::string message)
      : code_(code), field_(std::move(field.name)), message_(std::move(message)) {}

  StatusCode code() const noexcept { return code_; }
  const std::string& field() const noexcept { return field_; }  // empty when it is about none, or several
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  StatusCode code_;
  std::string field_;
  std::string message_;
};

namespace internal {
inline void AppendPart(std::string& out, const std::string& part) { out += part; }
inline void AppendPart(std::string& out, const char* part) { out += part; }
inline void AppendPart(std::string& out, char part) { out += part; }
inline void AppendPart(std::string& out, bool part) { out += part ? "true" : "false"; }
template <typename Number>
void AppendPart(std::string& out, Number part) {
  out += std::to_string(part);
}
void AppendPart(std::string& out, float part);
void AppendPart(std::string& out, double part);
}  // namespace internal

// Joins strings and numbers into one message: Message("top_p is ", 1.5f, "; it must be in [0, 1]"). Numbers are
// written with a decimal point whatever the process locale is.
template <typename... Parts>
std::string Message(const Parts&... parts) {
  std::string out;
  (internal::AppendPart(out, parts), ...);
  return out;
}

// Throws Error{kInvalidArgument} and its siblings; the short forms keep the sentence the most visible part of a check.
template <typename... Parts>
[[noreturn]] void Throw(StatusCode code, const Parts&... parts) {
  throw Error(code, Message(parts...));
}
template <typename... Parts>
[[noreturn]] void Throw(StatusCode code, Field field, const Parts&... parts) {
  throw Error(code, std::move(field), Message(parts...));
}

}  // namespace oga
