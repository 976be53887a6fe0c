#include "text/text_encoder.h"

#include <utility>

#include "base/error.h"
#include "base/printable_text.h"
#include "base/utf8.h"
#include "text/tokenizer_component.h"

namespace oga {

namespace {

const TokenizerFiles& CheckModel(const TokenizerFiles& files) {
  if (files.model_type != "BPE") {
    RefuseComponent(JsonObject(files.root, "").RequiredObject("model"),
                    Message("encoding by a ", files.model_type, " model"), kEncodeElsewhere);
  }
  for (const AddedToken& token : files.added_tokens) {
    if (!token.single_word) continue;
    RefuseComponent(JsonObject(files.root, ""),
                    Message("the added token ", Quoted(token.content, 60), " that must be a single word"),
                    kEncodeElsewhere);
  }
  return files;
}

}  // namespace

TextEncoder::TextEncoder(std::shared_ptr<const TokenizerFiles> files, const std::vector<Merge>& merges)
    : files_(std::move(files)),
      normalizer_(JsonObject(CheckModel(*files_).root, "")),
      pre_tokenizer_(JsonObject(files_->root, "")),
      model_(*files_, merges) {
  std::vector<const AddedToken*> raw;
  std::vector<const AddedToken*> normalized;
  std::vector<std::string> written_raw;
  std::vector<std::string> written_normalized;
  for (const AddedToken& token : files_->added_tokens) {
    (token.normalized ? normalized : raw).push_back(&token);
    if (token.normalized) {
      written_normalized.push_back(normalizer_.Normalize(token.content));
    } else {
      written_raw.push_back(token.content);
    }
  }
  in_raw_text_.emplace(raw, std::move(written_raw));
  in_normalized_text_.emplace(normalized, std::move(written_normalized));
}

std::vector<TokenId> TextEncoder::Encode(std::string_view text, bool add_special) const {
  const size_t invalid = FindInvalidUtf8(text);
  if (invalid != std::string_view::npos) {
    Throw(StatusCode::kInvalidArgument, Field{kTextParameter}, "the text is not UTF-8 (at byte ", invalid, " of ",
          text.size(), ")");
  }
  const SpecialFrame frame = add_special ? ReadSpecialFrame(JsonObject(files_->root, "")) : SpecialFrame{};
  std::vector<TokenId> ids = frame.before;
  for (const TextStretch& stretch : in_raw_text_->Split(text)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
    } else {
      EncodePlain(stretch.text, stretch.text.data() == text.data(), ids);
    }
  }
  ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  return ids;
}

void TextEncoder::EncodePlain(std::string_view text, bool at_begin, std::vector<TokenId>& ids) const {
  const std::string normalized = normalizer_.Normalize(text);
  for (const TextStretch& stretch : in_normalized_text_->Split(normalized)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
      continue;
    }
    const bool is_first = at_begin && stretch.text.data() == normalized.data();
    for (const std::string& piece : pre_tokenizer_.Split(stretch.text, is_first)) model_.Encode(piece, ids);
  }
}

}  // namespace oga
