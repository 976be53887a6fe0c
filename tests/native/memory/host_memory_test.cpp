// The bound that counts, over machines that are maps from paths to texts.
#include "memory/host_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/error.h"

namespace oga {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Machine {
  std::map<std::string, std::string> files;
  std::optional<uint64_t> address_space_limit_bytes;

  HostMemory Read() const {
    HostMemorySources sources;
    sources.read_file = [this](const std::string& path) -> std::optional<std::string> {
      const auto found = files.find(path);
      return found == files.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    sources.address_space_limit_bytes = address_space_limit_bytes;
    return ReadHostMemory(sources);
  }
};

std::string Kibibytes(uint64_t mebibytes) { return std::to_string(mebibytes * 1024); }
std::string Bytes(uint64_t mebibytes) { return std::to_string(mebibytes * kMiB) + "\n"; }

Machine MachineWith(uint64_t available_mebibytes) {
  return {{{"/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: " + Kibibytes(available_mebibytes) + " kB\n"}}, {}};
}

Machine V2Machine() {
  Machine machine = MachineWith(10000);
  machine.files["/proc/self/cgroup"] = "0::/outer/inner\n";
  machine.files["/proc/self/mountinfo"] = "30 22 0:26 / /cg rw shared:9 - cgroup2 cgroup2 rw\n";
  return machine;
}

Machine V1Machine() {
  Machine machine = MachineWith(10000);
  machine.files["/proc/self/cgroup"] = "4:memory:/docker/abc\n0::/\n";
  machine.files["/proc/self/mountinfo"] =
      "30 22 0:26 / /cg/unified rw - cgroup2 cgroup2 rw\n"
      "31 22 0:27 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n";
  return machine;
}

void ExpectMemory(const Machine& machine, uint64_t mebibytes, const std::string& bound) {
  const HostMemory memory = machine.Read();
  EXPECT_EQ(memory.available_bytes, mebibytes * kMiB);
  EXPECT_EQ(memory.bound, bound);
}

TEST(HostMemory, IsWhatTheMachineHasWithoutAGroup) {
  ExpectMemory(MachineWith(500), 500, "MemAvailable of /proc/meminfo");
}

TEST(HostMemory, IsWhatTheGroupLeaves) {
  Machine machine = V2Machine();
  machine.files["/cg/outer/inner/memory.max"] = Bytes(1000);
  machine.files["/cg/outer/inner/memory.current"] = Bytes(300);
  ExpectMemory(machine, 700, "/cg/outer/inner/memory.max");
}

TEST(HostMemory, CountsFilesThatTheKernelWouldDropAsFree) {
  Machine machine = V2Machine();
  machine.files["/cg/outer/inner/memory.max"] = Bytes(1000);
  machine.files["/cg/outer/inner/memory.current"] = Bytes(900);
  machine.files["/cg/outer/inner/memory.stat"] = "anon 1\nfile 2\ninactive_file " + Bytes(400);
  ExpectMemory(machine, 500, "/cg/outer/inner/memory.max");
  // The statistics lag behind; more reclaimable than used must not wrap around.
  machine.files["/cg/outer/inner/memory.stat"] = "inactive_file " + Bytes(950);
  ExpectMemory(machine, 1000, "/cg/outer/inner/memory.max");
}

TEST(HostMemory, IsBoundByEveryGroupAboveToo) {
  Machine machine = V2Machine();
  machine.files["/cg/outer/inner/memory.max"] = "max\n";
  machine.files["/cg/outer/memory.max"] = Bytes(2000);
  machine.files["/cg/outer/memory.current"] = Bytes(1950);
  ExpectMemory(machine, 50, "/cg/outer/memory.max");
  machine.files["/cg/outer/inner/memory.max"] = Bytes(40);
  machine.files["/cg/outer/inner/memory.current"] = Bytes(10);
  ExpectMemory(machine, 30, "/cg/outer/inner/memory.max");
}

TEST(HostMemory, IsBoundByTheLimitAboveWhichAGroupIsSlowedDown) {
  Machine machine = V2Machine();
  machine.files["/cg/outer/inner/memory.max"] = Bytes(1000);
  machine.files["/cg/outer/inner/memory.high"] = Bytes(800);
  machine.files["/cg/outer/inner/memory.current"] = Bytes(300);
  ExpectMemory(machine, 500, "/cg/outer/inner/memory.high");
}

TEST(HostMemory, IsNothingInAGroupOverItsLimit) {
  Machine machine = V2Machine();
  machine.files["/cg/outer/inner/memory.max"] = Bytes(100);
  machine.files["/cg/outer/inner/memory.current"] = Bytes(120);
  ExpectMemory(machine, 0, "/cg/outer/inner/memory.max");
}

TEST(HostMemory, IsNeverMoreThanTheMachineHas) {
  Machine machine = V2Machine();
  machine.files["/cg/outer/inner/memory.max"] = Bytes(50000);
  machine.files["/cg/outer/inner/memory.current"] = Bytes(1);
  ExpectMemory(machine, 10000, "MemAvailable of /proc/meminfo");
}

TEST(HostMemory, KnowsGroupsOfVersionOneInAContainer) {
  Machine machine = V1Machine();
  machine.files["/cg/memory/memory.limit_in_bytes"] = Bytes(1000);
  machine.files["/cg/memory/memory.usage_in_bytes"] = Bytes(600);
  machine.files["/cg/memory/memory.stat"] = "inactive_file 7\ntotal_inactive_file " + Bytes(100);
  ExpectMemory(machine, 500, "/cg/memory/memory.limit_in_bytes");
  machine.files["/cg/memory/memory.limit_in_bytes"] = "9223372036854771712\n";
  ExpectMemory(machine, 10000, "MemAvailable of /proc/meminfo");
}

TEST(HostMemory, IgnoresGroupFilesThatAreMissingOrDamaged) {
  Machine machine = V2Machine();
  ExpectMemory(machine, 10000, "MemAvailable of /proc/meminfo");
  machine.files["/cg/outer/inner/memory.max"] = "lots\n";
  machine.files["/cg/outer/inner/memory.current"] = "";
  ExpectMemory(machine, 10000, "MemAvailable of /proc/meminfo");
  machine.files["/cg/outer/inner/memory.max"] = Bytes(700);  // usage unknown: the limit itself is the best bound
  ExpectMemory(machine, 700, "/cg/outer/inner/memory.max");
  machine.files.erase("/proc/self/mountinfo");
  ExpectMemory(machine, 10000, "MemAvailable of /proc/meminfo");
}

TEST(HostMemory, TellsApartWhatTheAddressSpaceLimitLeaves) {
  Machine machine = MachineWith(10000);
  EXPECT_EQ(machine.Read().addresses_bytes, HostMemory::kUnbounded);
  machine.address_space_limit_bytes = 3000 * kMiB;
  machine.files["/proc/self/statm"] = "256000 1 2 3 4 5 6\n";  // 1000 MiB of 4 KiB pages
  EXPECT_EQ(machine.Read().addresses_bytes, 2000 * kMiB);
  ExpectMemory(machine, 10000, "MemAvailable of /proc/meminfo");
  machine.files["/proc/self/statm"] = "1000000 1 2 3 4 5 6\n";
  EXPECT_EQ(machine.Read().addresses_bytes, 0u);
  machine.files.erase("/proc/meminfo");
  EXPECT_EQ(machine.Read().available_bytes, HostMemory::kUnbounded);
}

TEST(HostMemory, SaysSoWhenNothingTellsIt) {
  try {
    Machine{}.Read();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kIoError);
    EXPECT_NE(error.message().find("engine.dynamic_batching.num_blocks"), std::string::npos) << error.message();
  }
}

TEST(HostMemory, OfThisMachineIsMoreThanNothing) {
  const HostMemory memory = ReadHostMemory();
  EXPECT_GT(memory.available_bytes, kMiB);
  EXPECT_FALSE(memory.bound.empty());
}

uint64_t MappedBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HostMemory, OfThisProcessFollowsItsAddressSpaceLimit) {
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const struct rlimit limited { MappedBytes() + 64 * kMiB, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const HostMemory memory = ReadHostMemory();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LE(memory.addresses_bytes, 64 * kMiB);
  EXPECT_GE(memory.addresses_bytes, 32 * kMiB);
}

}  // namespace
}  // namespace oga
