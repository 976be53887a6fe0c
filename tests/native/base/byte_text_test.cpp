#include "base/byte_text.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

TEST(ByteText, WritesTheLargestUnitThatIsReached) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1024), "1.0 KiB");
  EXPECT_EQ(BytesText(uint64_t{7} << 29), "3.5 GiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "15.9 EiB");
}

TEST(ByteText, ReadsANumberWithOrWithoutAUnit) {
  EXPECT_EQ(ParseBytes("0"), 0u);
  EXPECT_EQ(ParseBytes("4096"), 4096u);
  EXPECT_EQ(ParseBytes("2K"), 2048u);
  EXPECT_EQ(ParseBytes("2kib"), 2048u);
  EXPECT_EQ(ParseBytes("512M"), uint64_t{512} << 20);
  EXPECT_EQ(ParseBytes("4GiB"), uint64_t{4} << 30);
  EXPECT_EQ(ParseBytes("4g"), uint64_t{4} << 30);
  EXPECT_EQ(ParseBytes("1TiB"), uint64_t{1} << 40);
  EXPECT_EQ(ParseBytes("16777215TiB"), uint64_t{16777215} << 40);
}

TEST(ByteText, RefusesEverythingElse) {
  for (const char* text : {"", " ", "G", "-1", "+1", "1.5G", "4 GiB", "4GB", "4KB", "4i", "4Gi", "4GiBs", "4P", "0x10",
                           "16777216TiB", "18446744073709551616"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace oga
