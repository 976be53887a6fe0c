#include "kernels/simd/simd_portable.h"

#include "kernels/attention/paged_attention_entry.h"

namespace oga::kernels {

const PagedAttentionVariant kPagedAttentionPortable = VariantEntry<Simd>::kTable;

}  // namespace oga::kernels
