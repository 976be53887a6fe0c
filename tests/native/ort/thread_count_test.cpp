#include "ort/thread_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace oga::ort {
namespace {

namespace fs = std::filesystem;

// A control group file system in a folder of its own.
class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / "oga_cgroup";
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::optional<double> Read() const { return CgroupCpuQuota(root_ / "membership", root_ / "fs"); }

  fs::path root_;
};

TEST_F(CgroupQuota, IsTheTightestOfTheGroupAndItsParents) {
  Write("membership", "0::/pod/container\n");
  Write("fs/cpu.max", "max 100000\n");
  Write("fs/pod/cpu.max", "150000 100000\n");
  Write("fs/pod/container/cpu.max", "400000 100000\n");
  EXPECT_EQ(Read(), 1.5);
}

TEST_F(CgroupQuota, IsFoundAtTheRootWhenTheNamespaceHidesTheGroup) {
  Write("membership", "0::/../elsewhere\n");
  Write("fs/cpu.max", "50000 100000\n");
  EXPECT_EQ(Read(), 0.5);
}

TEST_F(CgroupQuota, ReadsVersionOne) {
  Write("membership", "4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n");
  Write("fs/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "300000\n");
  Write("fs/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n");
  Write("fs/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Read(), 3.0);
}

TEST_F(CgroupQuota, IsAbsentWithoutALimitAFileOrSense) {
  EXPECT_EQ(Read(), std::nullopt);
  Write("membership", "0::/\nnonsense\n");
  EXPECT_EQ(Read(), std::nullopt);
  Write("fs/cpu.max", "max 100000\n");
  EXPECT_EQ(Read(), std::nullopt);
  Write("fs/cpu.max", "100000 0\n");
  EXPECT_EQ(Read(), std::nullopt);
}

TEST(ParseThreadCount, TakesWholeNumbersInRangeOnly) {
  EXPECT_EQ(ParseThreadCount("1"), 1);
  EXPECT_EQ(ParseThreadCount("1024"), 1024);
  for (const char* text : {"0", "-1", "1025", "2.5", "two", "2 ", " 2", "99999999999999999999", "0x2"}) {
    try {
      ParseThreadCount(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(error.message().find(text), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("OGA_NUM_THREADS"), std::string::npos) << error.message();
    }
  }
}

TEST(ChooseThreadCount, FollowsTheVariableThenTheConfigThenTheAffinityMask) {
  ASSERT_EQ(setenv("OGA_NUM_THREADS", "7", 1), 0);
  EXPECT_EQ(ChooseThreadCount(0), 7);
  EXPECT_EQ(ChooseThreadCount(3), 7);
  ASSERT_EQ(unsetenv("OGA_NUM_THREADS"), 0);
  EXPECT_EQ(ChooseThreadCount(3), 3);

  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++processor) {
    if (CPU_ISSET(processor, &before)) CPU_SET(processor, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(ChooseThreadCount(0), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(ChooseThreadCount(0), 1);
  EXPECT_LE(ChooseThreadCount(0), CPU_COUNT(&before));
}

}  // namespace
}  // namespace oga::ort
