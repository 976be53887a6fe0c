// Every way a turn can fail, provoked in an engine over the scripted executor and read by a host through the C functions;
// and that an error of tomorrow needs nothing but its throw to reach one.
#include <limits>
#include <new>
#include <stdexcept>

#include "base/check.h"
#include "capi/boundary/scripted_host.h"
#include "native/grammar/grammar_world.h"

namespace oga::capi_test {
namespace {

constexpr int32_t kFirstByte = 32;
constexpr int32_t kOfA = 'A' - kFirstByte;

// Token i is the byte 32 + i: no token has a small letter.
std::shared_ptr<const TokenBytes> Capitals() {
  auto table = std::make_shared<TokenBytes>();
  for (int32_t id = 0; id < testing::EngineHarness::kVocab; ++id) {
    table->bytes += static_cast<char>(kFirstByte + id);
    table->offsets.push_back(static_cast<uint32_t>(table->bytes.size()));
    table->flags.push_back(TokenBytes::kKnown);
  }
  return table;
}

struct FailingTurn {
  const char* what;
  OgaFailureKind kind;
  OgaErrorCode error;
  // Makes the turn that `begin` begins fail; what it sets on the host may act on every turn.
  std::function<void(ScriptedHost& host, OgaTurnOptions* options)> configure;
  std::function<void(ScriptedHost& host, Request& request)> disturb = [](ScriptedHost&, Request&) {};

  bool is_fatal() const { return kind == OgaFailureKind_Execution || kind == OgaFailureKind_Contract; }
};

void Ban(OgaTurnOptions* options, const std::vector<int32_t>& sequence) {
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  const Owned<OgaSequences, OgaDestroySequences> owned(sequences);
  Must(OgaAppendTokenSequence(sequence.data(), sequence.size(), sequences));
  Must(OgaTurnOptionsSetBannedSequences(options, sequences));
}

// At the named point of the second step.
template <typename Exception>
void ThrowAt(ScriptedHost& host, FaultPoint wanted, Exception exception) {
  host.at_point = [wanted, exception, passed = 0](FaultPoint point) mutable {
    if (point == wanted && ++passed == 3) throw exception;
  };
}

std::vector<FailingTurn> FailingTurns() {
  return {
      {"a logit that is no number", OgaFailureKind_BadLogits, OgaErrorCode_RequestUnserviceable,
       [](ScriptedHost& host, OgaTurnOptions*) {
         host.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId> history) {
           if (history.front() == 50) logits[7] = std::numeric_limits<float>::quiet_NaN();
         };
       }},
      {"options that leave no second token", OgaFailureKind_NoAllowedToken, OgaErrorCode_RequestUnserviceable,
       [](ScriptedHost&, OgaTurnOptions* options) {
         Must(OgaTurnOptionsSetAllowedTokens(options, &kOfA, 1));
         Ban(options, {kOfA, kOfA});
       }},
      {"a grammar that leads nowhere", OgaFailureKind_GrammarFailed, OgaErrorCode_RequestUnserviceable,
       [](ScriptedHost&, OgaTurnOptions* options) {
         Must(OgaTurnOptionsSetAllowedTokens(options, &kOfA, 1));
         Must(OgaTurnOptionsSetGuidance(options, "regex", "Az|B"));
       }},
      // BeginTurn refuses what cannot fit, so a turn that outgrew the pool has to be made up.
      {"a turn that outgrew the pool", OgaFailureKind_NeverFits, OgaErrorCode_RequestUnserviceable,
       [](ScriptedHost&, OgaTurnOptions*) {},
       [](ScriptedHost& host, Request& request) {
         const uint32_t true_length = request.view().sequence_tokens;
         request.view().sequence_tokens = 100000;
         host.at_point = [&request, true_length](FaultPoint point) {
           if (point == FaultPoint::kReserveCache) request.view().sequence_tokens = true_length;
         };
       }},
      {"an execution that failed for good", OgaFailureKind_Execution, OgaErrorCode_EngineExecutionFailure,
       [](ScriptedHost& host, OgaTurnOptions*) { host.FailNext(ExecutionStatus::kFatal); }},
      {"an executor that throws", OgaFailureKind_Execution, OgaErrorCode_EngineExecutionFailure,
       [](ScriptedHost& host, OgaTurnOptions*) { host.executor->outcomes.push_back({.throws = true}); }},
      {"a step that nobody can name the failure of", OgaFailureKind_Execution, OgaErrorCode_EngineExecutionFailure,
       [](ScriptedHost& host, OgaTurnOptions*) {
         ThrowAt(host, FaultPoint::kSample, std::runtime_error("nobody can name this"));
       }},
      {"a broken promise in a step", OgaFailureKind_Contract, OgaErrorCode_EngineContractFailure,
       [](ScriptedHost& host, OgaTurnOptions*) { ThrowAt(host, FaultPoint::kSample, ContractError("a planted one")); }},
      {"a broken promise in the executor", OgaFailureKind_Contract, OgaErrorCode_EngineContractFailure,
       [](ScriptedHost& host, OgaTurnOptions*) {
         host.executor->edit_logits = [](std::span<float>, std::span<const TokenId>) {
           throw ContractError("a planted one");
         };
       }},
  };
}

class FailureKinds : public ::testing::Test {
 protected:
  void SetUp() override {
    grammar::test::UseLibrary();
    OgaSetLogBool("warning", false);
  }
  void TearDown() override { OgaSetLogBool("warning", true); }
};

TEST_F(FailureKinds, OfEveryFailureAreToldByValue) {
  for (const FailingTurn& failing : FailingTurns()) {
    SCOPED_TRACE(failing.what);
    ScriptedHost host(Capitals());
    const RequestHandle bad = MakeRequest(host.engine.get());
    const RequestHandle good = MakeRequest(host.engine.get());
    const TurnOptionsHandle options = ExactlyTokens(bad.get(), 4);
    failing.configure(host, options.get());
    BeginTurn(bad.get(), {50, 1}, options.get());
    failing.disturb(host, *capi::AsInternal(bad.get()));
    BeginTurn(good.get(), Prompt(5), ExactlyTokens(good.get(), 4).get());
    Transcripts transcripts = RunToEnd(host.engine.get(), host.buffer.get());

    ASSERT_EQ(transcripts[bad.get()].endings.size(), 1u);
    const EventCopy& end = transcripts[bad.get()].endings[0];
    EXPECT_EQ(end.reason, OgaFinishReason_Failed);
    EXPECT_EQ(end.failure, failing.kind);
    EXPECT_EQ(end.error, failing.error);
    EXPECT_EQ(end.flags & OgaEngineEventFlag_Retryable, 0u);
    ASSERT_EQ(transcripts[good.get()].endings.size(), 1u);
    const EventCopy& other = transcripts[good.get()].endings[0];
    EXPECT_EQ(other.failure, failing.is_fatal() ? failing.kind : OgaFailureKind_None);
    EXPECT_EQ(other.error, failing.is_fatal() ? failing.error : OgaErrorCode_None);
    const OgaStatusCode health = Take(OgaEngineRun(host.engine.get(), host.buffer.get())).code;
    EXPECT_EQ(health, failing.is_fatal() ? OgaStatusCode_EngineUnhealthy : OgaStatusCode_Ok);
  }
}

TEST_F(FailureKinds, OfEventsThatReportNoFailedTurnAreNone) {
  ScriptedHost host;
  const RequestHandle request = MakeRequest(host.engine.get());
  BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 3).get());
  host.FailNext(ExecutionStatus::kRetryable);
  for (bool ended = false; !ended;) {
    for (const EventCopy& event : Step(host.engine.get(), host.buffer.get())) {
      EXPECT_EQ(event.failure, OgaFailureKind_None);
      ended = event.finished();
    }
  }
}

TEST(PlantedError, ReachesTheHostWithItsFieldByItsThrowAlone) {
  const Outcome planted = Take(capi::Guard([] {
    Throw(StatusCode::kUnsupported, Field{"model.of_tomorrow"}, "model.of_tomorrow is ", 7, "; nobody knows why");
  }));
  EXPECT_EQ(planted.code, OgaStatusCode_Unsupported);
  EXPECT_EQ(planted.field, "model.of_tomorrow");
  EXPECT_EQ(planted.message, "model.of_tomorrow is 7; nobody knows why");
}

}  // namespace
}  // namespace oga::capi_test
