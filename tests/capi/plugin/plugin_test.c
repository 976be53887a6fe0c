/* liboga as a plug-in of a host that does not link to it: opened, used, closed, three times over.
 *
 *   capi_plugin_test PATH_OF_LIBOGA
 */
#define _XOPEN_SOURCE 700

#include <oga/oga.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
  }
}

/* C has no cast from an object pointer to a function pointer; POSIX promises that the bytes are the same. */
static void find(void* library, const char* name, void* function_pointer) {
  void* symbol = dlsym(library, name);
  require(symbol != NULL, name);
  memcpy(function_pointer, &symbol, sizeof(symbol));
}

static void load_a_model(void* library) {
  OgaResult* (*create_model)(const char*, OgaModel**) = NULL;
  void (*destroy_model)(OgaModel*) = NULL;
  void (*shut_down)(void) = NULL;
  const char* (*get_error)(const OgaResult*) = NULL;
  char path[4096];
  OgaModel* model = NULL;
  OgaResult* result;
  const char* data = getenv("OGA_TEST_DATA_DIR");
  require(data != NULL, "OGA_TEST_DATA_DIR names the folder with the test models");
  snprintf(path, sizeof(path), "%s/models/separate", data);
  find(library, "OgaCreateModel", &create_model);
  find(library, "OgaDestroyModel", &destroy_model);
  find(library, "OgaShutdown", &shut_down);
  find(library, "OgaResultGetError", &get_error);
  result = create_model(path, &model);
  require(result == NULL, get_error(result));
  destroy_model(model);
  shut_down();
}

int main(int argc, char** argv) {
  int round;
  require(argc == 2, "the path of liboga.so is given");
  for (round = 0; round < 3; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    require(library != NULL, "liboga opens");
    load_a_model(library);
    require(dlclose(library) == 0, "liboga closes");
  }
  return 0;
}
