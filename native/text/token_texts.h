// The tokens of a vocabulary as they are written in its file, by id and by text.
//
// Immutable once built, any thread. The texts stand in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "step/ids.h"

namespace oga {

class TokenTexts {
 public:
  struct Entry {
    std::string text;
    TokenId id;
  };

  // Of entries with one text the last one counts, as in the `tokenizers` library. Throws Error{kInvalidArgument} naming
  // both when two texts have one id; `source` names the file.
  TokenTexts(std::vector<Entry> entries, const std::string& source);

  // The largest id and one; 0 without tokens. Ids below may be holes.
  size_t size() const { return is_known_.size(); }
  // Different texts.
  size_t count() const { return sorted_ids_.size(); }

  bool Has(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < size() && is_known_[static_cast<size_t>(id)];
  }
  std::string_view TextOf(TokenId id) const;  // empty for a hole
  std::optional<TokenId> Find(std::string_view text) const;

 private:
  std::string texts_;
  std::vector<uint32_t> offsets_{0};  // [size + 1]
  std::vector<bool> is_known_;
  std::vector<TokenId> sorted_ids_;  // by text
};

}  // namespace oga
