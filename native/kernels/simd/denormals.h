// The mode in which a thread computes with denormals. A host may have set any, and the threads of a pool have their
// own: whatever must give the same bits on each of them says which one it means. Where the mode is not known how to set
// (other processors than x86), the thread's own stays.
//
// Compiled for the variants too, so everything has internal linkage; see simd_math.h.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace oga::kernels {
namespace {

#if defined(__x86_64__)

template <bool flushes>
class DenormalMode {
 public:
  DenormalMode() : saved_(_mm_getcsr()) { _mm_setcsr(flushes ? saved_ | kBits : saved_ & ~kBits); }
  ~DenormalMode() { _mm_setcsr(saved_); }
  DenormalMode(const DenormalMode&) = delete;
  DenormalMode& operator=(const DenormalMode&) = delete;

 private:
  static constexpr unsigned kBits = 0x8040u;  // results to zero, operands as zero
  const unsigned saved_;
};

#else

template <bool flushes>
class DenormalMode {
 public:
  DenormalMode() {}
};

#endif

using FlushDenormals = DenormalMode<true>;
using KeepDenormals = DenormalMode<false>;

}  // namespace
}  // namespace oga::kernels
