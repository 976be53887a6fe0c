#include <gtest/gtest.h>

#include "memory/host_memory.h"

namespace oga {
namespace {

constexpr const char* kMeminfo =
    "MemTotal:       24684092 kB\n"
    "MemFree:         1000 kB\n"
    "MemAvailable:   24279960 kB\n"
    "Buffers:            20 kB\n"
    "Cached:            300 kB\n"
    "SwapCached:          0 kB\n"
    "HugePages_Total:       0\n";

TEST(Meminfo, GivesFieldsInBytes) {
  EXPECT_EQ(ParseMeminfoField(kMeminfo, "MemAvailable"), uint64_t{24279960} * 1024);
  EXPECT_EQ(ParseMeminfoField(kMeminfo, "MemTotal"), uint64_t{24684092} * 1024);
  EXPECT_EQ(ParseMeminfoField(kMeminfo, "Cached"), 300u * 1024) << "and not SwapCached";
  EXPECT_EQ(ParseMeminfoField(kMeminfo, "Mem"), std::nullopt);
  EXPECT_EQ(ParseMeminfoField(kMeminfo, "HugePages_Total"), std::nullopt) << "not in kB";
  EXPECT_EQ(ParseMeminfoField("", "MemFree"), std::nullopt);
  EXPECT_EQ(ParseMeminfoField("MemFree: x kB\n", "MemFree"), std::nullopt);
  EXPECT_EQ(ParseMeminfoField("MemFree: -5 kB\n", "MemFree"), std::nullopt);
  EXPECT_EQ(ParseMeminfoField("MemFree: 99999999999999999999 kB\n", "MemFree"), std::nullopt);
  EXPECT_EQ(ParseMeminfoField("MemFree: 18446744073709551615 kB\n", "MemFree"), std::nullopt);
  EXPECT_EQ(ParseMeminfoField("MemFree:\t7 kB", "MemFree"), 7u * 1024);
}

TEST(Meminfo, EstimatesWhatOldKernelsDoNotTell) {
  EXPECT_EQ(ParseMeminfoAvailable(kMeminfo), uint64_t{24279960} * 1024);
  EXPECT_EQ(ParseMeminfoAvailable("MemFree: 1000 kB\nBuffers: 20 kB\nCached: 300 kB\n"), 1320u * 1024);
  EXPECT_EQ(ParseMeminfoAvailable("MemFree: 1000 kB\n"), 1000u * 1024);
  EXPECT_EQ(ParseMeminfoAvailable("MemTotal: 1000 kB\n"), std::nullopt);
}

TEST(Cgroup, ReadsALimit) {
  EXPECT_EQ(ParseCgroupBytes("1073741824\n"), 1073741824u);
  EXPECT_EQ(ParseCgroupBytes("0\n"), 0u);
  EXPECT_EQ(ParseCgroupBytes("max\n"), std::nullopt);
  EXPECT_EQ(ParseCgroupBytes("9223372036854771712\n"), std::nullopt) << "version 1 with pages of 4 KiB";
  EXPECT_EQ(ParseCgroupBytes("9223372036854710272\n"), std::nullopt) << "version 1 with pages of 64 KiB";
  EXPECT_EQ(ParseCgroupBytes("18446744073709551615\n"), std::nullopt);
  EXPECT_EQ(ParseCgroupBytes(""), std::nullopt);
  EXPECT_EQ(ParseCgroupBytes("-1\n"), std::nullopt);
  EXPECT_EQ(ParseCgroupBytes("12 34\n"), std::nullopt);
}

TEST(Cgroup, ReadsAFieldOfItsStatistics) {
  constexpr const char* kStat = "anon 5\nfile 7\ninactive_file 4096\nactive_file 8\ntotal_inactive_file 12288\n";
  EXPECT_EQ(ParseCgroupStat(kStat, "inactive_file"), 4096u);
  EXPECT_EQ(ParseCgroupStat(kStat, "total_inactive_file"), 12288u);
  EXPECT_EQ(ParseCgroupStat(kStat, "inactive"), std::nullopt);
  EXPECT_EQ(ParseCgroupStat("", "inactive_file"), std::nullopt);
  EXPECT_EQ(ParseCgroupStat("inactive_file x\n", "inactive_file"), std::nullopt);
}

TEST(Cgroup, FindsThePathOfTheProcess) {
  constexpr const char* kHybrid =
      "9:name=systemd:/init\n4:memory,hugetlb:/docker/abc\n3:cpuset:/\n1:cpu:/\n0::/user.slice/with:colon\n";
  EXPECT_EQ(ParseCgroupPath(kHybrid, CgroupVersion::kV1), "/docker/abc");
  EXPECT_EQ(ParseCgroupPath(kHybrid, CgroupVersion::kV2), "/user.slice/with:colon");
  EXPECT_EQ(ParseCgroupPath("0::/\n", CgroupVersion::kV2), "/");
  EXPECT_EQ(ParseCgroupPath("0::/\n", CgroupVersion::kV1), std::nullopt);
  EXPECT_EQ(ParseCgroupPath("4:memory:/x\n", CgroupVersion::kV2), std::nullopt);
  EXPECT_EQ(ParseCgroupPath("4:memoryless:/x\n", CgroupVersion::kV1), std::nullopt);
  EXPECT_EQ(ParseCgroupPath("", CgroupVersion::kV2), std::nullopt);
  EXPECT_EQ(ParseCgroupPath("garbage\n0:\n", CgroupVersion::kV2), std::nullopt);
}

TEST(Cgroup, FindsTheMount) {
  constexpr const char* kMountinfo =
      "22 1 0:20 / /proc rw - proc proc rw\n"
      "30 22 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n"
      "31 30 0:27 /docker/abc /sys/fs/cgroup/memory rw shared:10 master:3 - cgroup cgroup rw,memory\n"
      "32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "33 30 0:29 / /sys/fs/cgroup/my\\040group rw shared:11 - cgroup2 cgroup2 rw,nsdelegate\n";
  const auto v1 = ParseCgroupMount(kMountinfo, CgroupVersion::kV1);
  ASSERT_TRUE(v1);
  EXPECT_EQ(v1->root, "/docker/abc");
  EXPECT_EQ(v1->mount_point, "/sys/fs/cgroup/memory");
  const auto v2 = ParseCgroupMount(kMountinfo, CgroupVersion::kV2);
  ASSERT_TRUE(v2);
  EXPECT_EQ(v2->root, "/");
  EXPECT_EQ(v2->mount_point, "/sys/fs/cgroup/my group");
  EXPECT_FALSE(ParseCgroupMount("", CgroupVersion::kV2));
  EXPECT_FALSE(ParseCgroupMount("22 1 - cgroup2\n31 30 0:27 /x\n", CgroupVersion::kV2));
  EXPECT_FALSE(ParseCgroupMount("32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", CgroupVersion::kV1));
}

TEST(Cgroup, WalksFromTheProcessUpToTheMount) {
  using Folders = std::vector<std::string>;
  const CgroupMount whole{"/", "/cg"};
  EXPECT_EQ(CgroupFolders(whole, "/"), (Folders{"/cg"}));
  EXPECT_EQ(CgroupFolders(whole, "/a/b..c"), (Folders{"/cg/a/b..c", "/cg/a", "/cg"}));
  EXPECT_EQ(CgroupFolders(whole, "/../sibling"), (Folders{"/cg"}));
  EXPECT_EQ(CgroupFolders(whole, "/.."), (Folders{"/cg"}));
  EXPECT_EQ(CgroupFolders(whole, ""), (Folders{"/cg"}));
  EXPECT_EQ(CgroupFolders(whole, "no-slash"), (Folders{"/cg"}));
  const CgroupMount container{"/docker/abc", "/cg"};
  EXPECT_EQ(CgroupFolders(container, "/docker/abc"), (Folders{"/cg"}));
  EXPECT_EQ(CgroupFolders(container, "/docker/abc/x"), (Folders{"/cg/x", "/cg"}));
  EXPECT_EQ(CgroupFolders(container, "/docker/abcdef"), (Folders{"/cg"})) << "another container";
  EXPECT_EQ(CgroupFolders(container, "/"), (Folders{"/cg"}));
}

}  // namespace
}  // namespace oga
