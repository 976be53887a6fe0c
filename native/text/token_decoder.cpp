#include "text/token_decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable_text.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_component.h"

namespace oga {

namespace {

[[noreturn]] void Refuse(const JsonObject& component, const std::string& what) {
  RefuseComponent(component, what,
                  "text of this tokenizer would be wrong, so it is refused. Token ids work without text");
}

// Walks the components in order. What a component may do depends on what those before it left of the tokens.
class DecoderReader {
 public:
  TokenDecoder Take() { return std::move(decoder_); }

  void Read(const JsonObject& component) {
    const std::string type = component.RequiredString("type");
    if (type == "Sequence") return ReadSequence(component);
    if (type == "Fuse") {
      shape_ = Shape::kText;
    } else if (type == "Strip") {
      ReadStrip(component);
    } else if (shape_ != Shape::kTokens) {
      Refuse(component, Message("the decoder ", Quoted(type, 60), " behind ", after_));
    } else if (type == "ByteLevel") {
      decoder_.steps.push_back(ByteLevelStep{});
      shape_ = Shape::kText;
    } else if (type == "ByteFallback") {
      decoder_.byte_fallback = true;
      shape_ = Shape::kRuns;
    } else if (type == "Metaspace") {
      ReadMetaspace(component);
    } else if (type == "Replace") {
      ReadReplace(component);
    } else {
      Refuse(component, Message("the decoder ", Quoted(type, 60)));
    }
    after_ = type;
  }

 private:
  // The tokens one by one; those with runs of bytes joined; all joined.
  enum class Shape { kTokens, kRuns, kText };

  void ReadSequence(const JsonObject& component) {
    const std::vector<JsonValue>* list = component.List("decoders", "a list of decoders");
    if (list == nullptr) RefuseValue(component.value(), component.path(), "a sequence with a list of decoders");
    for (size_t i = 0; i < list->size(); ++i) {
      Read(JsonObject((*list)[i], JoinPath(component.PathOf("decoders"), i)));
    }
  }

  void ReadStrip(const JsonObject& component) {
    const std::string character = RequiredText(component, "content");
    const auto leading = static_cast<uint64_t>(component.RequiredInteger("start", {0, INT32_MAX}));
    const auto trailing = static_cast<uint64_t>(component.RequiredInteger("stop", {0, INT32_MAX}));
    if (shape_ == Shape::kTokens) {
      decoder_.steps.push_back(StripStep{character, leading, trailing});
      return;
    }
    // The end of a text is not known while it grows.
    const bool is_ascii = character.size() == 1;
    if (shape_ == Shape::kRuns || trailing > 0 || !is_ascii || decoder_.strip_count > 0) {
      Refuse(component, Message("the decoder 'Strip' of ", Quoted(character), " (", leading, " leading, ", trailing,
                                " trailing) behind ", after_));
    }
    decoder_.strip_character = character[0];
    decoder_.strip_count = static_cast<uint32_t>(leading);
  }

  void ReadMetaspace(const JsonObject& component) {
    // Files of old versions say add_prefix_space instead.
    const bool adds = component.Boolean("add_prefix_space").value_or(true);
    const std::string scheme = component.String("prepend_scheme").value_or(adds ? "always" : "never");
    decoder_.steps.push_back(MetaspaceStep{RequiredText(component, "replacement"), scheme != "never"});
  }

  void ReadReplace(const JsonObject& component) {
    const std::optional<std::string> from = StringPattern(component);
    if (!from) Refuse(component, "the decoder 'Replace' of a regular expression");
    decoder_.steps.push_back(ReplaceStep{*from, RequiredText(component, "content")});
  }

  TokenDecoder decoder_;
  Shape shape_ = Shape::kTokens;
  std::string after_;
};

std::string_view Strip(std::string_view text, const StripStep& step) {
  for (uint64_t i = 0; i < step.leading && !step.character.empty() && text.starts_with(step.character); ++i) {
    text.remove_prefix(step.character.size());
  }
  for (uint64_t i = 0; i < step.trailing && !step.character.empty() && text.ends_with(step.character); ++i) {
    text.remove_suffix(step.character.size());
  }
  return text;
}

std::string Apply(const DecoderStep& step, std::string text, bool is_first) {
  if (const auto* replace = std::get_if<ReplaceStep>(&step)) return ReplaceAll(text, replace->from, replace->to);
  if (const auto* strip = std::get_if<StripStep>(&step)) return std::string(Strip(text, *strip));
  if (const auto* metaspace = std::get_if<MetaspaceStep>(&step)) {
    return ReplaceAll(text, metaspace->replacement, is_first && metaspace->drops_in_first ? "" : " ");
  }
  return BytesOfAlphabet(text).value_or(text);
}

// <0xNN>
std::optional<char> ReadByteToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  uint8_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc() || stop != text.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

bool TokenDecoder::first_differs() const {
  return joins_with_space || std::any_of(steps.begin(), steps.end(), [](const DecoderStep& step) {
           const auto* metaspace = std::get_if<MetaspaceStep>(&step);
           return metaspace != nullptr && metaspace->drops_in_first;
         });
}

TokenDecoder ReadTokenDecoder(const JsonObject& root) {
  const JsonValue* found = root.Find("decoder");
  if (found == nullptr) {
    TokenDecoder none;
    none.joins_with_space = true;
    return none;
  }
  DecoderReader reader;
  reader.Read(JsonObject(*found, "decoder"));
  return reader.Take();
}

DecodedToken DecodeToken(const TokenDecoder& decoder, std::string_view text, bool is_first) {
  std::string bytes(text);
  for (const DecoderStep& step : decoder.steps) bytes = Apply(step, std::move(bytes), is_first);
  if (decoder.byte_fallback) {
    if (const std::optional<char> byte = ReadByteToken(bytes)) return {std::string(1, *byte), true};
  }
  if (decoder.joins_with_space && !is_first) bytes.insert(0, 1, ' ');
  return {std::move(bytes), false};
}

}  // namespace oga
