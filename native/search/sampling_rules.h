// Which sampling options are legal, alone and together, and what they resolve to.
//
// The setters' checks refuse a value that is illegal whatever the model; Resolve refuses what depends on the model or
// on other options. All throw Error{kInvalidArgument} naming the option, the value found and what is legal.
#pragma once

#include <cstdint>

#include "step/sampling.h"

namespace oga::search {

void CheckTemperature(float value);        // finite, >= 0
void CheckTopK(int32_t value);             // >= 0
void CheckTopP(float value);               // in [0, 1]
void CheckRepetitionPenalty(float value);  // finite, > 0

// A turn samples when do_sample (its own, else the model's) is true and neither temperature is 0 nor top_k is 1. The
// host may ask for greedy with any of the three. What it may not do is ask for something that would then be ignored:
//  - a temperature other than 0 and 1, a top_p inside (0, 1) or a top_k above 1 while do_sample is false, or while the
//    model pins greedy by its own top_k or temperature;
//  - do_sample=true over a model that pins greedy, unless the turn sets the pinning field itself.
// A minimum above the maximum of generated tokens is refused too. Everything else resolves: top_p 0 and 1 are off,
// top_k 0 and anything from `vocab_size` up are off, and a greedy turn has no warper set.
SamplingSettings Resolve(const SamplingOptions& options, const SearchDefaults& defaults, int32_t vocab_size);

}  // namespace oga::search
