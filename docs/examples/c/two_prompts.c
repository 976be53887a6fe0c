/* Answers two prompts at the same time, then asks the first of them a follow-up question.
 *
 *   two_prompts MODEL_FOLDER PROMPTS_FILE [MAX_TOKENS]
 *
 * PROMPTS_FILE holds token ids: one prompt per line for the two conversations, and a third line that continues the
 * first one. Each turn generates at most MAX_TOKENS tokens (default 48). README.md shows how to build it.
 */
#include <oga/oga.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Tokens {
  int32_t* ids;
  size_t count;
} Tokens;

typedef struct Conversation {
  const char* name;
  OgaRequest* request;
  Tokens answer; /* of the current turn */
} Conversation;

/* Every call goes through here: says what went wrong, while doing what, and ends the program. */
static void check(OgaResult* result, const char* doing) {
  if (result == NULL) {
    return;
  }
  fprintf(stderr, "two_prompts: %s: %s (status %u)\n", doing, OgaResultGetError(result),
          (unsigned)OgaResultGetCode(result));
  OgaDestroyResult(result);
  exit(EXIT_FAILURE);
}

static void fail(const char* message, const char* detail) {
  fprintf(stderr, "two_prompts: %s %s\n", message, detail);
  exit(EXIT_FAILURE);
}

static void append(Tokens* tokens, int32_t id) {
  int32_t* grown = realloc(tokens->ids, (tokens->count + 1) * sizeof(*grown));
  if (grown == NULL) {
    fail("out of memory", "");
  }
  grown[tokens->count] = id;
  tokens->ids = grown;
  tokens->count += 1;
}

static void clear(Tokens* tokens) {
  free(tokens->ids);
  tokens->ids = NULL;
  tokens->count = 0;
}

/* Reads one line of ids, separated by anything that is not a digit. */
static Tokens read_line(FILE* file, const char* path) {
  Tokens tokens = {NULL, 0};
  int character = fgetc(file);
  while (character != '\n' && character != EOF) {
    int32_t id = 0;
    if (!isdigit(character)) {
      character = fgetc(file);
      continue;
    }
    for (; isdigit(character); character = fgetc(file)) {
      if (id > (INT32_MAX - 9) / 10) {
        fail("a token id is too large in", path);
      }
      id = id * 10 + (character - '0');
    }
    append(&tokens, id);
  }
  if (tokens.count == 0) {
    fail("expected three lines of token ids in", path);
  }
  return tokens;
}

static void begin_turn(Conversation* conversation, const Tokens* input, uint64_t max_tokens) {
  OgaTurnOptions* options = NULL;
  uint64_t turn_id = 0;
  clear(&conversation->answer);
  check(OgaRequestCreateTurnOptions(conversation->request, &options), "creating turn options");
  check(OgaTurnOptionsSetMaxGeneratedTokens(options, max_tokens), "limiting the turn");
  check(OgaRequestBeginTurn(conversation->request, options, input->ids, input->count, &turn_id), "beginning a turn");
  OgaDestroyTurnOptions(options);
}

static const char* reason_name(OgaFinishReason reason) {
  switch (reason) {
    case OgaFinishReason_Eos: return "the model ended it";
    case OgaFinishReason_MaxGeneratedTokens: return "the turn's limit";
    case OgaFinishReason_MaxSessionTokens: return "the session's limit";
    case OgaFinishReason_Cancelled: return "cancelled";
    default: return "failed";
  }
}

static void print_turn(const Conversation* conversation, const OgaEngineEvent* event) {
  const OgaTurnUsage* usage = NULL;
  OgaFinishReason reason = OgaFinishReason_None;
  uint64_t turn_id = 0;
  uint64_t prompt = 0;
  uint64_t generated = 0;
  size_t i;
  check(OgaEngineEventGetTurnId(event, &turn_id), "reading the turn");
  check(OgaEngineEventGetFinishReason(event, &reason), "reading the reason");
  check(OgaEngineEventGetUsage(event, &usage), "reading the usage");
  check(OgaTurnUsageGetPromptTokens(usage, &prompt), "reading the prompt tokens");
  check(OgaTurnUsageGetGeneratedTokens(usage, &generated), "reading the generated tokens");

  printf("%s, turn %llu:", conversation->name, (unsigned long long)turn_id);
  for (i = 0; i < conversation->answer.count; ++i) {
    printf(" %ld", (long)conversation->answer.ids[i]);
  }
  printf("\n  %llu prompt tokens, %llu generated; ended: %s\n", (unsigned long long)prompt,
         (unsigned long long)generated, reason_name(reason));
  if (reason == OgaFinishReason_Failed) {
    fail("a turn failed in", conversation->name);
  }
}

/* An event names its request by the pointer we hold ourselves. */
static void handle_event(const OgaEngineEvent* event, Conversation* conversations, size_t count) {
  const OgaRequest* request = NULL;
  OgaEngineEventFlags flags = OgaEngineEventFlag_None;
  size_t i = 0;
  check(OgaEngineEventGetFlags(event, &flags), "reading the flags");
  check(OgaEngineEventGetRequest(event, &request), "reading the request");
  while (i < count && conversations[i].request != request) {
    ++i;
  }
  if (i == count) {
    fail("the engine cannot go on:", "its key-value cache is too small or its execution failed");
  }
  if (flags & OgaEngineEventFlag_Token) {
    int32_t token = 0;
    check(OgaEngineEventGetToken(event, &token), "reading the token");
    append(&conversations[i].answer, token);
  }
  if (flags & OgaEngineEventFlag_TurnFinished) {
    print_turn(&conversations[i], event);
  }
}

static void run_until_idle(OgaEngine* engine, OgaEngineEventBuffer* buffer, Conversation* conversations, size_t count) {
  bool pending = true;
  for (;;) {
    size_t i;
    check(OgaEngineHasPendingRequests(engine, &pending), "asking for work");
    if (!pending) {
      return;
    }
    check(OgaEngineRun(engine, buffer), "running a step");
    for (i = 0; i < OgaEngineEventBufferGetCount(buffer); ++i) {
      handle_event(OgaEngineEventBufferGet(buffer, i), conversations, count);
    }
  }
}

int main(int argc, char** argv) {
  Conversation conversations[2] = {{"first", NULL, {NULL, 0}}, {"second", NULL, {NULL, 0}}};
  Tokens prompts[3];
  OgaModel* model = NULL;
  OgaEngine* engine = NULL;
  OgaEngineEventBuffer* buffer = NULL;
  uint64_t max_tokens = 48;
  FILE* file;
  size_t i;

  if (argc < 3 || argc > 4) {
    fail("usage: two_prompts MODEL_FOLDER PROMPTS_FILE", "[MAX_TOKENS]");
  }
  if (argc == 4) {
    char* end = NULL;
    max_tokens = strtoull(argv[3], &end, 10);
    if (end == argv[3] || *end != '\0') {
      fail("MAX_TOKENS must be a number, not", argv[3]);
    }
  }
  file = fopen(argv[2], "r");
  if (file == NULL) {
    fail("cannot open", argv[2]);
  }
  for (i = 0; i < 3; ++i) {
    prompts[i] = read_line(file, argv[2]);
  }
  fclose(file);

  check(OgaCreateModel(argv[1], &model), "loading the model");
  check(OgaCreateEngine(model, &engine), "creating the engine");
  OgaDestroyModel(model); /* the engine keeps what it needs */
  check(OgaCreateEngineEventBuffer(engine, 16, &buffer), "creating the event buffer");

  for (i = 0; i < 2; ++i) {
    check(OgaEngineCreateRequest(engine, NULL, &conversations[i].request), "creating a request");
    begin_turn(&conversations[i], &prompts[i], max_tokens);
  }
  run_until_idle(engine, buffer, conversations, 2);

  begin_turn(&conversations[0], &prompts[2], max_tokens);
  run_until_idle(engine, buffer, conversations, 2);

  for (i = 0; i < 2; ++i) {
    OgaDestroyRequest(conversations[i].request);
    clear(&conversations[i].answer);
  }
  for (i = 0; i < 3; ++i) {
    clear(&prompts[i]);
  }
  OgaDestroyEngineEventBuffer(buffer);
  OgaDestroyEngine(engine);
  OgaShutdown();
  return EXIT_SUCCESS;
}
