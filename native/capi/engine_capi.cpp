#include "capi/boundary.h"

using oga::Engine;
using oga::capi::AsPublic;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

// A share for the length of the call: another thread may destroy the engine's handle meanwhile.
std::shared_ptr<Engine> Hold(const OgaEngine* engine) { return Require(engine, "engine").engine; }

}  // namespace

OgaResult* OGA_API_CALL OgaCreateEngine(OgaModel* model, OgaEngine** out) {
  return Guard([&] {
    RequireOut<OgaEngine*>(out, nullptr);
    auto holder = std::make_unique<OgaEngine>();
    holder->engine = Engine::Create(Require(model, "model").model);
    *out = holder.release();
  });
}

void OGA_API_CALL OgaDestroyEngine(OgaEngine* engine) {
  if (engine == nullptr) return;
  engine->engine->Shutdown();
  delete engine;
}

OgaResult* OGA_API_CALL OgaEngineCreateRequest(OgaEngine* engine, const OgaRequestOptions* request_options,
                                               OgaRequest** out) {
  return Guard([&] {
    RequireOut<OgaRequest*>(out, nullptr);
    const auto request =
        Hold(engine)->CreateRequest(request_options == nullptr ? oga::RequestOptions{} : request_options->options);
    request->AdoptHandle();
    *out = AsPublic(request.get());
  });
}

OgaResult* OGA_API_CALL OgaEngineRun(OgaEngine* engine, OgaEngineEventBuffer* buffer) {
  return Guard([&] {
    oga::EventBuffer& events = *Require(buffer, "buffer").buffer;
    Hold(engine)->Run(events);
  });
}

OgaResult* OGA_API_CALL OgaEngineHasPendingRequests(OgaEngine* engine, bool* out) {
  return Guard([&] {
    Require(out, "out");
    *out = Hold(engine)->HasPendingRequests();
  });
}

OgaResult* OGA_API_CALL OgaEngineGetCapabilities(const OgaEngine* engine, OgaEngineCapabilities** out) {
  return Guard([&] {
    RequireOut<OgaEngineCapabilities*>(out, nullptr);
    *out = new OgaEngineCapabilities{Hold(engine)->GetCapabilities()};
  });
}

OgaResult* OGA_API_CALL OgaEnginePrepareGuidance(OgaEngine* engine, const char* guidance_type,
                                                 const char* guidance_data) {
  return Guard([&] {
    Hold(engine)->PrepareGuidance(oga::grammar::MakeGrammarSpec(&Require(guidance_type, "guidance_type"),
                                                                &Require(guidance_data, "guidance_data")));
  });
}

OgaResult* OGA_API_CALL OgaEngineDropPrefixCache(OgaEngine* engine) {
  return Guard([&] { Hold(engine)->DropPrefixCache(); });
}

OgaResult* OGA_API_CALL OgaEngineSetTraceFile(OgaEngine* engine, const char* path) {
  return Guard([&] { Hold(engine)->SetTraceFile(path == nullptr ? "" : path); });
}

OgaResult* OGA_API_CALL OgaEngineGetStatistics(const OgaEngine* engine, OgaEngineStatistics** out) {
  return Guard([&] {
    RequireOut<OgaEngineStatistics*>(out, nullptr);
    *out = new OgaEngineStatistics{Hold(engine)->GetStatistics()};
  });
}
