#include <span>

#include "capi/boundary.h"

using oga::Request;
using oga::capi::AsInternal;
using oga::capi::AsPublic;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

// Requires the handle and holds the request for the length of the call, whatever happens to the handle meanwhile.
std::shared_ptr<Request> Hold(OgaRequest* request) {
  Require(request, "request");
  return AsInternal(request)->shared_from_this();
}

}  // namespace

OgaResult* OGA_API_CALL OgaCreateRequestOptions(OgaRequestOptions** out) {
  return Guard([&] {
    RequireOut<OgaRequestOptions*>(out, nullptr);
    *out = new OgaRequestOptions;
  });
}

void OGA_API_CALL OgaDestroyRequestOptions(OgaRequestOptions* options) { delete options; }

OgaResult* OGA_API_CALL OgaRequestOptionsSetMaxSessionTokens(OgaRequestOptions* options, uint64_t max_session_tokens) {
  return Guard([&] { Require(options, "options").options.max_session_tokens = max_session_tokens; });
}

OgaResult* OGA_API_CALL OgaRequestOptionsSetPriority(OgaRequestOptions* options, int32_t priority) {
  return Guard([&] { Require(options, "options").options.priority = priority; });
}

OgaResult* OGA_API_CALL OgaRequestOptionsSetCacheSalt(OgaRequestOptions* options, uint64_t cache_salt) {
  return Guard([&] { Require(options, "options").options.cache_salt = cache_salt; });
}

OgaResult* OGA_API_CALL OgaRequestBeginTurn(OgaRequest* request, const OgaTurnOptions* turn_options,
                                            const int32_t* input_ids, uint64_t input_ids_count, uint64_t* out_turn_id) {
  return Guard([&] {
    RequireOut<uint64_t>(out_turn_id, 0, "out_turn_id");
    const std::shared_ptr<Request> held = Hold(request);
    if (input_ids_count > 0) Require(input_ids, "input_ids");
    const std::span input(input_ids, static_cast<size_t>(input_ids_count));
    *out_turn_id = held->BeginTurn(input, turn_options == nullptr ? nullptr : turn_options->options.get());
  });
}

OgaResult* OGA_API_CALL OgaRequestCancelTurn(OgaRequest* request, uint64_t turn_id, bool* out_cancelled) {
  return Guard([&] {
    Require(out_cancelled, "out_cancelled");
    *out_cancelled = Hold(request)->CancelTurn(turn_id);
  });
}

OgaResult* OGA_API_CALL OgaRequestRewindToStartOfTurn(OgaRequest* request, uint64_t turn_id) {
  return Guard([&] { Hold(request)->RewindToStartOfTurn(turn_id); });
}

OgaResult* OGA_API_CALL OgaRequestFork(OgaRequest* request, OgaRequest** out) {
  return Guard([&] {
    RequireOut<OgaRequest*>(out, nullptr);
    const std::shared_ptr<Request> fork = Hold(request)->Fork();
    fork->AdoptHandle();
    *out = AsPublic(fork.get());
  });
}

OgaResult* OGA_API_CALL OgaRequestClose(OgaRequest* request) {
  return Guard([&] { Hold(request)->Close(); });
}

void OGA_API_CALL OgaDestroyRequest(OgaRequest* request) {
  if (request != nullptr) AsInternal(request)->ReleaseHandle();
}
