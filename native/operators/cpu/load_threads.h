// Threads for work that comes while a session is loaded, before its own pool can be asked.
#pragma once

#include "kernels/parallel_for.h"

namespace oga::operators {

// A loop over this many threads, the caller's among them, which end with it. Fewer when the system gives no more. The
// loop's body must not throw.
kernels::ParallelFor OnLoadThreads(int threads);

}  // namespace oga::operators
