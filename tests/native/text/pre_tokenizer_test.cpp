// The pieces that a pre-tokenizer cuts a text into.
#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using Strings = std::vector<std::string>;

Strings Split(const std::string& component, std::string_view text, bool at_begin = true) {
  const JsonValue root = testing::ParseJson(Message("{\"pre_tokenizer\": ", component, "}"));
  return PreTokenizer(JsonObject(root, "")).Split(text, at_begin);
}

TEST(PreTokenizer, LeavesATextWholeWhenThereIsNone) { EXPECT_EQ(Split("null", "a b1"), Strings{"a b1"}); }

TEST(PreTokenizer, WritesBytesInTheirAlphabet) {
  EXPECT_EQ(Split(R"({"type": "ByteLevel", "add_prefix_space": false})", "a é"), (Strings{"a", "ĠÃ©"}));
  EXPECT_EQ(Split(R"({"type": "ByteLevel", "use_regex": false})", "a é"), Strings{"ĠaĠÃ©"});
  EXPECT_EQ(Split(R"({"type": "ByteLevel"})", " a"), Strings{"Ġa"}) << "there is a space already";
}

TEST(PreTokenizer, AddsAMetaspaceAsItsSchemeSays) {
  const auto split = [](const char* options, bool at_begin) {
    return Split(Message(R"({"type": "Metaspace", "replacement": "_", )", options, "}"), "a b", at_begin);
  };
  EXPECT_EQ(split(R"("prepend_scheme": "always")", false), (Strings{"_a", "_b"}));
  EXPECT_EQ(split(R"("prepend_scheme": "first")", true), (Strings{"_a", "_b"}));
  EXPECT_EQ(split(R"("prepend_scheme": "first")", false), (Strings{"a", "_b"})) << "an added token stands before it";
  EXPECT_EQ(split(R"("prepend_scheme": "never")", true), (Strings{"a", "_b"}));
  EXPECT_EQ(split(R"("add_prefix_space": false)", true), (Strings{"a", "_b"})) << "as old files say it";
  EXPECT_EQ(split(R"("split": false)", true), Strings{"_a_b"});
}

TEST(PreTokenizer, CutsThePiecesOfOneStepByTheNext) {
  EXPECT_EQ(Split(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"String": "-"}, "behavior": "Isolated"},
      {"type": "Digits", "individual_digits": true}]})",
                  "a12-3"),
            (Strings{"a", "1", "2", "-", "3"}));
  EXPECT_EQ(Split(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits"}, {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})",
                  "a1"),
            (Strings{"_a", "1"}))
      << "only the first piece begins the text";
}

TEST(PreTokenizer, IsRefusedByNameAndPlaceWhenItIsNotKnown) {
  const struct {
    const char* component;
    const char* field;
    const char* named;
  } rows[] = {
      {R"({"type": "Punctuation", "behavior": "Isolated"})", "pre_tokenizer", "'Punctuation'"},
      {R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Whitespace"}]})",
       "pre_tokenizer.pretokenizers[1]", "'Whitespace'"},
      {R"({"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Isolated"})", "pre_tokenizer", "'\\w+'"},
      {R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Removed"})", "pre_tokenizer", "'Removed'"},
      {R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Isolated", "invert": true})", "pre_tokenizer",
       "invert"},
  };
  for (const auto& row : rows) {
    const Error error = ErrorOf([&] { Split(row.component, "x"); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported) << row.component;
    EXPECT_EQ(error.field(), row.field);
    EXPECT_CONTAINS(error.message(), row.named);
  }
}

}  // namespace
}  // namespace oga
