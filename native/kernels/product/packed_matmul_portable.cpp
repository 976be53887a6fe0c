#include "kernels/product/packed_lanes_portable.h"

#include "kernels/product/packed_entry.h"

namespace oga::kernels {

const PackedVariant kPackedPortable = PackedEntry<Lanes>::kTable;

}  // namespace oga::kernels
