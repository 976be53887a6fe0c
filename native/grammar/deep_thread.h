// Work on a stack of a size of our choosing.
//
// llguidance follows a chain of rules by recursion, some kB for each link, and a stack that runs out ends the process.
// What a host's own threads have is unknown; so grammars are compiled, and masks computed, on these.
#pragma once

#include <cstddef>
#include <functional>

namespace oga::grammar {

// Runs `body` on a thread with such a stack and waits; what it throws is thrown here.
void RunDeep(size_t stack_bytes, const std::function<void()>& body);

}  // namespace oga::grammar
