// Finds added tokens in a text: leftmost first, of several at one place the longest.
//
// Immutable, any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_json.h"

namespace oga {

// A stretch of a text: plain, or an added token with the whitespace that it takes.
struct TextStretch {
  std::string_view text;
  const AddedToken* token = nullptr;
};

class AddedTokenFinder {
 public:
  // `written` is how each token's content stands in the texts to search, in the order of `tokens`; both must outlive
  // the finder.
  AddedTokenFinder(const std::vector<const AddedToken*>& tokens, std::vector<std::string> written);

  // The stretches of a UTF-8 text, one behind the other, none empty.
  std::vector<TextStretch> Split(std::string_view text) const;

 private:
  struct Candidate {
    std::string written;
    const AddedToken* token;
  };

  const Candidate* FindAt(std::string_view text) const;

  std::array<std::vector<Candidate>, 256> by_first_byte_;  // longest first
};

}  // namespace oga
