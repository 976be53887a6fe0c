#include "text/stop_strings.h"

#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace oga {

namespace {

template <typename... Parts>
[[noreturn]] void Refuse(const Parts&... parts) {
  Throw(StatusCode::kInvalidArgument, Field{"stop_strings"}, parts...);
}

}  // namespace

void StopStrings::Check(std::span<const std::string> strings) {
  if (strings.size() > kMaxStrings) {
    Refuse("there are ", strings.size(), " stop strings; a turn takes at most ", kMaxStrings);
  }
  size_t total_bytes = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty()) {
      Refuse("stop string ", i, " is empty and would match everywhere; give at least one character");
    }
    const size_t invalid = FindInvalidUtf8(strings[i]);
    if (invalid != std::string_view::npos) {
      Refuse("stop string ", i, " is not UTF-8 (at byte ", invalid, "), so no text can ever hold it");
    }
    total_bytes += strings[i].size();
  }
  if (total_bytes > kMaxTotalBytes) {
    Refuse("the stop strings have ", total_bytes, " bytes together; a turn takes at most ", kMaxTotalBytes);
  }
}

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  Check(strings_);
  nodes_.emplace_back();
  for (size_t i = 0; i < strings_.size(); ++i) Insert(static_cast<uint16_t>(i));
  LinkFallbacks();
}

StopStrings::Node StopStrings::Advance(Node node, char byte) const noexcept {
  while (true) {
    const Node child = FindChild(node, byte);
    if (child != kNone) return child;
    if (node == kStart) return kStart;
    node = nodes_[node].fallback;
  }
}

StopStrings::Node StopStrings::FindChild(Node node, char byte) const noexcept {
  Node child = nodes_[node].first_child;
  while (child != kNone && nodes_[child].byte != byte) child = nodes_[child].next_sibling;
  return child;
}

void StopStrings::Insert(uint16_t index) {
  Node node = kStart;
  for (const char byte : strings_[index]) {
    Node child = FindChild(node, byte);
    if (child == kNone) {
      child = static_cast<Node>(nodes_.size());
      const auto depth = static_cast<uint16_t>(nodes_[node].depth + 1);
      nodes_.push_back({.byte = byte, .next_sibling = nodes_[node].first_child, .depth = depth, .owner = index});
      nodes_[node].first_child = child;
    }
    node = child;
  }
  if (nodes_[node].match == kNoMatch) nodes_[node].match = index;
}

// Level by level, since a fallback is shorter than its node. A node at which no string ends takes over the match of its
// fallback, which is the longest string that ends there.
void StopStrings::LinkFallbacks() {
  std::vector<Node> queue{kStart};
  queue.reserve(nodes_.size());
  for (size_t i = 0; i < queue.size(); ++i) {
    const Node parent = queue[i];
    for (Node child = nodes_[parent].first_child; child != kNone; child = nodes_[child].next_sibling) {
      Entry& entry = nodes_[child];
      if (parent != kStart) entry.fallback = Advance(nodes_[parent].fallback, entry.byte);
      if (entry.match == kNoMatch) entry.match = nodes_[entry.fallback].match;
      queue.push_back(child);
    }
  }
}

}  // namespace oga
