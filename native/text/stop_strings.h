// The stop strings of a turn, compiled into one automaton (Aho and Corasick, "Efficient String Matching", 1975).
//
// Immutable and shared. A node stands for the longest end of the text so far that begins some stop string; its label,
// which is that end, is exactly what may still become a match and must be held back. Advancing costs amortised constant
// time for each byte of text, however many strings there are, and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oga {

class StopStrings {
 public:
  static constexpr size_t kMaxStrings = 16;
  static constexpr size_t kMaxTotalBytes = 16384;
  static constexpr int32_t kNoMatch = -1;

  using Node = uint16_t;
  static constexpr Node kStart = 0;

  // What a setter checks: at most kMaxStrings strings of kMaxTotalBytes in all, each valid UTF-8 and not empty. Throws
  // Error{kInvalidArgument} naming the string by its index, what was found and what is allowed. No strings are legal.
  static void Check(std::span<const std::string> strings);

  // Checks and compiles.
  explicit StopStrings(std::vector<std::string> strings);

  bool empty() const noexcept { return strings_.empty(); }
  const std::vector<std::string>& strings() const noexcept { return strings_; }

  Node Advance(Node node, char byte) const noexcept;

  // The index of the string that ends here: the longest one, of equal ones the first; kNoMatch when none does.
  int32_t MatchAt(Node node) const noexcept { return nodes_[node].match; }

  std::string_view Label(Node node) const noexcept {
    if (node == kStart) return {};
    return std::string_view(strings_[nodes_[node].owner]).substr(0, nodes_[node].depth);
  }
  size_t Depth(Node node) const noexcept { return nodes_[node].depth; }

 private:
  static constexpr Node kNone = 0xffff;
  static_assert(kMaxTotalBytes < kNone);

  struct Entry {
    char byte = 0;  // of the edge from its parent
    Node first_child = kNone;
    Node next_sibling = kNone;
    Node fallback = kStart;  // the node of the longest proper end of the label
    uint16_t depth = 0;
    uint16_t owner = 0;  // a string that begins with the label
    int32_t match = kNoMatch;
  };

  Node FindChild(Node node, char byte) const noexcept;
  void Insert(uint16_t index);
  void LinkFallbacks();

  std::vector<std::string> strings_;
  std::vector<Entry> nodes_;
};

}  // namespace oga
