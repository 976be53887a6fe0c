/* A host of the peer's engine API: two turns of one conversation, streamed, beside a second conversation. Written
 * against the public contract of that API alone (the name of its header, its functions, its constants), so that it
 * shows what such a program sees when it is compiled for oga instead.
 */
#include "ort_genai_c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOKENS 64

typedef struct Conversation {
  OgaRequest* request;
  int32_t sequence[MAX_TOKENS]; /* everything said so far, by either side */
  size_t length;
  size_t tokens_of_turn;
  size_t endings;
  OgaFinishReason reason;
  uint64_t prompt_tokens;
  uint64_t generated_tokens;
} Conversation;

static void check(OgaResult* result) {
  if (result != NULL) {
    fprintf(stderr, "oga: %s\n", OgaResultGetError(result));
    OgaDestroyResult(result);
    exit(1);
  }
}

static void require(bool holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "not as the contract says: %s\n", what);
    exit(1);
  }
}

static OgaModel* load_model(void) {
  char path[4096];
  OgaConfig* config = NULL;
  OgaModel* model = NULL;
  const char* type = NULL;
  const char* folder = getenv("OGA_TEST_DATA_DIR");
  require(folder != NULL, "OGA_TEST_DATA_DIR names the folder with the test models");
  snprintf(path, sizeof(path), "%s/models/separate", folder);
  check(OgaCreateConfig(path, &config));
  check(OgaConfigOverlay(config, "{\"engine\": {\"dynamic_batching\": {\"max_batch_size\": 2}}}"));
  check(OgaCreateModelFromConfig(config, &model));
  OgaDestroyConfig(config);
  check(OgaModelGetType(model, &type));
  require(strcmp(type, "llama") == 0, "the model's type is the one in its config");
  OgaDestroyString(type);
  return model;
}

static void begin_turn(Conversation* conversation, const int32_t* input, size_t count, uint64_t tokens,
                       uint64_t expected_turn) {
  OgaTurnOptions* options = NULL;
  uint64_t turn_id = 0;
  check(OgaRequestCreateTurnOptions(conversation->request, &options));
  check(OgaTurnOptionsSetMaxGeneratedTokens(options, tokens));
  check(OgaTurnOptionsSetMinGeneratedTokens(options, tokens));
  check(OgaTurnOptionsSetDoSample(options, false));
  check(OgaRequestBeginTurn(conversation->request, options, input, count, &turn_id));
  OgaDestroyTurnOptions(options);
  require(turn_id == expected_turn, "turn ids count from 1");
  memcpy(conversation->sequence + conversation->length, input, count * sizeof(*input));
  conversation->length += count;
  conversation->tokens_of_turn = 0;
  conversation->endings = 0;
}

static void take_event(const OgaEngineEvent* event, Conversation* conversations, size_t count) {
  OgaEngineEventFlags flags = OgaEngineEventFlag_None;
  const OgaRequest* request = NULL;
  Conversation* conversation = NULL;
  size_t i;
  check(OgaEngineEventGetFlags(event, &flags));
  check(OgaEngineEventGetRequest(event, &request));
  for (i = 0; i < count; ++i) {
    if (conversations[i].request == request) {
      conversation = &conversations[i];
    }
  }
  require(conversation != NULL, "an event names a request of ours");
  if (flags & OgaEngineEventFlag_Token) {
    check(OgaEngineEventGetToken(event, &conversation->sequence[conversation->length]));
    conversation->length += 1;
    conversation->tokens_of_turn += 1;
  }
  if (flags & OgaEngineEventFlag_TurnFinished) {
    const OgaTurnUsage* usage = NULL;
    check(OgaEngineEventGetFinishReason(event, &conversation->reason));
    check(OgaEngineEventGetUsage(event, &usage));
    check(OgaTurnUsageGetPromptTokens(usage, &conversation->prompt_tokens));
    check(OgaTurnUsageGetGeneratedTokens(usage, &conversation->generated_tokens));
    conversation->endings += 1;
  }
}

static void stream(OgaEngine* engine, OgaEngineEventBuffer* buffer, Conversation* conversations, size_t count) {
  bool pending = false;
  check(OgaEngineHasPendingRequests(engine, &pending));
  while (pending) {
    size_t i;
    check(OgaEngineRun(engine, buffer));
    for (i = 0; i < OgaEngineEventBufferGetCount(buffer); ++i) {
      take_event(OgaEngineEventBufferGet(buffer, i), conversations, count);
    }
    check(OgaEngineHasPendingRequests(engine, &pending));
  }
}

static void require_turn(const Conversation* conversation, uint64_t prompt, uint64_t generated) {
  require(conversation->endings == 1, "a turn ends exactly once");
  require(conversation->reason == OgaFinishReason_MaxGeneratedTokens, "the turn's limit ended it");
  require(conversation->tokens_of_turn == generated, "every generated token was streamed");
  require(conversation->prompt_tokens == prompt, "usage counts the turn's own input");
  require(conversation->generated_tokens == generated, "usage counts the turn's own output");
}

int main(void) {
  static const int32_t first_prompt[] = {3, 10, 17, 24};
  static const int32_t second_prompt[] = {5, 6};
  static const int32_t follow_up[] = {9, 8};
  Conversation conversations[2];
  OgaModel* model = load_model();
  OgaEngine* engine = NULL;
  OgaEngineEventBuffer* buffer = NULL;
  OgaEngineCapabilities* capabilities = NULL;
  OgaRequestOptions* options = NULL;
  OgaResult* refusal = NULL;
  int32_t last_answer[8];
  size_t i;
  memset(conversations, 0, sizeof(conversations));

  check(OgaCreateEngine(model, &engine));
  OgaDestroyModel(model);
  check(OgaEngineGetCapabilities(engine, &capabilities));
  require(OgaEngineCapabilitiesGetConfiguredMaxBatchSize(capabilities) == 2, "the overlay acts");
  OgaDestroyEngineCapabilities(capabilities);
  check(OgaCreateEngineEventBuffer(engine, 1, &buffer));
  check(OgaCreateRequestOptions(&options));
  check(OgaRequestOptionsSetMaxSessionTokens(options, MAX_TOKENS - 1));
  for (i = 0; i < 2; ++i) {
    check(OgaEngineCreateRequest(engine, options, &conversations[i].request));
  }
  OgaDestroyRequestOptions(options);

  begin_turn(&conversations[0], first_prompt, 4, 6, 1);
  begin_turn(&conversations[1], second_prompt, 2, 3, 1);
  stream(engine, buffer, conversations, 2);
  require_turn(&conversations[0], 4, 6);
  require_turn(&conversations[1], 2, 3);

  begin_turn(&conversations[0], follow_up, 2, 8, 2);
  stream(engine, buffer, conversations, 2);
  require_turn(&conversations[0], 2, 8);
  memcpy(last_answer, conversations[0].sequence + 12, sizeof(last_answer));

  /* Rewound and asked again, the same answer; closed, no answer at all. */
  check(OgaRequestRewindToStartOfTurn(conversations[0].request, 2));
  conversations[0].length = 10;
  begin_turn(&conversations[0], follow_up, 2, 8, 3);
  stream(engine, buffer, conversations, 2);
  require(memcmp(last_answer, conversations[0].sequence + 12, sizeof(last_answer)) == 0, "a rewound turn repeats");
  check(OgaRequestClose(conversations[1].request));
  refusal = OgaRequestRewindToStartOfTurn(conversations[1].request, 1);
  require(refusal != NULL && strlen(OgaResultGetError(refusal)) > 0, "a closed request refuses, with a reason");
  OgaDestroyResult(refusal);

  OgaDestroyEngine(engine);
  OgaDestroyEngineEventBuffer(buffer);
  for (i = 0; i < 2; ++i) {
    OgaDestroyRequest(conversations[i].request);
  }
  OgaShutdown();
  return 0;
}
