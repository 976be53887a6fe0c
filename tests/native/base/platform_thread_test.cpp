#include "base/platform_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace oga::platform {
namespace {

TEST(StackThread, IsOverWhenItsBodyIs) {
  std::atomic<bool> done = false;
  std::thread::id runner;
  {
    const StackThread thread(size_t{1} << 20, "a test", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      runner = std::this_thread::get_id();
      done = true;
    });
  }
  EXPECT_TRUE(done);
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(StackThread, HasTheStackItIsAskedFor) {
  for (const size_t bytes : {size_t{1} << 20, size_t{64} << 20}) {
    size_t found = 0;
    {
      const StackThread thread(bytes, "a test", [&found] {
        pthread_attr_t attributes;
        ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
        pthread_attr_getstacksize(&attributes, &found);
        pthread_attr_destroy(&attributes);
      });
    }
    EXPECT_GE(found, bytes - bytes / 8);  // the C library may keep some of it
    EXPECT_LT(found, 2 * bytes);
  }
}

TEST(StackThread, SaysWhatItWasForWhereTheSystemGivesNone) {
  for (const size_t bytes : {size_t{1}, size_t{1} << 60}) {
    try {
      const StackThread thread(bytes, "the tests", [] { ADD_FAILURE() << "a refused thread ran"; });
      ADD_FAILURE() << "a stack of " << bytes << " bytes was given";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
      EXPECT_NE(error.message().find("the tests"), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace oga::platform
