// Where a folder keeps its chat template, and the conversations that no template gets to see.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <map>

#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::Sample;
using testing::SampleFolder;

std::string TemplateOf(std::map<std::string, std::string> files) {
  files[kTokenizerFileName] = Sample({});
  return ReadChatTemplate(*Tokenizer::FromFolder(SampleFolder(files).path()));
}

TEST(ChatTemplate, IsTheFileOrElseTheSetting) {
  EXPECT_EQ(TemplateOf({{"tokenizer_config.json", R"({"chat_template": "setting"})"}}), "setting");
  EXPECT_EQ(TemplateOf({{"tokenizer_config.json", R"({"chat_template": "setting"})"}, {"chat_template.jinja", "file"}}),
            "file");
}

TEST(ChatTemplate, IsTheDefaultOneOfSeveral) {
  EXPECT_EQ(TemplateOf({{"tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "tools"},
      {"name": "default", "template": "chosen"}]})"}}),
            "chosen");
}

TEST(ChatTemplate, IsRefusedWhenThereIsNone) {
  for (const char* settings : {"{}", R"({"chat_template": null})", R"({"chat_template": []})",
                               R"({"chat_template": [{"name": "tool_use", "template": "tools"}]})"}) {
    const Error error = ErrorOf([&] { TemplateOf({{"tokenizer_config.json", settings}}); });
    EXPECT_EQ(error.code(), StatusCode::kNotFound) << settings;
    EXPECT_EQ(error.field(), "template_str");
  }
}

// The library that renders ends the process for some of these, so they must not reach it.
TEST(ChatTemplate, RendersListsOfMessagesOnly) {
  const struct {
    const char* messages;
    StatusCode code;
    const char* field;
  } rows[] = {
      {"", StatusCode::kInvalidArgument, "messages"},
      {"[{]", StatusCode::kInvalidArgument, "messages"},
      {"{}", StatusCode::kInvalidArgument, "messages"},
      {"[]", StatusCode::kInvalidArgument, "messages"},
      {R"(["hi"])", StatusCode::kInvalidArgument, "messages[0]"},
      {R"([{"role": "user", "content": ""}, {"role": "user"}])", StatusCode::kInvalidArgument, "messages[1]"},
      {R"([{"content": "hi"}])", StatusCode::kInvalidArgument, "messages[0]"},
      {R"([{"role": "user", "content": ["hi"]}])", StatusCode::kUnsupported, "messages[0].content"},
      {R"([{"role": "user", "content": null}])", StatusCode::kUnsupported, "messages[0].content"},
      {R"([{"role": "user", "content": "", "tool_calls": []}])", StatusCode::kUnsupported, "messages[0].tool_calls"},
  };
  const SampleFolder folder({{kTokenizerFileName, Sample({})}});
  const auto tokenizer = Tokenizer::FromFolder(folder.path());
  for (const auto& row : rows) {
    const Error error = ErrorOf([&] { RenderConversation(*tokenizer, "template", row.messages, true); });
    EXPECT_EQ(error.code(), row.code) << row.messages;
    EXPECT_EQ(error.field(), row.field) << row.messages;
  }
}

}  // namespace
}  // namespace oga
