#if defined(__x86_64__)

#include "kernels/nbits_lanes_avx2.h"

#include "kernels/nbits_entry.h"

namespace oga::kernels {

const NBitsVariant kNBitsAvx2 = NBitsEntry<Lanes>::kTable;

}  // namespace oga::kernels

#endif
