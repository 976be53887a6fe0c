// The operators that liboga brings to CPU sessions, under the runtime's own operator names.
//
// Owned by one Session, which calls into it for as long as it lives.
#pragma once

#include <memory>

#include "ort/handles.h"

namespace oga::ort {

struct MatMulNBitsOp;

// Whose MatMulNBits a session uses when OGA_CPU_MATMUL is `requested` (null or empty when unset): true for liboga's own
// ("oga", the default), false for the runtime's ("runtime"). Throws Error{kInvalidArgument} for another name.
bool UsesOwnMatMul(const char* requested);

class CpuOperators {
 public:
  // Throws Error{kInvalidArgument} when OGA_CPU_MATMUL names nothing we know.
  CpuOperators();
  ~CpuOperators();

  // Sessions made with `options` use these operators instead of the runtime's.
  void AddTo(abi::SessionOptions* options) const;

 private:
  std::unique_ptr<const MatMulNBitsOp> matmul_nbits_;  // null when the runtime's is used
  Owned<abi::CustomOpDomain> microsoft_;
};

}  // namespace oga::ort
