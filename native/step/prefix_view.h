// What the planner may ask of the prefix cache, read-only.
#pragma once

#include <cstdint>
#include <vector>

#include "step/ids.h"

namespace oga {

// Leading blocks of a request that the cache already holds.
struct PrefixHit {
  uint32_t blocks = 0;
  uint32_t retired_blocks = 0;  // of them, ones that count as available until they are shared
};

class PrefixView {
 public:
  virtual ~PrefixView() = default;

  // Looks up the whole blocks before the last token of a request that owns nothing; appends them to `found`. Linear in
  // the blocks of the sequence.
  virtual PrefixHit Find(RequestIndex index, std::vector<BlockId>& found) const = 0;

  // Whether `leader`, once it has computed its sequence, will have published the block that `follower` lacks after its
  // first `blocks` ones.
  virtual bool WillPublish(RequestIndex leader, RequestIndex follower, uint32_t blocks) const noexcept = 0;
};

}  // namespace oga
