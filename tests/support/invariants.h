// Checks that a Validate() names the invariant that a test has broken.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/check.h"

namespace oga::testing {

// Whether `object.Validate()` throws and names invariant `name`.
template <typename Object>
::testing::AssertionResult Breaks(const Object& object, const std::string& name) {
  try {
    object.Validate();
  } catch (const ContractError& error) {
    if (error.message().find("invariant " + name + " broken") != std::string::npos)
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << error.message();
  }
  return ::testing::AssertionFailure() << "Validate found nothing wrong";
}

}  // namespace oga::testing
