#include "capi/boundary.h"

using oga::GenaiConfig;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

OgaResult* OGA_API_CALL OgaCreateConfig(const char* config_path, OgaConfig** out) {
  return Guard([&] {
    RequireOut<OgaConfig*>(out, nullptr);
    *out = new OgaConfig{GenaiConfig::FromFolder(&Require(config_path, "config_path"))};
  });
}

void OGA_API_CALL OgaDestroyConfig(OgaConfig* config) { delete config; }

OgaResult* OGA_API_CALL OgaConfigOverlay(OgaConfig* config, const char* json) {
  return Guard([&] {
    GenaiConfig& current = Require(config, "config").config;
    current = current.WithOverlay(&Require(json, "json"));
  });
}

OgaResult* OGA_API_CALL OgaConfigClearProviders(OgaConfig* config) {
  return Guard([&] {
    GenaiConfig& current = Require(config, "config").config;
    current = current.WithoutProviders();
  });
}

OgaResult* OGA_API_CALL OgaConfigAppendProvider(OgaConfig* config, const char* provider) {
  return Guard([&] {
    GenaiConfig& current = Require(config, "config").config;
    current = current.WithProvider(&Require(provider, "provider"));
  });
}
