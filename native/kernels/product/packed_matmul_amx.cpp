#if defined(__x86_64__)

#include "kernels/product/packed_lanes_avx512.h"

#include "kernels/product/packed_amx.h"

namespace oga::kernels {
const PackedVariant kPackedAmx = AmxEntry<PairLanes, HardwareTiles>::kTable;

}  // namespace oga::kernels

#endif
