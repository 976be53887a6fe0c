// How a kernel hands its work to the threads of whoever runs it.
#pragma once

#include <cstddef>
#include <functional>

namespace oga::kernels {

// Calls body(i) once for every i in [0, count), in any order and on any threads, and returns when all are done.
using ParallelFor = std::function<void(size_t count, const std::function<void(size_t)>& body)>;

}  // namespace oga::kernels
