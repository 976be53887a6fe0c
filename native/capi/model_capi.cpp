#include "capi/boundary.h"

using oga::capi::Guard;
using oga::capi::NewString;
using oga::capi::Require;
using oga::capi::RequireOut;

OgaResult* OGA_API_CALL OgaCreateModel(const char* config_path, OgaModel** out) {
  return Guard([&] {
    RequireOut<OgaModel*>(out, nullptr);
    *out = new OgaModel{oga::LoadOnnxModel(oga::GenaiConfig::FromFolder(&Require(config_path, "config_path")))};
  });
}

OgaResult* OGA_API_CALL OgaCreateModelFromConfig(const OgaConfig* config, OgaModel** out) {
  return Guard([&] {
    RequireOut<OgaModel*>(out, nullptr);
    *out = new OgaModel{oga::LoadOnnxModel(Require(config, "config").config)};
  });
}

void OGA_API_CALL OgaDestroyModel(OgaModel* model) { delete model; }

OgaResult* OGA_API_CALL OgaModelGetType(const OgaModel* model, const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    *out = NewString(Require(model, "model").model->type());
  });
}

OgaResult* OGA_API_CALL OgaModelGetDeviceType(const OgaModel* model, const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    *out = NewString(Require(model, "model").model->device_type());
  });
}
