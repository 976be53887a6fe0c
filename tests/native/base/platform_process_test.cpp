#include "base/platform_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace oga::platform {
namespace {

TEST(PlatformProcess, HasAnotherNumberInAForkedChild) {
  const ProcessId parent = CurrentProcess();
  const pid_t child = fork();
  if (child == 0) _exit(CurrentProcess() == parent ? 1 : 0);
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(CurrentProcess(), parent);
}

TEST(PlatformProcess, CountsTheProcessorsOfTheCallingThreadAlone) {
  const int before = UsableProcessors();
  EXPECT_GE(before, 1);
  int bound = 0;
  std::thread([&bound] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    bound = UsableProcessors();
  }).join();
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(UsableProcessors(), before);
}

TEST(PlatformProcess, ReadsTheBoundOnItsAddressesAsItIs) {
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const struct rlimit limited { std::min<rlim_t>(before.rlim_cur, rlim_t{1} << 46), before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const auto bound = AddressSpaceLimit();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(bound, limited.rlim_cur);
  EXPECT_EQ(AddressSpaceLimit().has_value(), before.rlim_cur != RLIM_INFINITY);
}

TEST(PlatformProcess, HasPagesOfTheSystemsSize) { EXPECT_EQ(PageBytes(), static_cast<uint64_t>(::getpagesize())); }

TEST(PlatformProcess, IsGrantedTilesOnlyWhereTheProcessorHasThemAndKeepsThem) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool granted = RequestTileState();
  EXPECT_TRUE(!granted || text.find("amx_tile") != std::string::npos);
  EXPECT_EQ(RequestTileState(), granted);
}

}  // namespace
}  // namespace oga::platform
