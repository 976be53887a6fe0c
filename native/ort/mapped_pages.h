// Giving back the memory of a model file's pages that have been read for the last time.
#pragma once

#include <cstddef>

namespace oga::ort {

// The pages wholly within `bytes` from `data` leave the process's memory if they are a mapped file's, from which a
// later read gets them again. Memory of any other kind keeps what is in it. Nobody writes there meanwhile.
void DropMappedPages(const void* data, size_t bytes) noexcept;

}  // namespace oga::ort
