// PrefixLookup: the planner's read-only view of the prefix cache, which needs the tokens of the requests it asks for. A
// request that wants log-probabilities of its prompt finds nothing there: they must be computed.
//
// Owned by one Engine; refers to its parts.
#pragma once

#include <memory>
#include <vector>

#include "cache/paged_cache.h"
#include "engine/request.h"
#include "step/prefix_view.h"

namespace oga {

class PrefixLookup final : public PrefixView {
 public:
  PrefixLookup(const PagedCache& cache, const std::vector<std::shared_ptr<Request>>& requests)
      : cache_(cache), requests_(requests) {}

  PrefixHit Find(RequestIndex index, std::vector<BlockId>& found) const override {
    if (requests_[index]->scores_prompt()) return {};
    return cache_.Find(index, requests_[index]->tokens(), found);
  }
  bool WillPublish(RequestIndex leader, RequestIndex follower, uint32_t blocks) const noexcept override {
    return !requests_[follower]->scores_prompt() && cache_.WillPublish(leader, follower, blocks);
  }

 private:
  const PagedCache& cache_;
  const std::vector<std::shared_ptr<Request>>& requests_;
};

}  // namespace oga
