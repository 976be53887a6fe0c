// Every scalar option of a turn, once: OGA_SAMPLING_OPTIONS lists them in the order in which they act.
//
// The table is the only place to add, rename or bound an option. From it come the fields of SearchDefaults,
// SamplingOptions and SamplingSettings (step/sampling.h), the keys of `search` in a model's config, the checks of the
// setters, the resolution of a turn, the setters of TurnOptions and the C API's setters by name. tools/gen_sampling.py
// writes from it what is not C++: Python's keywords, which are the flags of the command line and the settings of the
// chat page too, the fields of the server's requests, and docs/reference/sampling.rst. A test holds those against it.
//
// Columns: Name (of the setter) and name (everywhere else), type, the model's default when its config says nothing,
// a second value that is off besides the first, the value that is off, legal range, the range that a request to the
// server may have, stage, source, what a message and the documentation add to the range, what the option does.
//
// Where the definitions come from:
//   repetition_penalty    Keskar et al., "CTRL" (2019), with logits that are not positive multiplied, as everyone does
//   presence_, frequency_ the OpenAI API: logit - presence * [count > 0] - frequency * count, over the turn's output
//   no_repeat_ngram_size  Paulus et al., "A Deep Reinforced Model for Abstractive Summarization" (2018)
//   dry_*                 p-e-w, "DRY" (text-generation-webui pull request 5677), with the linear search, the range and
//                         the unpenalised breakers of llama.cpp (pull request 9702)
//   top_k                 Fan et al., "Hierarchical Neural Story Generation" (2018)
//   typical_p             Meister et al., "Locally Typical Sampling" (2022)
//   top_p                 Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020)
//   min_p                 Nguyen et al., "Turning Up the Heat: Min-p Sampling" (2024)
//   top_n_sigma           Tang et al., "Top-n-sigma: Not All Logits Are You Need" (2024)
//   xtc_*                 p-e-w, "XTC" (text-generation-webui pull request 6335), without its exemption of some tokens
#pragma once

#include <cstdint>
#include <limits>

namespace oga {

enum class OptionStage : uint8_t {
  kTurn,       // when the turn ends
  kMode,       // whether it samples
  kProcessor,  // changes logits, of greedy turns too
  kWarper,     // shapes the distribution that is drawn from; nothing on a greedy turn
};

// Who may set an option.
enum class OptionSource : uint8_t {
  kTurnOnly,      // a turn
  kModelAndTurn,  // `search` of the model's config too
};

struct OptionRange {
  double min = 0;
  double max = 1;
  bool min_excluded = false;
};

namespace option_range {
inline constexpr double kLargestReal = std::numeric_limits<float>::max();
inline constexpr OptionRange kAnyReal{-kLargestReal, kLargestReal};
inline constexpr OptionRange kNotNegative{0, kLargestReal};
inline constexpr OptionRange kPositive{0, kLargestReal, /*min_excluded=*/true};
inline constexpr OptionRange kOneOrMore{1, kLargestReal};
inline constexpr OptionRange kFraction{0, 1};
inline constexpr OptionRange kBoolean{0, 1};
inline constexpr OptionRange kCount{0, std::numeric_limits<int32_t>::max()};
inline constexpr OptionRange kCountFromOne{1, std::numeric_limits<int32_t>::max()};
// Every integer up to here is a double of its own; the typed setters of these options take all 64 bits.
inline constexpr OptionRange kTokenCount{0, 9007199254740992.0};

// What a request may have where anybody may send one: no narrower than OpenAI's, and nothing that only a typing error
// would ask for.
inline constexpr OptionRange kUpToHundred{0, 100};
inline constexpr OptionRange kPositiveUpToHundred{0, 100, /*min_excluded=*/true};
inline constexpr OptionRange kOneToHundred{1, 100};
inline constexpr OptionRange kUpToThousand{0, 1000};
inline constexpr OptionRange kWithinTwo{-2, 2};
inline constexpr OptionRange kRun{0, 65536};
inline constexpr OptionRange kRunFromOne{1, 65536};
// Empty: no field of requests is made of the row, because they have none or call it otherwise.
inline constexpr OptionRange kNotServed{1, 0};

constexpr bool Holds(const OptionRange& range, const OptionRange& part) {
  const bool empty = part.min > part.max;
  const bool from_above = !range.min_excluded || part.min_excluded || part.min > range.min;
  return empty || (part.min >= range.min && part.max <= range.max && from_above);
}
}  // namespace option_range

}  // namespace oga

// clang-format off
#define OGA_SAMPLING_OPTIONS(X)                                                                                        \
  X(MaxGeneratedTokens, max_generated_tokens, uint64_t, 0, 0, 0, kTokenCount, kNotServed, kTurn, kTurnOnly,            \
    "0 is no limit but the session's",                                                                                 \
    "Ends the turn after this many output tokens.")                                                                    \
  X(MinGeneratedTokens, min_generated_tokens, uint64_t, 0, 0, 0, kTokenCount, kNotServed, kTurn, kTurnOnly,            \
    "0 is off",                                                                                                        \
    "Keeps every token that would end the turn from being chosen before this many output tokens.")                     \
  X(IgnoreEos, ignore_eos, bool, false, false, false, kBoolean, kBoolean, kTurn, kTurnOnly,                            \
    "",                                                                                                                \
    "Treats the model's EOS ids as ordinary tokens; stop tokens still end the turn.")                                  \
  X(DoSample, do_sample, bool, false, false, false, kBoolean, kNotServed, kMode, kModelAndTurn,                        \
    "",                                                                                                                \
    "Draws tokens at random (true) or takes the most likely one (false).")                                             \
  X(RepetitionPenalty, repetition_penalty, float, 1, 1, 1, kPositive, kPositiveUpToHundred,                            \
    kProcessor, kModelAndTurn,                                                                                         \
    "1 is off",                                                                                                        \
    "Makes tokens of the prompt and the output less likely: divides a positive logit, multiplies any other.")          \
  X(PresencePenalty, presence_penalty, float, 0, 0, 0, kAnyReal, kWithinTwo, kProcessor, kModelAndTurn,                \
    "0 is off",                                                                                                        \
    "Is subtracted from the logit of every token that the turn's output holds.")                                       \
  X(FrequencyPenalty, frequency_penalty, float, 0, 0, 0, kAnyReal, kWithinTwo, kProcessor, kModelAndTurn,              \
    "0 is off",                                                                                                        \
    "Is subtracted from a token's logit once for each time the turn's output holds it.")                               \
  X(NoRepeatNgramSize, no_repeat_ngram_size, int32_t, 0, 0, 0, kCount, kRun, kProcessor, kModelAndTurn,                \
    "0 is off",                                                                                                        \
    "Never completes a run of this many tokens that the sequence already holds.")                                      \
  X(DryMultiplier, dry_multiplier, float, 0, 0, 0, kNotNegative, kUpToHundred, kProcessor, kModelAndTurn,              \
    "0 is off",                                                                                                        \
    "Subtracts dry_multiplier * dry_base ^ (length - dry_allowed_length) from a token that would prolong a repetition "\
    "of `length` tokens.")                                                                                             \
  X(DryBase, dry_base, float, 1.75, 1.75, 1.75, kOneOrMore, kOneToHundred, kProcessor, kModelAndTurn,                  \
    "",                                                                                                                \
    "How fast the DRY penalty grows with the length of the repetition.")                                               \
  X(DryAllowedLength, dry_allowed_length, int32_t, 2, 2, 2, kCountFromOne, kRunFromOne, kProcessor, kModelAndTurn,     \
    "",                                                                                                                \
    "The shortest repetition that DRY penalises.")                                                                     \
  X(DryRange, dry_range, int32_t, 0, 0, 0, kCount, kCount, kProcessor, kModelAndTurn,                                  \
    "0 is the whole sequence",                                                                                         \
    "How many of the last tokens DRY searches.")                                                                       \
  X(Temperature, temperature, float, 1, 0, 1, kNotNegative, kUpToHundred, kWarper, kModelAndTurn,                      \
    "0 takes the most likely token",                                                                                   \
    "Divides the logits before drawing.")                                                                              \
  X(TopK, top_k, int32_t, 50, 1, 0, kCount, kCount, kWarper, kModelAndTurn,                                            \
    "0 and anything from the vocabulary size up are off, 1 takes the most likely token",                               \
    "Draws among the k most likely tokens.")                                                                           \
  X(TypicalP, typical_p, float, 1, 0, 1, kFraction, kFraction, kWarper, kModelAndTurn,                                 \
    "both are off",                                                                                                    \
    "Draws among the smallest set of tokens of most typical surprise whose probability reaches p.")                    \
  X(TopP, top_p, float, 1, 0, 1, kFraction, kFraction, kWarper, kModelAndTurn,                                         \
    "both are off",                                                                                                    \
    "Draws among the smallest set of most likely tokens whose probability reaches p.")                                 \
  X(MinP, min_p, float, 0, 0, 0, kFraction, kFraction, kWarper, kModelAndTurn,                                         \
    "0 is off",                                                                                                        \
    "Draws among the tokens at least p times as likely as the most likely one.")                                       \
  X(TopNSigma, top_n_sigma, float, 0, 0, 0, kNotNegative, kUpToThousand, kWarper, kModelAndTurn,                       \
    "0 is off",                                                                                                        \
    "Draws among the tokens whose logit is within n standard deviations of the highest.")                              \
  X(XtcProbability, xtc_probability, float, 0, 0, 0, kFraction, kFraction, kWarper, kModelAndTurn,                     \
    "0 is off",                                                                                                        \
    "How often all tokens of at least xtc_threshold but the least likely of them are excluded.")                       \
  X(XtcThreshold, xtc_threshold, float, 0.1, 0.1, 0.1, kFraction, kFraction, kWarper, kModelAndTurn,                   \
    "above 0.5 nothing is excluded",                                                                                   \
    "The probability from which XTC counts a token among the top choices.")
// clang-format on

#define X(Name, name, type, model_default, also_off, off, range, served, ...) \
  static_assert(oga::option_range::Holds(oga::option_range::range, oga::option_range::served), #name);
OGA_SAMPLING_OPTIONS(X)
#undef X
