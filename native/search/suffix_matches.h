// Where the end of a sequence has occurred before: for each position, how many tokens right before it equal the last
// tokens of the sequence. What follows such a place is what a repetition would continue with.
//
// Linear in the sequence, however repetitive it is: the Z function (Gusfield, "Algorithms on Strings, Trees and
// Sequences", 1997) of the sequence read backwards. Nothing is remembered from one sequence to the next.
// Owned by one Sampler; memory grows in Reserve only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step/ids.h"

namespace oga::search {

class SuffixMatches {
 public:
  // Makes room for sequences of up to `tokens` tokens. May throw std::bad_alloc; changes nothing then.
  void Reserve(size_t tokens);

  // Room for `sequence` was reserved.
  void Find(std::span<const TokenId> sequence);

  // How many tokens of the last sequence right before `position` equal its last ones; `position` is one of its.
  uint32_t LengthBefore(size_t position) const {
    const size_t distance = size_ - position;
    return distance < size_ ? lengths_[distance] : 0;
  }

 private:
  std::vector<uint32_t> lengths_;  // by distance from the end of the sequence
  size_t size_ = 0;
};

}  // namespace oga::search
