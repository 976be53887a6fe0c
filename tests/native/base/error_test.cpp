#include "base/error.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/check.h"

namespace oga {
namespace {

Error ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(StatusCode::kOk, "");
}

TEST(Error, CarriesCodeFieldAndSentenceApart) {
  const Error about_one = ErrorOf([] { Throw(StatusCode::kNotFound, Field{"a.key"}, "there is no ", 3, " of ", 4.5); });
  EXPECT_EQ(about_one.code(), StatusCode::kNotFound);
  EXPECT_EQ(about_one.field(), "a.key");
  EXPECT_EQ(about_one.message(), "there is no 3 of 4.5");
  EXPECT_STREQ(about_one.what(), "there is no 3 of 4.5");
}

TEST(Error, AboutNoneOrSeveralHasNoField) {
  EXPECT_EQ(ErrorOf([] { Throw(StatusCode::kInvalidState, "not now"); }).field(), "");
  EXPECT_EQ(ErrorOf([] { OGA_CHECK(false); }).field(), "");
}

}  // namespace
}  // namespace oga
