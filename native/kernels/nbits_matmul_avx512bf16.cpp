#if defined(__x86_64__)

#include "kernels/nbits_lanes_avx512.h"

#include "kernels/nbits_entry.h"

namespace oga::kernels {

const NBitsVariant kNBitsAvx512Bf16 = NBitsEntry<ChainLanes>::kTable;

}  // namespace oga::kernels

#endif
