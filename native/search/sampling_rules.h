// Which sampling options are legal, alone and together, and what they resolve to.
//
// The checks for setters refuse what is illegal whatever the model; Resolve refuses what depends on the model or on
// other options. All throw Error{kInvalidArgument} naming the option, the value found and what is legal.
#pragma once

#include <string_view>

#include "step/sampling.h"

namespace oga::search {

// The row of the table; throws naming the nearest option when there is none of that name.
const SamplingOption& FindOption(std::string_view name);

// Refuses a number that the option's range or type excludes; an option of true and false has no number.
void CheckNumber(const SamplingOption& option, double value);

// A turn samples when do_sample (its own, else the model's) is true and neither temperature is 0 nor top_k is 1. The
// host may ask for greedy with any of the three. What it may not do is ask for something that would then be ignored:
//  - a warper that is not off while do_sample is false, or while the model pins greedy by its own top_k or temperature;
//  - do_sample=true over a model that pins greedy, unless the turn sets the pinning field itself.
// Refused too: a minimum above the maximum of generated tokens, an id beyond the vocabulary, and bans that leave no
// token to begin with. Everything else resolves: values that are off take one form, and a greedy turn has no warper
// set.
SamplingSettings Resolve(const SamplingOptions& options, const SearchDefaults& defaults, const Vocabulary& vocabulary);

}  // namespace oga::search
