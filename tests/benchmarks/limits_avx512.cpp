#if defined(__x86_64__)

#include "benchmarks/limits_avx512.h"

namespace oga::benchmarks {

const LimitLoops kLimitsAvx512 = kLoops<Avx512>;

}  // namespace oga::benchmarks

#endif
