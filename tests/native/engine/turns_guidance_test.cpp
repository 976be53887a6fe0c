// Guided turns, through the engine and the real llguidance: what comes out follows the grammar, whatever the model wants,
// who sits beside it, and which steps fail.
#include <gtest/gtest.h>
#include <regex.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "engine/engine.h"
#include "native/engine/scripted_executor.h"
#include "native/grammar/grammar_world.h"

namespace oga::testing {
namespace {

namespace world = grammar::test;
using Tokens = std::vector<TokenId>;

// Different for every history; the EOS ids are what the model wants most.
void WildLogits(std::span<float> logits, std::span<const TokenId> history) {
  uint64_t hash = history.size();
  for (const TokenId token : history) hash = hash * 6364136223846793005ull + static_cast<uint64_t>(token) + 1;
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(((hash ^ (i * 0x9E3779B97F4A7C15ull)) * 0xff51afd7ed558ccdull) >> 52) / 700.0f;
  }
  logits[world::kEos] = 50.0f;
}

struct Told {
  Tokens tokens;
  std::string text;
  size_t logprobs = 0;
  std::vector<Event> endings;
};

class GuidedHost {
 public:
  explicit GuidedHost(uint32_t num_blocks = 256, FaultHook hook = {}) {
    world::UseLibrary();
    EngineParts parts;
    parts.limits.block_size_slots = 4;
    parts.limits.num_blocks = num_blocks;
    parts.limits.max_batch_size = 8;
    parts.limits.max_scheduled_tokens = 64;
    parts.limits.max_resident_requests = 32;
    parts.limits.max_wait_steps = 32;
    parts.limits.context_length_tokens = 256;
    parts.traits.vocab_size = static_cast<int32_t>(world::kVocabulary);
    parts.traits.eos_token_ids = {world::kEos, world::kEndOfTurn};
    parts.tokens = world::Vocabulary();
    parts.encode = [](std::string_view text) {
      Tokens ids;
      for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
      return ids;
    };
    parts.fault_hook = std::move(hook);
    parts.validate = true;
    auto scripted = std::make_unique<ScriptedExecutor>(parts.limits, parts.traits.vocab_size, [](auto) { return 0; });
    scripted->edit_logits = WildLogits;
    executor = scripted.get();
    parts.executor = std::move(scripted);
    engine = Engine::Create(std::move(parts));
    buffer = engine->CreateEventBuffer(64);
  }

  template <typename Configure>
  std::shared_ptr<Request> Start(const Tokens& input, const Configure& configure) {
    auto request = engine->CreateRequest({});
    const auto options = request->CreateTurnOptions();
    options->SetEmitText(true, true);
    options->SetMaxGeneratedTokens(60);
    configure(*options);
    request->BeginTurn(input, options.get());
    return request;
  }

  std::map<const Request*, Told> Read() {
    std::map<const Request*, Told> all;
    while (engine->HasPendingRequests()) {
      engine->Run(*buffer);
      for (size_t i = 0; i < buffer->size(); ++i) {
        const Event& event = *buffer->at(i);
        Told& told = all[event.request.get()];
        told.text += event.text;
        told.logprobs += event.logprobs != nullptr;
        if (event.flags & event_flags::kToken) told.tokens.push_back(event.token);
        if (event.flags & event_flags::kTurnFinished) told.endings.push_back(event);
      }
    }
    return all;
  }

  template <typename Configure>
  Told Tell(const Tokens& input, const Configure& configure) {
    const auto request = Start(input, configure);
    return Read()[request.get()];
  }

  Told TellGuided(std::string_view type, std::string_view text) {
    return Tell({1, 2, 3}, [&](TurnOptions& options) { options.SetGuidance(type, text); });
  }

  ScriptedExecutor* executor = nullptr;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<EventBuffer> buffer;
};

constexpr const char* kForm = "[0-9]{2,4}-(hello|bye) world[a-f]+";

bool HasTheForm(const std::string& text) {
  regex_t compiled;
  EXPECT_EQ(regcomp(&compiled, ("^" + std::string(kForm) + "$").c_str(), REG_EXTENDED | REG_NOSUB), 0);
  const bool matches = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return matches;
}

constexpr const char* kSchema =
    R"({"type":"object","properties":{"name":{"enum":["the","hello"]},"age":{"type":"boolean"}},)"
    R"("required":["name","age"],"additionalProperties":false})";

TEST(Guidance, TheOutputFollowsTheGrammarWhateverTheModelWants) {
  GuidedHost host;
  for (TokenId first = 0; first < 30; ++first) {
    const Told told = host.Tell({first}, [](TurnOptions& options) { options.SetGuidance("regex", kForm); });
    EXPECT_TRUE(HasTheForm(told.text)) << told.text;
    ASSERT_EQ(told.endings.size(), 1u);
    EXPECT_EQ(told.endings[0].finish_reason, FinishReason::kEos);
  }
}

TEST(Guidance, ACompleteGrammarEndsTheTurnWithItsLastToken) {
  GuidedHost host;
  const Told told = host.TellGuided("regex", "ab");
  EXPECT_EQ(told.text, "ab");
  EXPECT_EQ(told.endings[0].flags & event_flags::kToken, event_flags::kToken);
  EXPECT_EQ(told.endings[0].usage.generated_tokens, told.tokens.size());
}

TEST(Guidance, TheGrammarsEndWinsOverAMinimumAndOverTheLimitOfTokens) {
  GuidedHost host;
  const Told minimum = host.Tell({1}, [](TurnOptions& options) {
    options.SetGuidance("regex", "ok?");
    options.SetMinGeneratedTokens(20);
  });
  EXPECT_EQ(minimum.text, "ok") << "where the grammar leaves a choice, the minimum holds EOS back";
  EXPECT_EQ(minimum.endings[0].finish_reason, FinishReason::kEos);
  const Told limit = host.Tell({1}, [](TurnOptions& options) {
    options.SetGuidance("regex", "[a-c][a-c][a-c]");
    options.SetMaxGeneratedTokens(3);
  });
  EXPECT_EQ(limit.endings[0].finish_reason, FinishReason::kEos);
}

TEST(Guidance, AGrammarOfNoTextEndsAtOnce) {
  GuidedHost host;
  const Told told = host.Tell({1}, [](TurnOptions& options) {
    options.SetGuidance("lark", "start: \"\"");
    options.SetMinGeneratedTokens(5);
  });
  EXPECT_EQ(told.tokens.size(), 0u);
  EXPECT_EQ(told.endings[0].finish_reason, FinishReason::kEos);
}

TEST(Guidance, EveryTurnStartsAtTheGrammarsStartAndThePromptIsNoPartOfIt) {
  GuidedHost host;
  const auto request = host.Start({'a', 'b'}, [](TurnOptions& options) { options.SetGuidance("regex", "abc"); });
  EXPECT_EQ(host.Read()[request.get()].text, "abc");
  const auto options = request->CreateTurnOptions();
  options->SetGuidance("regex", "abc");
  options->SetEmitText(true, false);
  request->BeginTurn(Tokens{'a'}, options.get());
  EXPECT_EQ(host.Read()[request.get()].text, "abc");
}

TEST(Guidance, ForcedTokensGoThroughTheModelTogether) {
  GuidedHost host;
  const std::string fixed(40, 'x');
  const size_t before = host.executor->executions;
  const Told told = host.TellGuided("regex", "[ab]" + fixed + "[cd]");
  EXPECT_EQ(told.text.substr(1, 40), fixed);
  EXPECT_EQ(told.tokens.size(), 42u);
  EXPECT_EQ(told.endings[0].usage.generated_tokens, 42u);
  EXPECT_EQ(host.executor->executions - before, 2u) << "the prompt, then everything that is forced and the last token";
}

TEST(Guidance, ForcedTokensObeyLimitsAndStopStrings) {
  GuidedHost host;
  const std::string form = "[ab]" + std::string(40, 'x') + "[cd]";
  const Told limited = host.Tell({1}, [&](TurnOptions& options) {
    options.SetGuidance("regex", form);
    options.SetMaxGeneratedTokens(11);
  });
  EXPECT_EQ(limited.tokens.size(), 11u);
  EXPECT_EQ(limited.endings[0].finish_reason, FinishReason::kMaxGeneratedTokens);
  const Told stopped = host.Tell({1}, [&](TurnOptions& options) {
    options.SetGuidance("regex", form);
    options.SetStopStrings({"xxxx"});
  });
  EXPECT_EQ(stopped.text.size(), 1u);
  EXPECT_EQ(stopped.tokens.size(), 5u);
  EXPECT_EQ(stopped.endings[0].finish_reason, FinishReason::kStopString);
  const Told held = host.Tell({1}, [&](TurnOptions& options) {
    options.SetGuidance("regex", "[ab]xyz");
    options.SetStopStrings({"xyzw"});
  });
  EXPECT_EQ(held.text.substr(1), "xyz") << "what was held back comes with the ending";
  EXPECT_EQ(held.endings.size(), 1u);
}

TEST(Guidance, TheTokensAreTheSameWhenLogprobsAreWanted) {
  GuidedHost host;
  for (const char* schema : {kSchema, R"({"type":"array","items":{"type":"boolean"},"maxItems":3})"}) {
    const Told plain = host.TellGuided("json_schema", schema);
    const Told told = host.Tell({1, 2, 3}, [&](TurnOptions& options) {
      options.SetGuidance("json_schema", schema);
      options.SetLogprobs(2, false);
    });
    EXPECT_EQ(told.tokens, plain.tokens);
    EXPECT_EQ(told.logprobs, told.tokens.size());
  }
}

TEST(Guidance, WhatATurnSaysDoesNotDependOnItsNeighboursOrOnTheCache) {
  const std::pair<const char*, const char*> guides[] = {{"regex", kForm},
                                                        {"json_schema", kSchema},
                                                        {"json_object", ""},
                                                        {"lark", "start: \"the\" (\" world\" | \"12\")+"}};
  std::vector<Tokens> alone;
  for (const auto& [type, text] : guides) alone.push_back(GuidedHost().TellGuided(type, text).tokens);
  for (const uint32_t num_blocks : {256u, 24u}) {
    GuidedHost host(num_blocks);
    std::vector<std::shared_ptr<Request>> requests;
    for (int i = 0; i < 12; ++i) {
      const auto& [type, text] = guides[i % 4];
      requests.push_back(host.Start({1, 2, 3}, [&](TurnOptions& options) {
        if (i < 8) options.SetGuidance(type, text);
      }));
    }
    auto all = host.Read();
    for (int i = 0; i < 8; ++i) EXPECT_EQ(all[requests[i].get()].tokens, alone[i % 4]);
    if (num_blocks == 24u) {
      EXPECT_GT(host.engine->GetStatistics().preemptions, 0u);
    }
  }
}

TEST(Guidance, AStepThatIsRolledBackLeavesTheGrammarWhereItWas) {
  const Tokens undisturbed = GuidedHost().TellGuided("json_schema", kSchema).tokens;
  for (const FaultPoint point :
       {FaultPoint::kReserveCache, FaultPoint::kPack, FaultPoint::kSample, FaultPoint::kPrepare}) {
    int calls = 0;
    GuidedHost host(256, [&](FaultPoint at) {
      if (at == point && ++calls % 2 == 1) throw std::bad_alloc();
    });
    const Told told = host.TellGuided("json_schema", kSchema);
    EXPECT_EQ(told.tokens, undisturbed);
    EXPECT_EQ(told.endings.size(), 1u);
  }
}

TEST(Guidance, StopTokensWaitForTheGrammarAndThenStop) {
  GuidedHost host;
  const auto told = host.Tell({1}, [](TurnOptions& options) {
    options.SetGuidance("regex", "[0-9]{3}x*");
    options.SetStopTokens({world::kClose});
    options.SetLogitBias({{world::kClose, 90.0f}});
  });
  EXPECT_EQ(told.tokens.size(), 4u);
  EXPECT_EQ(told.tokens.back(), world::kClose);
  EXPECT_EQ(told.text.size(), 3u);
  EXPECT_EQ(told.endings[0].finish_reason, FinishReason::kEos);
}

TEST(Guidance, BetweenTwoTokensOnly) {
  GuidedHost host;
  const auto told = host.Tell({1}, [](TurnOptions& options) {
    options.SetDelimitedGuidance(world::kOpen, world::kClose, "start: \"12\" \"a\"");
    options.SetLogitBias({{world::kOpen, 60.0f}});
    options.SetMaxGeneratedTokens(12);
  });
  const std::string call = "<call>12a</call>";
  EXPECT_EQ(told.text.substr(0, 2 * call.size()), call + call);
}

TEST(Guidance, AnUnsatisfiableMixEndsItsTurnAndNoOther) {
  GuidedHost host;
  const auto bad = host.Start({1}, [](TurnOptions& options) {
    options.SetGuidance("regex", "ok");
    options.SetAllowedTokens({'z', 'y'});
  });
  const auto good = host.Start({1}, [](TurnOptions& options) { options.SetGuidance("regex", "ok"); });
  auto all = host.Read();
  EXPECT_EQ(all[bad.get()].endings[0].finish_reason, FinishReason::kFailed);
  EXPECT_EQ(all[bad.get()].endings[0].error_code, EventErrorCode::kRequestUnserviceable);
  EXPECT_EQ(all[bad.get()].endings[0].failure, FailureKind::kNoAllowedToken) << "the grammar itself could go on";
  EXPECT_EQ(all[good.get()].text, "ok");
}

TEST(Guidance, WhatIsWrongIsRefusedAndNothingChanges) {
  GuidedHost host;
  const auto request = host.engine->CreateRequest({});
  const auto options = request->CreateTurnOptions();
  EXPECT_THROW(options->SetGuidance("xml", "x"), Error);
  EXPECT_THROW(options->SetGuidance("regex", ""), Error);
  EXPECT_THROW(options->SetGuidance("regex", "\xff"), Error);
  EXPECT_THROW(options->SetDelimitedGuidance(5, 5, "start: \"a\""), Error);
  EXPECT_FALSE(options->guidance());
  options->SetGuidance("regex", "[");
  EXPECT_THROW(options->SetDelimitedGuidance(5, 6, "start: \"a\""), Error) << "guidance of the whole turn is set";
  EXPECT_THROW(request->BeginTurn(Tokens{1}, options.get()), Error);
  EXPECT_EQ(request->state(), RequestState::kCreated);
  options->ClearGuidance();
  options->SetDelimitedGuidance(5, 6, "start: \"a\"");
  EXPECT_THROW(options->SetGuidance("regex", "a"), Error);
  options->ClearGuidance();
  options->SetGuidance("regex", "a");
  options->SetIgnoreEos(true);
  EXPECT_THROW(request->BeginTurn(Tokens{1}, options.get()), Error);
  options->Reset();
  EXPECT_EQ(request->BeginTurn(Tokens{1}, options.get()), 1u);
}

TEST(Guidance, OfAClosedOrCancelledTurnLeavesNothingBehind) {
  GuidedHost host;
  const auto cancelled = host.Start({1}, [](TurnOptions& options) { options.SetGuidance("json_object", ""); });
  const auto closed = host.Start({1}, [](TurnOptions& options) { options.SetGuidance("json_object", ""); });
  const auto other = host.Start({1}, [](TurnOptions& options) { options.SetGuidance("regex", kForm); });
  host.engine->Run(*host.buffer);
  cancelled->CancelTurn(1);
  closed->Close();
  auto all = host.Read();
  EXPECT_EQ(all[cancelled.get()].endings[0].finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(all.find(closed.get()) == all.end());
  EXPECT_TRUE(HasTheForm(GuidedHost().TellGuided("regex", kForm).text));
}

}  // namespace
}  // namespace oga::testing
