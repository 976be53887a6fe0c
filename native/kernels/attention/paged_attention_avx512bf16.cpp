#if defined(__x86_64__)

#include "kernels/attention/pair_units_avx512.h"

#include "kernels/attention/paged_attention_pairs.h"

namespace oga::kernels {

const PairAttentionVariant kPairAttentionAvx512Bf16 = PairEntry<ChainUnits>::kTable;

}  // namespace oga::kernels

#endif
