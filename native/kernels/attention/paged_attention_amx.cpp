#if defined(__x86_64__)

#include "kernels/attention/pair_units_avx512.h"

#include "kernels/attention/paged_attention_pairs.h"

namespace oga::kernels {

const PairAttentionVariant kPairAttentionAmx = PairEntry<TileUnits<HardwareTiles, PairOps>>::kTable;

}  // namespace oga::kernels

#endif
