// What the choice of one token costs, option by option.
#pragma once

namespace oga::testing {

// Prints microseconds per row of 262,144 logits, and of how much a quarter of the vocabulary costs: time is proportional
// to it when the ratio is near 4.
void PrintSamplerCost();

}  // namespace oga::testing
