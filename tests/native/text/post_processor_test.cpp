// The special tokens around a text, as post-processors say.
#include "text/post_processor.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using Ids = std::vector<TokenId>;

SpecialFrame Read(const std::string& processor) {
  return ReadSpecialFrame(JsonObject(testing::ParseJson(Message("{\"post_processor\": ", processor, "}")), ""));
}

// A template whose parts are letters: A is the text, S a second one, the others are special tokens, of which B and E
// are known.
std::string Template(std::string_view parts) {
  std::string single;
  for (const char part : parts) {
    const bool is_text = part == 'A' || part == 'S';
    if (part < 'A' || part > 'Z') {
      single += part;
    } else {
      single += Message(is_text ? R"({"Sequence": {"id": ")" : R"({"SpecialToken": {"id": ")", part, R"("}})");
    }
  }
  return Message(R"({"type": "TemplateProcessing", "single": )", single,
                 R"(, "special_tokens": {"B": {"ids": [1, 2]}, "E": {"ids": [3]}}})");
}

TEST(PostProcessor, PutsNothingAroundATextUnlessATemplateSaysSo) {
  for (const char* processor : {"null", R"({"type": "ByteLevel"})", R"({"type": "Sequence", "processors": []})"}) {
    EXPECT_EQ(Read(processor).before, Ids{}) << processor;
    EXPECT_EQ(Read(processor).after, Ids{}) << processor;
  }
}

TEST(PostProcessor, ReadsWhatStandsBeforeAndBehindTheText) {
  const SpecialFrame frame = Read(Template("[B, B, A, E]"));
  EXPECT_EQ(frame.before, (Ids{1, 2, 1, 2})) << "a special token may be several ids";
  EXPECT_EQ(frame.after, Ids{3});
}

TEST(PostProcessor, PutsLaterTemplatesAroundEarlierOnes) {
  const SpecialFrame frame = Read(Message(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, )",
                                          Template("[B, A, E]"), ", ", Template("[E, A]"), "]}"));
  EXPECT_EQ(frame.before, (Ids{3, 1, 2}));
  EXPECT_EQ(frame.after, Ids{3});
}

TEST(PostProcessor, RefusesTemplatesThatAreNotOfOneText) {
  for (const char* parts : {"[B]", "[A, A]", "[S]", "[]"}) {
    EXPECT_EQ(ErrorOf([&] { Read(Template(parts)); }).code(), StatusCode::kUnsupported) << parts;
  }
  const Error unknown = ErrorOf([] { Read(Template("[X, A]")); });
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.field(), "post_processor.special_tokens");
}

TEST(PostProcessor, IsRefusedByNameAndPlaceWhenItIsNotKnown) {
  const Error error = ErrorOf([] { Read(R"({"type": "Sequence", "processors": [{"type": "RobertaProcessing"}]})"); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_EQ(error.field(), "post_processor.processors[0]");
  EXPECT_CONTAINS(error.message(), "'RobertaProcessing'");
}

}  // namespace
}  // namespace oga
