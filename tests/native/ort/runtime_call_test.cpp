#include "ort/runtime_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/error.h"

namespace oga::ort {
namespace {

using namespace std::chrono_literals;

// What a process does that exits while another thread is in a call. Each runs in a process of its own.
void ExitDuringACall() {
  std::thread([] {
    const RuntimeCall call;
    std::this_thread::sleep_for(300ms);
    std::_Exit(7);  // only if exit() waited for it
  }).detach();
  std::this_thread::sleep_for(100ms);
  std::exit(8);
}

void CallAfterExitBegan() {
  { const RuntimeCall first; }  // from here on exit is watched, and handlers of earlier registration run later
  std::exit(9);
}

void ExitInsideACall() {
  const RuntimeCall call;
  std::exit(10);
}

TEST(RuntimeCallDeathTest, ExitWaitsForACallOfAnotherThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(ExitDuringACall(), testing::ExitedWithCode(7), "");
}

TEST(RuntimeCallDeathTest, ExitInsideACallDoesNotWaitForItself) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(ExitInsideACall(), testing::ExitedWithCode(10), "");
}

TEST(RuntimeCallDeathTest, ALateCallOfAnotherThreadIsRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  static const auto call_on_another_thread = [] {
    std::thread([] {
      try {
        const RuntimeCall call;
      } catch (const Error& error) {
        if (error.code() == StatusCode::kInvalidState) std::_Exit(11);
      }
    }).join();
  };
  // Registered before the first call, so it runs after exit began.
  EXPECT_EXIT((std::atexit(call_on_another_thread), CallAfterExitBegan()), testing::ExitedWithCode(11), "");
}

TEST(RuntimeCall, CallsMayNestAndRunBesideEachOther) {
  const RuntimeCall outer;
  std::thread([] { const RuntimeCall other; }).join();
  const RuntimeCall inner;
}

}  // namespace
}  // namespace oga::ort
