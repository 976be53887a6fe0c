#include "grammar/grammar_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/printable_text.h"
#include "base/utf8.h"
#include "grammar/grammar_library.h"

namespace oga::grammar {

namespace {

// llguidance marks special tokens by a byte that no text has.
constexpr char kSpecialMark = '\xff';

}  // namespace

GrammarTokenizer::GrammarTokenizer(std::shared_ptr<const TokenBytes> token_bytes, size_t vocab_size,
                                   std::span<const TokenId> eos_token_ids, Encoder encode)
    : functions_(Library()),
      token_bytes_(std::move(token_bytes)),
      vocab_size_(vocab_size),
      eos_token_ids_(eos_token_ids.begin(), eos_token_ids.end()),
      encode_(std::move(encode)) {
  std::sort(eos_token_ids_.begin(), eos_token_ids_.end());
  eos_token_ids_.erase(std::unique(eos_token_ids_.begin(), eos_token_ids_.end()), eos_token_ids_.end());
  std::erase_if(eos_token_ids_, [&](TokenId id) { return id < 0 || static_cast<size_t>(id) >= vocab_size; });
  if (encode_) {
    for (size_t id = 0; id < vocab_size; ++id) {
      if (TextOf(static_cast<TokenId>(id)).empty()) continue;
      by_bytes_.push_back(static_cast<TokenId>(id));
      longest_bytes_ = std::max(longest_bytes_, TextOf(static_cast<TokenId>(id)).size());
    }
    std::sort(by_bytes_.begin(), by_bytes_.end(), [&](TokenId a, TokenId b) {
      const int order = TextOf(a).compare(TextOf(b));
      return order != 0 ? order < 0 : a < b;
    });
  }
  Create();
}

GrammarTokenizer::~GrammarTokenizer() { functions_.llg_free_tokenizer(handle_); }

void GrammarTokenizer::Create() {
  std::vector<uint32_t> lengths(vocab_size_);
  std::string bytes;
  for (size_t id = 0; id < vocab_size_; ++id) {
    const size_t begin = bytes.size();
    const auto token = static_cast<TokenId>(id);
    if (IsSpecial(token)) {
      bytes += kSpecialMark;
      bytes += token_bytes_->Of(token);
    } else {
      bytes += TextOf(token);
    }
    lengths[id] = static_cast<uint32_t>(bytes.size() - begin);
  }
  const std::vector<uint32_t> eos(eos_token_ids_.begin(), eos_token_ids_.end());
  LlgTokenizerInit init;
  init.vocab_size = static_cast<uint32_t>(vocab_size_);
  init.tok_eos = eos.empty() ? kLlgNoToken : eos.front();
  init.token_lens = lengths.data();
  init.token_bytes = reinterpret_cast<const uint8_t*>(bytes.data());
  init.tokenize_fn = encode_ ? &GrammarTokenizer::Tokenize : nullptr;
  init.tokenize_user_data = this;
  init.use_approximate_greedy_tokenize_fn = !encode_;
  if (eos.size() > 1) {
    init.tok_eos_extra = eos.data() + 1;
    init.tok_eos_extra_count = static_cast<uint32_t>(eos.size() - 1);
  }
  char error[512] = "";
  handle_ = functions_.llg_new_tokenizer_v2(&init, error, sizeof error);
  if (handle_ == nullptr) {
    Throw(StatusCode::kModelError,
          "llguidance refuses the vocabulary of the model, so it cannot follow grammars: ", Printable(error));
  }
}

bool GrammarTokenizer::IsSpecial(TokenId id) const {
  return token_bytes_->IsSpecial(id) || std::binary_search(eos_token_ids_.begin(), eos_token_ids_.end(), id);
}

std::string_view GrammarTokenizer::TextOf(TokenId id) const {
  const std::string_view text = token_bytes_->Of(id);
  // A tokenizer may know more tokens than the model has logits.
  const bool is_token = token_bytes_->IsKnown(id) && static_cast<size_t>(id) < vocab_size_;
  const bool is_text = is_token && !IsSpecial(id) && !text.starts_with(kSpecialMark);
  return is_text ? text : std::string_view();
}

size_t GrammarTokenizer::Tokenize(const void* self, const uint8_t* bytes, size_t length, uint32_t* tokens,
                                  size_t capacity) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(bytes), length);
    const std::vector<TokenId> ids = static_cast<const GrammarTokenizer*>(self)->EncodeExactly(text);
    std::copy_n(ids.begin(), std::min(ids.size(), capacity), tokens);
    return ids.size();
  } catch (...) {  // out of memory; no tokens means that nothing is forced
    return 0;
  }
}

std::vector<TokenId> GrammarTokenizer::EncodeExactly(std::string_view text) const {
  std::vector<TokenId> ids;
  if (FindInvalidUtf8(text) == std::string_view::npos) {
    try {
      ids = encode_(text);
    } catch (...) {  // a text that the tokenizer does not take
      ids.clear();
    }
    size_t matched = 0;
    const bool is_exact = std::all_of(ids.begin(), ids.end(), [&](TokenId id) {
      const std::string_view part = TextOf(id);
      const bool fits = !part.empty() && text.substr(matched).starts_with(part);
      matched += part.size();
      return fits;
    });
    if (is_exact && matched == text.size()) return ids;
    ids.clear();
  }
  AppendGreedily(text, ids);
  return ids;
}

void GrammarTokenizer::AppendGreedily(std::string_view text, std::vector<TokenId>& ids) const {
  while (!text.empty()) {
    const TokenId id = LongestPrefix(text);
    if (id < 0) return;
    ids.push_back(id);
    text.remove_prefix(TextOf(id).size());
  }
}

TokenId GrammarTokenizer::LongestPrefix(std::string_view text) const {
  for (size_t length = std::min(longest_bytes_, text.size()); length > 0; --length) {
    const std::string_view wanted = text.substr(0, length);
    const auto found = std::lower_bound(by_bytes_.begin(), by_bytes_.end(), wanted,
                                        [&](TokenId id, std::string_view bytes) { return TextOf(id) < bytes; });
    if (found != by_bytes_.end() && TextOf(*found) == wanted) return *found;
  }
  return -1;
}

}  // namespace oga::grammar
