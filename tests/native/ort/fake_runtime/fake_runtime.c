/* A library that passes for ONNX Runtime up to the point where it must be refused; built once per kind of failure. */
#include <stddef.h>
#include <stdint.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION "1.99.0"
#endif

struct ApiBase {
  const void* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)(void);
};

static const void* GetApi(uint32_t version) {
  (void)version;
  return NULL;
}

static const char* GetVersionString(void) { return FAKE_VERSION; }

const struct ApiBase* OrtGetApiBase(void);

const struct ApiBase* OrtGetApiBase(void) {
  static const struct ApiBase base = {GetApi, GetVersionString};
  return &base;
}
