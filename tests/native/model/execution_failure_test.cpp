#include "model/execution_failure.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/error.h"

namespace oga {
namespace {

// What `call`, which throws, means for a step.
ExecutionResult FailureOf(const std::function<void()>& call, ExecutionStatus when_memory_ran_out) {
  try {
    call();
  } catch (...) {
    return FailureOfCurrentException(when_memory_ran_out);
  }
  return {};
}

TEST(ExecutionFailure, OnlyMemoryThatRanOutMayBeTriedAgain) {
  const struct {
    std::function<void()> call;
    bool is_listed;
    const char* message;
  } rows[] = {
      {[] { throw std::bad_alloc(); }, true, "std::bad_alloc"},
      {[] { throw std::bad_array_new_length(); }, true, "std::bad_array_new_length"},
      {[] { throw std::length_error("too long"); }, true, "too long"},
      {[] { Throw(StatusCode::kResourceExhausted, "no room"); }, true, "no room"},
      {[] { Throw(StatusCode::kOutOfMemory, "no memory"); }, true, "no memory"},
      {[] { Throw(StatusCode::kInvalidArgument, "a shape"); }, false, "a shape"},
      {[] { Throw(StatusCode::kInvalidState, "a state"); }, false, "a state"},
      {[] { Throw(StatusCode::kNotFound, "a name"); }, false, "a name"},
      {[] { Throw(StatusCode::kUnsupported, "a kind"); }, false, "a kind"},
      {[] { Throw(StatusCode::kIoError, "a file"); }, false, "a file"},
      {[] { Throw(StatusCode::kModelError, "a model"); }, false, "a model"},
      {[] { Throw(StatusCode::kInternal, "a bug"); }, false, "a bug"},
      {[] { throw std::runtime_error("odd"); }, false, "odd"},
      {[] { throw std::logic_error("odder"); }, false, "odder"},
      {[] { throw std::out_of_range("far"); }, false, "far"},
      {[] { throw 7; }, false, "something was thrown that is no exception"},
  };
  for (const auto& row : rows) {
    for (const ExecutionStatus status : {ExecutionStatus::kRetryable, ExecutionStatus::kCapacityExceeded}) {
      const ExecutionResult failure = FailureOf(row.call, status);
      EXPECT_EQ(failure.status, row.is_listed ? status : ExecutionStatus::kFatal) << row.message;
      EXPECT_EQ(failure.message, row.message);
      EXPECT_TRUE(failure.logits.empty());
    }
  }
}

TEST(ExecutionFailure, OfTheSystemIsNotOnTheList) {
  const auto call = [] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); };
  EXPECT_EQ(FailureOf(call, ExecutionStatus::kRetryable).status, ExecutionStatus::kFatal);
}

}  // namespace
}  // namespace oga
