/* A library that passes for onnxruntime-extensions: what it renders is what it was given, so that a test sees it. Built
 * once per way of being unusable too. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef FAKE_API_VERSION
#define FAKE_API_VERSION 1
#endif

struct Object {
  char text[4096];
};
struct Blob {
  const char* parts[5];
  size_t lengths[5];
};

static struct Object g_tokenizer, g_result, g_tensor;
static int g_live_objects = 0;

static int Give(struct Object* object, struct Object** out) {
  ++g_live_objects;
  *out = object;
  return 0;
}

int OrtxGetAPIVersion(void);
int OrtxGetAPIVersion(void) { return FAKE_API_VERSION; }

const char* OrtxGetLastErrorMessage(void);
const char* OrtxGetLastErrorMessage(void) { return "roles must alternate"; }

int OrtxDispose(struct Object** object);
int OrtxDispose(struct Object** object) {
  --g_live_objects;
  *object = NULL;
  return 0;
}

int OrtxUpdateTokenizerOptions(struct Object* object, const char* keys[], const char* values[], size_t count);
int OrtxUpdateTokenizerOptions(struct Object* object, const char* keys[], const char* values[], size_t count) {
  return object == NULL || keys == NULL || values == NULL || count == 0;
}

int OrtxCreateTokenizerFromBlob(struct Object** out, const struct Blob* blob);
int OrtxCreateTokenizerFromBlob(struct Object** out, const struct Blob* blob) {
  if (blob->lengths[0] != strlen(blob->parts[0]) || strstr(blob->parts[1], "\"BPE\"") == NULL) return 1;
  snprintf(g_tokenizer.text, sizeof(g_tokenizer.text), "%s", blob->parts[0]);
  return Give(&g_tokenizer, out);
}

#ifndef FAKE_WITHOUT_TEMPLATES
int OrtxApplyChatTemplate(const struct Object* tokenizer, const char* chat_template, const char* messages,
                          const char* tools, struct Object** out, bool add_generation_prompt, bool tokenize);
int OrtxApplyChatTemplate(const struct Object* tokenizer, const char* chat_template, const char* messages,
                          const char* tools, struct Object** out, bool add_generation_prompt, bool tokenize) {
  if (strcmp(chat_template, "refuse") == 0) return 1;
  snprintf(g_result.text, sizeof(g_result.text), "%.600s|%.600s|%.600s|%s|%d|%d|%d", tokenizer->text, chat_template,
           messages, tools == NULL ? "no tools" : tools, add_generation_prompt, tokenize, g_live_objects);
  return Give(&g_result, out);
}
#endif

int OrtxTensorResultGetAt(const struct Object* result, size_t index, struct Object** tensor);
int OrtxTensorResultGetAt(const struct Object* result, size_t index, struct Object** tensor) {
  g_tensor = *result;
  return index != 0 ? 1 : Give(&g_tensor, tensor);
}

int OrtxGetTensorData(const struct Object* tensor, const void** data, const int64_t** shape, size_t* dimensions);
int OrtxGetTensorData(const struct Object* tensor, const void** data, const int64_t** shape, size_t* dimensions) {
  *data = tensor->text;
  return shape != NULL || dimensions != NULL;
}
