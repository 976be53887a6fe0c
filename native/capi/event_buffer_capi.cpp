#include "capi/boundary.h"

using oga::capi::AsPublic;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

OgaResult* OGA_API_CALL OgaCreateEngineEventBuffer(OgaEngine* engine, size_t capacity, OgaEngineEventBuffer** out) {
  return Guard([&] {
    RequireOut<OgaEngineEventBuffer*>(out, nullptr);
    const std::shared_ptr<oga::Engine> owner = Require(engine, "engine").engine;
    *out = new OgaEngineEventBuffer{owner->CreateEventBuffer(capacity)};
  });
}

void OGA_API_CALL OgaDestroyEngineEventBuffer(OgaEngineEventBuffer* buffer) { delete buffer; }

size_t OGA_API_CALL OgaEngineEventBufferGetCount(const OgaEngineEventBuffer* buffer) {
  return buffer == nullptr ? 0 : buffer->buffer->size();
}

const OgaEngineEvent* OGA_API_CALL OgaEngineEventBufferGet(const OgaEngineEventBuffer* buffer, size_t index) {
  return buffer == nullptr ? nullptr : AsPublic(buffer->buffer->at(index));
}
