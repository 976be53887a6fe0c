#include "text/added_token_finder.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode_classes.h"

namespace oga {

namespace {

// Bytes of the spaces at the start of `text`.
size_t LeadingSpaces(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t length = NextUtf8(text.substr(end)).length;
    if (!IsSpace(CodePointOf(text.substr(end, length)))) break;
    end += length;
  }
  return end;
}

// Where the spaces at the end of `text` begin.
size_t TrailingSpaces(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t character = begin - 1;
    while (character > 0 && (static_cast<uint8_t>(text[character]) & 0xc0) == 0x80) --character;
    if (!IsSpace(CodePointOf(text.substr(character, begin - character)))) break;
    begin = character;
  }
  return begin;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(const std::vector<const AddedToken*>& tokens, std::vector<std::string> written) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (written[i].empty()) continue;
    const auto first = static_cast<uint8_t>(written[i][0]);
    by_first_byte_[first].push_back({std::move(written[i]), tokens[i]});
  }
  for (std::vector<Candidate>& candidates : by_first_byte_) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.written.size() > b.written.size(); });
  }
}

const AddedTokenFinder::Candidate* AddedTokenFinder::FindAt(std::string_view text) const {
  for (const Candidate& candidate : by_first_byte_[static_cast<uint8_t>(text[0])]) {
    if (text.starts_with(candidate.written)) return &candidate;
  }
  return nullptr;
}

std::vector<TextStretch> AddedTokenFinder::Split(std::string_view text) const {
  std::vector<TextStretch> stretches;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Candidate* found = FindAt(text.substr(at));
    if (found == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + found->written.size();
    at = end;
    // Spaces that the token before has taken are gone.
    if (found->token->lstrip) begin = std::max(done, TrailingSpaces(text.substr(0, begin)));
    if (found->token->rstrip) end += LeadingSpaces(text.substr(end));
    if (begin > done) stretches.push_back({text.substr(done, begin - done)});
    stretches.push_back({text.substr(begin, end - begin), found->token});
    done = end;
  }
  if (done < text.size()) stretches.push_back({text.substr(done)});
  return stretches;
}

}  // namespace oga
