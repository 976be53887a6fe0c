// The operators that liboga brings to CPU sessions, under the runtime's own operator names.
//
// Owned by one Session, which calls into it for as long as it lives.
#pragma once

#include <memory>

#include "ort/handles.h"

namespace oga::ort {

class CpuOperators {
 public:
  CpuOperators();
  ~CpuOperators();

  // Sessions made with `options` use these operators instead of the runtime's.
  void AddTo(abi::SessionOptions* options) const;

 private:
  Owned<abi::CustomOpDomain> microsoft_;
};

}  // namespace oga::ort
