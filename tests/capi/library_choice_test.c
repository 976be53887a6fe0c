/* Which ONNX Runtime gets loaded, and what a wrong path says. Every case is a process of its own. */
#define _XOPEN_SOURCE 700

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static char runtime[4096]; /* of the test environment */

static void expect_version(const char* path) {
  const char* version = NULL;
  EXPECT_OK(OgaGetOrtVersion(&version));
  EXPECT(strstr(version, path) != NULL);
  OgaDestroyString(version);
}

static void expect_no_version(OgaStatusCode code, const char* part) {
  const char* version = "before";
  EXPECT_FAILS(OgaGetOrtVersion(&version), code, part);
  EXPECT(version == NULL);
}

static void a_path_from_the_api(void) {
  char* real = realpath(runtime, NULL);
  EXPECT_OK(OgaSetOrtLibrary(runtime));
  expect_version(real);
  EXPECT_FAILS(OgaSetOrtLibrary("other/libonnxruntime.so"), OgaStatusCode_InvalidState, "other/libonnxruntime.so");
  EXPECT_OK(OgaSetOrtLibrary(runtime));
  EXPECT_OK(OgaSetOrtLibrary(NULL));
  expect_version(real);
  free(real);
}

static void a_missing_file_and_then_the_right_one(void) {
  OgaModel* model = NULL;
  EXPECT_OK(OgaSetOrtLibrary("no/such/libonnxruntime.so"));
  expect_no_version(OgaStatusCode_NotFound, "no/such/libonnxruntime.so");
  EXPECT_FAILS(OgaCreateModel(model_folder(), &model), OgaStatusCode_NotFound, "no/such/libonnxruntime.so");
  EXPECT(model == NULL);
  EXPECT_OK(OgaSetOrtLibrary(runtime));
  EXPECT_OK(OgaCreateModel(model_folder(), &model));
  OgaDestroyModel(model);
}

static void the_environment_wins(void) {
  setenv("OGA_ORT_LIBRARY", "elsewhere/libonnxruntime.so", 1);
  EXPECT_OK(OgaSetOrtLibrary(runtime));
  expect_no_version(OgaStatusCode_NotFound, "elsewhere/libonnxruntime.so");
}

static void a_file_that_is_no_library(void) {
  EXPECT_OK(OgaSetOrtLibrary("/proc/self/status"));
  expect_no_version(OgaStatusCode_IoError, "/proc/self/status");
}

static void in_a_process(void (*body)(void)) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    unsetenv("OGA_ORT_LIBRARY");
    body();
    exit(0);
  }
  EXPECT(child > 0 && waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const char* path = getenv("OGA_TEST_ORT_LIBRARY");
  EXPECT(path != NULL && strlen(path) < sizeof(runtime));
  strcpy(runtime, path);
  in_a_process(a_path_from_the_api);
  in_a_process(a_missing_file_and_then_the_right_one);
  in_a_process(the_environment_wins);
  in_a_process(a_file_that_is_no_library);
  return 0;
}
