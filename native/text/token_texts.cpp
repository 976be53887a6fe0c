#include "text/token_texts.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

namespace {

void KeepLastOfEachText(std::vector<TokenTexts::Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_last = i + 1 == entries.size() || entries[i].text != entries[i + 1].text;
    if (!is_last) continue;
    if (kept != i) entries[kept] = std::move(entries[i]);
    ++kept;
  }
  entries.resize(kept);
}

}  // namespace

TokenTexts::TokenTexts(std::vector<Entry> entries, const std::string& source) {
  KeepLastOfEachText(entries);
  sorted_ids_.reserve(entries.size());
  TokenId largest = -1;
  for (const Entry& entry : entries) {
    sorted_ids_.push_back(entry.id);
    largest = std::max(largest, entry.id);
  }
  const auto size = static_cast<size_t>(largest + 1);
  std::vector<const Entry*> by_id(size, nullptr);
  for (const Entry& entry : entries) {
    const Entry*& place = by_id[static_cast<size_t>(entry.id)];
    if (place != nullptr) {
      Throw(StatusCode::kInvalidArgument, Field{"model.vocab"}, source, ": model.vocab gives the id ", entry.id,
            " to two tokens, ", Quoted(place->text, 60), " and ", Quoted(entry.text, 60));
    }
    place = &entry;
  }
  offsets_.reserve(size + 1);
  is_known_.reserve(size);
  for (const Entry* entry : by_id) {
    if (entry != nullptr) texts_ += entry->text;
    offsets_.push_back(static_cast<uint32_t>(texts_.size()));
    is_known_.push_back(entry != nullptr);
  }
}

std::string_view TokenTexts::TextOf(TokenId id) const {
  if (!Has(id)) return {};
  const auto at = static_cast<size_t>(id);
  return std::string_view(texts_).substr(offsets_[at], offsets_[at + 1] - offsets_[at]);
}

std::optional<TokenId> TokenTexts::Find(std::string_view text) const {
  const auto found = std::lower_bound(sorted_ids_.begin(), sorted_ids_.end(), text,
                                      [&](TokenId id, std::string_view wanted) { return TextOf(id) < wanted; });
  if (found == sorted_ids_.end() || TextOf(*found) != text) return std::nullopt;
  return *found;
}

}  // namespace oga
