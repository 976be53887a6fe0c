#if defined(__x86_64__)

#include "kernels/nbits_lanes_avx512.h"

#include "kernels/nbits_entry.h"

namespace oga::kernels {

const NBitsVariant kNBitsAvx512 = NBitsEntry<Lanes>::kTable;

}  // namespace oga::kernels

#endif
