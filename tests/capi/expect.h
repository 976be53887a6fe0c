/* Checks for the C test programs: a failed one says where and ends the process with status 1. */
#ifndef OGA_TESTS_CAPI_EXPECT_H_
#define OGA_TESTS_CAPI_EXPECT_H_

#include <oga/oga.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define EXPECT_OK(call) expect_ok((call), __FILE__, __LINE__)
#define EXPECT_FAILS(call, code, part) expect_fails((call), (code), (part), __FILE__, __LINE__)

static inline void expect_ok(OgaResult* result, const char* file, int line) {
  if (result != NULL) {
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, OgaResultGetError(result));
    exit(1);
  }
}

static inline void expect_fails(OgaResult* result, OgaStatusCode code, const char* part, const char* file, int line) {
  if (OgaResultGetCode(result) != code || strstr(OgaResultGetError(result), part) == NULL) {
    fprintf(stderr, "%s:%d: status %u, message \"%s\"; wanted status %u and \"%s\"\n", file, line,
            (unsigned)OgaResultGetCode(result), OgaResultGetError(result), (unsigned)code, part);
    exit(1);
  }
  OgaDestroyResult(result);
}

/* The folder of the tiny test model. */
static inline const char* model_folder(void) {
  static char path[4096];
  const char* data = getenv("OGA_TEST_DATA_DIR");
  EXPECT(data != NULL);
  snprintf(path, sizeof(path), "%s/models/separate", data);
  return path;
}

#endif /* OGA_TESTS_CAPI_EXPECT_H_ */
