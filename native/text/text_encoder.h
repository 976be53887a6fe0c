// Text to token ids without any library: byte-pair models with the components that decoder-only models come with.
//
// Immutable, any thread. The ids are those of the `tokenizers` library, or the text or tokenizer is refused by name:
// there is no approximate encoding.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_token_finder.h"
#include "text/bpe_model.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/text_normalizer.h"
#include "text/tokenizer_json.h"

namespace oga {

class TextEncoder {
 public:
  // `merges` are those of the files, which keep none themselves. Throws Error{kUnsupported} naming the component that
  // is not known.
  TextEncoder(std::shared_ptr<const TokenizerFiles> files, const std::vector<Merge>& merges);

  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;

  // The ids of `text`; with `add_special` inside what the tokenizer puts around every text, often one BOS. Added tokens
  // written in the text are recognised. Throws Error: kInvalidArgument for a text that is not UTF-8, kUnsupported for
  // one that would have to be composed, or for a frame of special tokens that is not known.
  std::vector<TokenId> Encode(std::string_view text, bool add_special) const;

 private:
  void EncodePlain(std::string_view text, bool at_begin, std::vector<TokenId>& ids) const;

  std::shared_ptr<const TokenizerFiles> files_;
  TextNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  BpeModel model_;
  std::optional<AddedTokenFinder> in_raw_text_;
  std::optional<AddedTokenFinder> in_normalized_text_;
};

}  // namespace oga
