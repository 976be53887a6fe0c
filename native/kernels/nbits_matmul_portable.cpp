#include "kernels/nbits_lanes_portable.h"

#include "kernels/nbits_entry.h"

namespace oga::kernels {

const NBitsVariant kNBitsPortable = NBitsEntry<Lanes>::kTable;

}  // namespace oga::kernels
