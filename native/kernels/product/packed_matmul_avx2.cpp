#if defined(__x86_64__)

#include "kernels/product/packed_lanes_avx2.h"

#include "kernels/product/packed_entry.h"

namespace oga::kernels {

const PackedVariant kPackedAvx2 = PackedEntry<Lanes>::kTable;

}  // namespace oga::kernels

#endif
