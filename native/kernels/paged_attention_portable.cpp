#include "kernels/simd_portable.h"

#include "kernels/paged_attention_entry.h"

namespace oga::kernels {

const PagedAttentionVariant kPagedAttentionPortable = VariantEntry<Simd>::kTable;

}  // namespace oga::kernels
