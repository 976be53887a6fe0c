#include "base/platform_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/platform_process.h"
#include "support/test_data.h"

namespace oga::platform {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

// A file of kBytes threes, mapped as the runtime maps weights.
class MappedPages : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = test::DataPath("mapped_pages.XXXXXX");
    const int file = mkstemp(path.data());
    ASSERT_GE(file, 0);
    const std::vector<uint8_t> content(kBytes, 3);
    ASSERT_EQ(write(file, content.data(), kBytes), static_cast<ssize_t>(kBytes));
    data_ = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
    close(file);
    unlink(path.c_str());
    ASSERT_NE(data_, MAP_FAILED);
  }
  void TearDown() override { munmap(data_, kBytes); }

  uint64_t Sum() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < kBytes; ++i) sum += data_[i];
    return sum;
  }

  uint8_t* data_ = nullptr;
};

// How many pages of the process's own tables hold something for [data, data + bytes).
size_t PagesHeld(const uint8_t* data, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int file = open("/proc/self/pagemap", O_RDONLY);
  size_t held = 0;
  for (size_t at = 0; at < bytes; at += page) {
    uint64_t entry = 0;
    const auto offset = static_cast<off_t>((reinterpret_cast<uintptr_t>(data) + at) / page * 8);
    EXPECT_EQ(pread(file, &entry, 8, offset), 8);
    held += entry >> 63;
  }
  close(file);
  return held;
}

TEST_F(MappedPages, OfAFileLeaveAndComeBackWithTheSameContent) {
  EXPECT_EQ(Sum(), 3 * kBytes);
  EXPECT_GT(PagesHeld(data_, kBytes), 0u);
  EXPECT_EQ(DropFilePages(data_, kBytes), kBytes);
  EXPECT_EQ(PagesHeld(data_, kBytes), 0u);
  EXPECT_EQ(Sum(), 3 * kBytes);
}

TEST_F(MappedPages, ThatWereWrittenStay) {
  data_[kBytes / 2] = 5;
  EXPECT_EQ(Sum(), 3 * kBytes + 2);
  EXPECT_EQ(DropFilePages(data_, kBytes), 0u);
  EXPECT_EQ(Sum(), 3 * kBytes + 2);
}

TEST(OwnMemory, StaysAsItIs) {
  std::vector<uint8_t> memory(kBytes, 7);
  EXPECT_EQ(DropFilePages(memory.data(), kBytes), 0u);
  EXPECT_EQ(memory, std::vector<uint8_t>(kBytes, 7));
  EXPECT_EQ(DropFilePages(memory.data(), 0), 0u);
}

TEST(Pages, AreZeroedAndBeginOnTheBoundaryTheyAreAskedFor) {
  Pages huge(kHugePageBytes + 1, PageSize::kHuge);
  ASSERT_TRUE(huge);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(huge.data()) % kHugePageBytes, 0u);
  EXPECT_GE(huge.bytes(), kHugePageBytes + 1);
  EXPECT_EQ(huge.data()[kHugePageBytes], 0);
  const Pages small(1, PageSize::kSmall);
  EXPECT_EQ(small.data()[small.bytes() - 1], 0);
}

TEST(Pages, MoveWithTheirMemory) {
  Pages first(100, PageSize::kSmall);
  first.data()[7] = 42;
  Pages second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(second.data()[7], 42);
  first = std::move(second);
  EXPECT_EQ(first.data()[7], 42);
}

TEST(Pages, AreEmptyWithAReasonWhereTheSystemRefuses) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    const Pages pages(bytes, PageSize::kHuge);
    EXPECT_FALSE(pages);
    EXPECT_NE(pages.error(), 0);
  }
}

// The rest of a huge page would come with a byte of it, so these are small.
TEST(Pages, AreResidentWhereTheyWereWritten) {
  const auto page_bytes = static_cast<size_t>(PageBytes());
  const size_t pages = 40000;  // more than the kernel is asked for at once
  const Pages memory(pages * page_bytes, PageSize::kSmall);
  ASSERT_TRUE(memory);
  madvise(memory.data(), memory.bytes(), MADV_NOHUGEPAGE);
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  EXPECT_EQ(ResidentBytes(begin, memory.bytes()), 0u);
  std::fill_n(memory.data(), 3 * page_bytes, 1);
  memory.data()[memory.bytes() - 1] = 1;
  EXPECT_EQ(ResidentBytes(begin, memory.bytes()), 4 * page_bytes);
  EXPECT_EQ(ResidentBytes(begin + 1, 3 * page_bytes), 2 * page_bytes) << "whole pages only";
  EXPECT_EQ(ResidentBytes(begin + 1, 10), 0u);
  EXPECT_EQ(ResidentBytes(0, page_bytes), 0u) << "not mapped";
}

}  // namespace
}  // namespace oga::platform
