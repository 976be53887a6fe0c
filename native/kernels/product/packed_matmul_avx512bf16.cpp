#if defined(__x86_64__)

#include "kernels/product/packed_lanes_avx512.h"

#include "kernels/product/packed_entry.h"

namespace oga::kernels {

const PackedVariant kPackedAvx512Bf16 = PackedEntry<ChainLanes>::kTable;

}  // namespace oga::kernels

#endif
