// The heap allocations of this test program so far; sampler_allocation_test.cpp replaces operator new to count them.
#pragma once

namespace oga::search::testing {

int CountAllocations();

}  // namespace oga::search::testing
