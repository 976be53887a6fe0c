#include <algorithm>
#include <vector>

#include "capi/boundary.h"

using oga::TurnOptions;
using oga::capi::AsInternal;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

template <typename Change>
OgaResult* Set(OgaTurnOptions* options, const Change& change) {
  return Guard([&] { change(*Require(options, "options").options); });
}

// A count without tokens behind it names the parameter.
std::vector<int32_t> Copy(const int32_t* tokens, size_t count) {
  if (count > 0) Require(tokens, "tokens");
  std::vector<int32_t> copy(count);  // before any arithmetic on the pointer: the count may be absurd
  std::copy_n(tokens, count, copy.begin());
  return copy;
}

std::vector<oga::TokenBias> Copy(const int32_t* tokens, const float* biases, size_t count) {
  if (count > 0) {
    Require(tokens, "tokens");
    Require(biases, "biases");
  }
  std::vector<oga::TokenBias> copy(count);
  for (size_t i = 0; i < count; ++i) copy[i] = {tokens[i], biases[i]};
  return copy;
}

}  // namespace

OgaResult* OGA_API_CALL OgaRequestCreateTurnOptions(OgaRequest* request, OgaTurnOptions** out) {
  return Guard([&] {
    RequireOut<OgaTurnOptions*>(out, nullptr);
    Require(request, "request");
    *out = new OgaTurnOptions{AsInternal(request)->CreateTurnOptions()};
  });
}

void OGA_API_CALL OgaDestroyTurnOptions(OgaTurnOptions* options) { delete options; }

OgaResult* OGA_API_CALL OgaTurnOptionsReset(OgaTurnOptions* options) {
  return Set(options, [](TurnOptions& target) { target.Reset(); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetMaxGeneratedTokens(OgaTurnOptions* options, uint64_t max_generated_tokens) {
  return Set(options, [&](TurnOptions& target) { target.SetMaxGeneratedTokens(max_generated_tokens); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetMinGeneratedTokens(OgaTurnOptions* options, uint64_t min_generated_tokens) {
  return Set(options, [&](TurnOptions& target) { target.SetMinGeneratedTokens(min_generated_tokens); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetDoSample(OgaTurnOptions* options, bool do_sample) {
  return Set(options, [&](TurnOptions& target) { target.SetDoSample(do_sample); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetTemperature(OgaTurnOptions* options, float temperature) {
  return Set(options, [&](TurnOptions& target) { target.SetTemperature(temperature); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetTopK(OgaTurnOptions* options, int32_t top_k) {
  return Set(options, [&](TurnOptions& target) { target.SetTopK(top_k); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetTopP(OgaTurnOptions* options, float top_p) {
  return Set(options, [&](TurnOptions& target) { target.SetTopP(top_p); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetRepetitionPenalty(OgaTurnOptions* options, float repetition_penalty) {
  return Set(options, [&](TurnOptions& target) { target.SetRepetitionPenalty(repetition_penalty); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetNoRepeatNgramSize(OgaTurnOptions* options, int32_t no_repeat_ngram_size) {
  return Set(options, [&](TurnOptions& target) { target.SetNoRepeatNgramSize(no_repeat_ngram_size); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetNumber(OgaTurnOptions* options, const char* name, double value) {
  return Set(options, [&](TurnOptions& target) { target.SetNumber(&Require(name, "name"), value); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetBool(OgaTurnOptions* options, const char* name, bool value) {
  return Set(options, [&](TurnOptions& target) { target.SetBool(&Require(name, "name"), value); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetLogitBias(OgaTurnOptions* options, const int32_t* tokens, const float* biases,
                                                   size_t count) {
  return Set(options, [&](TurnOptions& target) { target.SetLogitBias(Copy(tokens, biases, count)); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetStopTokens(OgaTurnOptions* options, const int32_t* tokens, size_t count) {
  return Set(options, [&](TurnOptions& target) { target.SetStopTokens(Copy(tokens, count)); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetBannedSequences(OgaTurnOptions* options, const OgaSequences* sequences) {
  return Set(options,
             [&](TurnOptions& target) { target.SetBannedSequences(Require(sequences, "sequences").sequences); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetAllowedTokens(OgaTurnOptions* options, const int32_t* tokens, size_t count) {
  return Set(options, [&](TurnOptions& target) { target.SetAllowedTokens(Copy(tokens, count)); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetDryBreakers(OgaTurnOptions* options, const int32_t* tokens, size_t count) {
  return Set(options, [&](TurnOptions& target) { target.SetDryBreakers(Copy(tokens, count)); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetStopStrings(OgaTurnOptions* options, const OgaStringArray* stop_strings) {
  return Set(options,
             [&](TurnOptions& target) { target.SetStopStrings(Require(stop_strings, "stop_strings").strings); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetEmitText(OgaTurnOptions* options, bool emit_text,
                                                  bool include_special_tokens) {
  return Set(options, [&](TurnOptions& target) { target.SetEmitText(emit_text, include_special_tokens); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetGuidance(OgaTurnOptions* options, const char* guidance_type,
                                                  const char* guidance_data) {
  return Set(options, [&](TurnOptions& target) {
    target.SetGuidance(&Require(guidance_type, "guidance_type"), &Require(guidance_data, "guidance_data"));
  });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetDelimitedGuidance(OgaTurnOptions* options, int32_t opening_token,
                                                           int32_t closing_token, const char* grammar) {
  return Set(options, [&](TurnOptions& target) {
    target.SetDelimitedGuidance(opening_token, closing_token, &Require(grammar, "grammar"));
  });
}

OgaResult* OGA_API_CALL OgaTurnOptionsClearGuidance(OgaTurnOptions* options) {
  return Set(options, [](TurnOptions& target) { target.ClearGuidance(); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetLogprobs(OgaTurnOptions* options, int32_t top, bool processed) {
  return Set(options, [&](TurnOptions& target) { target.SetLogprobs(top, processed); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetLogprobTokens(OgaTurnOptions* options, const int32_t* tokens, size_t count) {
  return Set(options, [&](TurnOptions& target) { target.SetLogprobTokens(Copy(tokens, count)); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetPromptLogprobs(OgaTurnOptions* options, int32_t top) {
  return Set(options, [&](TurnOptions& target) { target.SetPromptLogprobs(top); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsSetSeed(OgaTurnOptions* options, uint64_t seed) {
  return Set(options, [&](TurnOptions& target) { target.SetSeed(seed); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsClearSeed(OgaTurnOptions* options) {
  return Set(options, [](TurnOptions& target) { target.ClearSeed(); });
}
