#include "text/chat_template.h"

#include <memory>

#include "base/error.h"
#include "base/printable_text.h"
#include "config/json_object.h"
#include "config/json_reader.h"
#include "config/read_file.h"
#include "text/extensions.h"

namespace oga {

namespace {

using Kind = JsonValue::Kind;

constexpr FileKind kTemplateKind{
    .max_bytes = size_t{16} << 20, .noun = "chat template", .remedy = "it is optional, and a broken link is not"};

std::string Escaped(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<uint8_t>(character);
    if (byte < 0x20) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      out += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
      continue;
    }
    if (character == '"' || character == '\\') out += '\\';
    out += character;
  }
  return out + '"';
}

std::string SettingsJson(const Tokenizer& tokenizer) {
  std::string json = R"({"tokenizer_class": "PreTrainedTokenizerFast")";
  for (const char* role : {"bos_token", "eos_token"}) {
    const std::optional<std::string> text = TokenOfRole(tokenizer.settings(), role);
    if (text) json += Message(", \"", role, "\": ", Escaped(*text));
  }
  return json + "}";
}

void CheckMessages(const std::string& messages) {
  const JsonValue list = ReadJson(messages, std::make_shared<const std::string>("messages"));
  if (list.kind != Kind::kArray || list.elements.empty()) {
    RefuseValue(list, "", "a list of messages, each like {\"role\": \"user\", \"content\": \"...\"}");
  }
  for (size_t i = 0; i < list.elements.size(); ++i) {
    const JsonObject message(list.elements[i], Message("messages[", i, "]"));
    for (const char* key : {"role", "content"}) {
      if (message.value().Find(key) == nullptr)
        RefuseValue(message.value(), message.path(), "a message with role and content");
    }
    for (const JsonMember& member : message.value().members) {
      if (member.value.kind == Kind::kString) continue;
      const std::string path = JoinPath(message.path(), member.name);
      Throw(StatusCode::kUnsupported, Field{path}, path, " is ", Describe(member.value),
            "; messages of text only are rendered here. Render others in Python with oga.ChatTemplate");
    }
  }
}

}  // namespace

std::string ReadChatTemplate(const Tokenizer& tokenizer) {
  const std::string path = tokenizer.folder() + "/chat_template.jinja";
  if (FileExists(path)) return ReadFile(path, kTemplateKind);
  const JsonValue* found = tokenizer.settings().Find("chat_template");
  if (found != nullptr && found->kind == Kind::kArray) {
    const JsonValue* chosen = nullptr;
    for (const JsonValue& entry : found->elements) {
      const JsonValue* name = entry.Find("name");
      if (name != nullptr && name->text == "default") chosen = entry.Find("template");
    }
    found = chosen;
  }
  if (found != nullptr && found->kind == Kind::kString) return found->text;
  Throw(StatusCode::kNotFound, Field{"template_str"}, "there is no chat template, neither ", Quoted(path),
        " nor a chat_template in tokenizer_config.json; give one, or encode the text of the conversation directly");
}

std::string RenderConversation(const Tokenizer& tokenizer, const std::string& chat_template,
                               const std::string& messages, bool add_generation_prompt) {
  CheckMessages(messages);
  return RenderChat({.chat_template = chat_template,
                     .messages = messages,
                     .settings = SettingsJson(tokenizer),
                     .add_generation_prompt = add_generation_prompt});
}

}  // namespace oga
