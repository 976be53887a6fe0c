#if defined(__x86_64__)

#include "kernels/simd/simd_avx512.h"

#include "kernels/attention/paged_attention_entry.h"

namespace oga::kernels {

const PagedAttentionVariant kPagedAttentionAvx512 = VariantEntry<Simd>::kTable;

}  // namespace oga::kernels

#endif
