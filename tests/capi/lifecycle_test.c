/* Shutting down, starting again, and leaving without a goodbye. Every case is a process of its own. */
#define _POSIX_C_SOURCE 200809L

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

#define TOKENS 6

typedef struct Session {
  OgaModel* model;
  OgaEngine* engine;
  OgaEngineEventBuffer* buffer;
  OgaRequest* request;
} Session;

/* Reachable until the very end, so that leaving them alive is no leak. */
static Session live;

static void open_session(Session* session) {
  EXPECT_OK(OgaCreateModel(model_folder(), &session->model));
  EXPECT_OK(OgaCreateEngine(session->model, &session->engine));
  EXPECT_OK(OgaCreateEngineEventBuffer(session->engine, 4, &session->buffer));
  EXPECT_OK(OgaEngineCreateRequest(session->engine, NULL, &session->request));
}

static void begin(Session* session, uint64_t tokens) {
  static const int32_t prompt[] = {3, 10, 17};
  OgaTurnOptions* options = NULL;
  uint64_t turn_id = 0;
  EXPECT_OK(OgaRequestCreateTurnOptions(session->request, &options));
  EXPECT_OK(OgaTurnOptionsSetMinGeneratedTokens(options, tokens));
  EXPECT_OK(OgaTurnOptionsSetMaxGeneratedTokens(options, tokens));
  EXPECT_OK(OgaRequestBeginTurn(session->request, options, prompt, 3, &turn_id));
  OgaDestroyTurnOptions(options);
}

static void generate(Session* session, int32_t* tokens) {
  size_t i;
  begin(session, TOKENS);
  for (i = 0; i < TOKENS; ++i) {
    EXPECT_OK(OgaEngineRun(session->engine, session->buffer));
    EXPECT(OgaEngineEventBufferGetCount(session->buffer) == 1);
    EXPECT_OK(OgaEngineEventGetToken(OgaEngineEventBufferGet(session->buffer, 0), &tokens[i]));
  }
}

static void close_session(Session* session) {
  OgaDestroyRequest(session->request);
  OgaDestroyEngineEventBuffer(session->buffer);
  OgaDestroyEngine(session->engine);
  OgaDestroyModel(session->model);
}

static int shutdown_and_again(void) {
  int32_t first[TOKENS];
  int32_t again[TOKENS];
  int round;
  for (round = 0; round < 3; ++round) {
    Session session = {NULL, NULL, NULL, NULL};
    open_session(&session);
    generate(&session, round == 0 ? first : again);
    EXPECT(round == 0 || memcmp(first, again, sizeof(first)) == 0);
    close_session(&session);
    OgaShutdown();
  }
  return 0;
}

static int shutdown_before_use_and_twice(void) {
  OgaShutdown();
  OgaShutdown();
  EXPECT(shutdown_and_again() == 0);
  OgaShutdown();
  return 0;
}

static int no_shutdown(void) {
  Session session = {NULL, NULL, NULL, NULL};
  int32_t tokens[TOKENS];
  open_session(&session);
  generate(&session, tokens);
  close_session(&session);
  return 5;
}

static int exit_with_live_handles(void) {
  open_session(&live);
  begin(&live, 40);
  EXPECT_OK(OgaEngineRun(live.engine, live.buffer));
  exit(7);
}

static int leave_at_once_with_live_handles(void) {
  open_session(&live);
  begin(&live, 40);
  EXPECT_OK(OgaEngineRun(live.engine, live.buffer));
  _exit(8);
}

static int shutdown_then_exit_with_live_handles(void) {
  open_session(&live);
  OgaShutdown();
  begin(&live, 40);
  EXPECT_OK(OgaEngineRun(live.engine, live.buffer));
  return 9;
}

/* A child that inherits a live engine must be told so instead of hanging on threads that only the parent has. */
static int fork_with_a_live_engine(void) {
  int32_t tokens[TOKENS];
  int status = -1;
  pid_t child;
  open_session(&live);
  begin(&live, 40);
  EXPECT_OK(OgaEngineRun(live.engine, live.buffer));
  child = fork();
  if (child == 0) {
    alarm(20);
    EXPECT_FAILS(OgaEngineRun(live.engine, live.buffer), OgaStatusCode_InvalidState, "process");
    close_session(&live);
    _exit(0);
  }
  EXPECT(child > 0 && waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_OK(OgaRequestClose(live.request));
  OgaDestroyRequest(live.request);
  EXPECT_OK(OgaEngineCreateRequest(live.engine, NULL, &live.request));
  generate(&live, tokens);
  close_session(&live);
  return 0;
}

/* Runs `body` in a child and expects its process to end with `expected`. */
static void in_a_process(const char* name, int (*body)(void), int expected) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    exit(body());
  }
  EXPECT(child > 0 && waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) {
    fprintf(stderr, "%s: wait status 0x%x, wanted exit status %d\n", name, (unsigned)status, expected);
    exit(1);
  }
}

int main(void) {
  in_a_process("shutdown and again", shutdown_and_again, 0);
  in_a_process("shutdown before use and twice", shutdown_before_use_and_twice, 0);
  in_a_process("no shutdown", no_shutdown, 5);
  in_a_process("exit with live handles", exit_with_live_handles, 7);
  in_a_process("_exit with live handles", leave_at_once_with_live_handles, 8);
  in_a_process("shutdown, then exit with live handles", shutdown_then_exit_with_live_handles, 9);
  in_a_process("fork with a live engine", fork_with_a_live_engine, 0);
  return 0;
}
