#if defined(__x86_64__)

#include "kernels/product/packed_lanes_avx512.h"

#include "kernels/attention/paged_attention_pairs.h"

namespace oga::kernels {

const PairAttentionVariant kPairAttentionAmx = PairEntry<TileUnits<HardwareTiles>>::kTable;

}  // namespace oga::kernels

#endif
