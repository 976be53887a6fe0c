#include "text/post_processor.h"

#include "base/error.h"
#include "base/printable_text.h"
#include "text/tokenizer_component.h"

namespace oga {

namespace {

// Ids of a special token by `special_tokens` of a template.
void AppendSpecial(const JsonObject& component, const std::string& name, std::vector<TokenId>& ids) {
  const JsonObject known = component.RequiredObject("special_tokens");
  const JsonValue* found = known.value().Find(name);
  if (found == nullptr) RefuseValue(known.value(), known.path(), Message("an object that has ", Quoted(name, 60)));
  const JsonObject token(*found, JoinPath(known.path(), name));
  const std::vector<JsonValue>* list = token.List("ids", "a list of token ids");
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const int64_t id = ReadInteger((*list)[i], JoinPath(token.PathOf("ids"), i), {0, INT32_MAX});
    ids.push_back(static_cast<TokenId>(id));
  }
}

// [{"SpecialToken": {"id": ...}}, {"Sequence": {"id": "A"}}, ...]: the text stands in the frame so far.
SpecialFrame ReadTemplate(const JsonObject& component, const SpecialFrame& inner) {
  SpecialFrame frame;
  bool is_behind = false;
  const std::vector<JsonValue>* parts = component.List("single", "a list of parts");
  for (size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    const JsonObject part((*parts)[i], JoinPath(component.PathOf("single"), i));
    if (part.Find("SpecialToken") != nullptr) {
      AppendSpecial(component, RequiredText(part.RequiredObject("SpecialToken"), "id"),
                    is_behind ? frame.after : frame.before);
      continue;
    }
    const std::string sequence = part.RequiredObject("Sequence").RequiredString("id");
    if (is_behind || sequence != "A") RefuseComponent(part, "a second text in a template for one", kEncodeElsewhere);
    is_behind = true;
    frame.before.insert(frame.before.end(), inner.before.begin(), inner.before.end());
    frame.after = inner.after;
  }
  if (!is_behind) RefuseComponent(component, "a template without the text", kEncodeElsewhere);
  return frame;
}

SpecialFrame Read(const JsonObject& component, SpecialFrame frame) {
  const std::string type = component.RequiredString("type");
  if (type == "ByteLevel") return frame;
  if (type == "TemplateProcessing") return ReadTemplate(component, frame);
  if (type != "Sequence") {
    RefuseComponent(component, Message("the post-processor ", Quoted(type, 60)), kEncodeElsewhere);
  }
  const std::vector<JsonValue>* list = component.List("processors", "a list of post-processors");
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    frame = Read(JsonObject((*list)[i], JoinPath(component.PathOf("processors"), i)), std::move(frame));
  }
  return frame;
}

}  // namespace

SpecialFrame ReadSpecialFrame(const JsonObject& root) {
  const JsonValue* found = root.Find("post_processor");
  return found == nullptr ? SpecialFrame{} : Read(JsonObject(*found, "post_processor"), {});
}

}  // namespace oga
