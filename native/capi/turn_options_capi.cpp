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

OgaResult* OGA_API_CALL OgaTurnOptionsSetSeed(OgaTurnOptions* options, uint64_t seed) {
  return Set(options, [&](TurnOptions& target) { target.SetSeed(seed); });
}

OgaResult* OGA_API_CALL OgaTurnOptionsClearSeed(OgaTurnOptions* options) {
  return Set(options, [](TurnOptions& target) { target.ClearSeed(); });
}
