#include "onnx/protobuf_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "native/config/config_samples.h"

namespace oga {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;

std::string Content(char tag, const std::string& content) {
  std::string text(1, tag);
  size_t length = content.size();
  for (; length >= 0x80; length >>= 7) text += static_cast<char>(length | 0x80);
  return text + static_cast<char>(length) + content;
}

constexpr char kThirdContent = 3 << 3 | 2, kFourthContent = 4 << 3 | 2;

class ProtobufFiles : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(path_); }

  ProtobufReader Open(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    return ProtobufReader(path_);
  }
  // Of reading every field of `content`, and the texts of those that have one.
  Error Refusal(const std::string& content) const {
    return ErrorOf([&] {
      ProtobufReader reader = Open(content);
      reader.ForEachField(0, reader.size_bytes(), [&](const ProtobufReader::Field& field) {
        if (field.has_content) reader.Text(field);
      });
    });
  }

  const std::string path_ = ::testing::TempDir() + "oga_protobuf_reader.onnx";
};

TEST_F(ProtobufFiles, AreReadFieldByField) {
  ProtobufReader reader = Open(std::string("\x08\xac\x02", 3) + "\x11" + "12345678" + Content(kThirdContent, "abc") +
                               "\x25" + "1234" + "\xa0\x01\x07");
  const auto number = reader.Next(reader.size_bytes());
  ASSERT_TRUE(number);
  EXPECT_EQ(number->number, 1u);
  EXPECT_EQ(number->number_value, 300u);
  EXPECT_FALSE(number->has_content);
  const auto fixed64 = reader.Next(reader.size_bytes());
  ASSERT_TRUE(fixed64);
  EXPECT_EQ(fixed64->number, 2u);
  EXPECT_FALSE(fixed64->has_content);
  const auto text = reader.Next(reader.size_bytes());
  ASSERT_TRUE(text);
  EXPECT_EQ(text->number, 3u);
  EXPECT_TRUE(text->has_content);
  EXPECT_EQ(text->end - text->begin, 3u);
  EXPECT_EQ(reader.Text(*text), "abc");
  const auto fixed32 = reader.Next(reader.size_bytes());
  ASSERT_TRUE(fixed32) << "reading a text lost the place";
  EXPECT_EQ(fixed32->number, 4u);
  const auto large = reader.Next(reader.size_bytes());
  ASSERT_TRUE(large);
  EXPECT_EQ(large->number, 20u);
  EXPECT_EQ(large->number_value, 7u);
  EXPECT_FALSE(reader.Next(reader.size_bytes()));
}

TEST_F(ProtobufFiles, GoOnBehindAMessageThatWasLookedInto) {
  const std::string inner = Content(kFourthContent, "inner") + "\x08\x01";
  ProtobufReader reader = Open(Content(kThirdContent, inner) + Content(kFourthContent, "outer"));
  std::vector<std::string> texts;
  reader.ForEachField(0, reader.size_bytes(), [&](const ProtobufReader::Field& field) {
    if (field.number == 4) texts.push_back(reader.Text(field));
    if (field.number != 3) return;
    reader.ForEachField(field.begin, field.end, [&](const ProtobufReader::Field& within) {
      if (within.has_content) texts.push_back(reader.Text(within));
      EXPECT_LE(within.end, field.end);
    });
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"inner", "outer"}));
}

// The reader holds 64 KiB of the file at a time.
TEST_F(ProtobufFiles, AreReadAcrossWhatIsInMemory) {
  std::string large(200000, 'x');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  ProtobufReader reader = Open(Content(kThirdContent, large) + Content(kFourthContent, "last"));
  const auto first = reader.Next(reader.size_bytes());
  const auto second = reader.Next(reader.size_bytes());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(reader.Text(*second), "last");
  EXPECT_TRUE(reader.Text(*first) == large);
}

TEST_F(ProtobufFiles, ThatMakeNoSenseAreRefused) {
  const std::string tag(1, kThirdContent);
  for (const std::string& content :
       {std::string("\x08"), std::string("\x08\x80"), tag + "\x04" + "abc", tag + "\xff\xff\xff\xff\x7f",
        std::string("\x0b"), std::string("\x02\x00", 2), "\x08" + std::string(10, '\xff') + "\x01", "\x11" + tag,
        Content(kThirdContent, std::string((1 << 20) + 1, 'x'))}) {
    const Error error = Refusal(content);
    EXPECT_EQ(error.code(), StatusCode::kModelError) << error.message();
    EXPECT_EQ(error.field(), path_);
  }
}

TEST_F(ProtobufFiles, KeepAMessageWithinItsEnd) {
  ProtobufReader reader = Open(Content(kThirdContent, "abc") + Content(kFourthContent, "abc"));
  EXPECT_EQ(ErrorOf([&] { reader.Next(4); }).code(), StatusCode::kModelError);
}

TEST_F(ProtobufFiles, ThatCannotBeOpenedAreNamed) {
  const std::string missing = path_ + ".missing";
  const Error absent = ErrorOf([&] { ProtobufReader{missing}; });
  EXPECT_EQ(absent.code(), StatusCode::kNotFound);
  EXPECT_EQ(absent.field(), missing);
  const Error folder = ErrorOf([&] { ProtobufReader{::testing::TempDir()}; });
  EXPECT_EQ(folder.code(), StatusCode::kIoError);
  EXPECT_EQ(folder.field(), ::testing::TempDir());
}

}  // namespace
}  // namespace oga
