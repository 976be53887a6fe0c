// Operators of ours that a session calls under the runtime's own operator names.
#pragma once

#include "ort/abi.h"

namespace oga::ort {

// Owned by one Session, which calls into it for as long as it lives.
class CustomOperators {
 public:
  virtual ~CustomOperators() = default;

  // Sessions made with `options` use these operators instead of the runtime's.
  virtual void AddTo(abi::SessionOptions* options) const = 0;
};

}  // namespace oga::ort
