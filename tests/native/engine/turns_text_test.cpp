// Text and stop strings of turns, through the engine: what events show, how a match ends a turn, and that nothing of it
// depends on neighbours, preemption or steps that are rolled back.
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/error.h"
#include "native/engine/engine_harness.h"

namespace oga::testing {
namespace {

using Strings = std::vector<std::string>;

// Token i writes strings[i]; "<s>" is special. The vocabulary beyond is unknown to the tokenizer.
std::shared_ptr<const TokenBytes> Table(const Strings& strings) {
  auto table = std::make_shared<TokenBytes>();
  for (const std::string& token : strings) {
    table->bytes += token;
    table->offsets.push_back(static_cast<uint32_t>(table->bytes.size()));
    table->flags.push_back(token == "<s>" ? TokenBytes::kKnown | TokenBytes::kSpecial : TokenBytes::kKnown);
  }
  return table;
}

// An engine whose every sequence of `prompt` tokens goes on with tokens 0, 1, 2 ... of `output`, then EOS.
class TextHost : public EngineHarness {
 public:
  static constexpr size_t kPrompt = 3;

  explicit TextHost(const Strings& output, FaultHook hook = {}, EngineLimits limits = SmallLimits())
      : EngineHarness(
            limits,
            [size = output.size()](std::span<const TokenId> history) {
              const size_t next = history.size() - kPrompt;
              return next < size ? static_cast<TokenId>(next) : kEos;
            },
            std::move(hook), {}, Table(output)) {}

  struct Told {
    Strings texts;  // by event
    Event ending;
    size_t tokens = 0;
    std::string text() const {
      std::string all;
      for (const std::string& piece : texts) all += piece;
      return all;
    }
  };

  template <typename Configure>
  std::shared_ptr<Request> Start(const Configure& configure) {
    const std::shared_ptr<Request> request = Create();
    const auto options = request->CreateTurnOptions();
    options->SetEmitText(true, false);
    configure(*options);
    request->BeginTurn(Prompt(kPrompt), options.get());
    return request;
  }

  Told Read(const Request& request) {
    Told told;
    while (engine->HasPendingRequests()) {
      engine->Run(*buffer);
      for (size_t i = 0; i < buffer->size(); ++i) {
        const Event& event = *buffer->at(i);
        if (event.request.get() != &request) continue;
        told.texts.push_back(event.text);
        told.tokens += (event.flags & event_flags::kToken) != 0;
        if (event.flags & event_flags::kTurnFinished) told.ending = event;
      }
    }
    return told;
  }

  template <typename Configure>
  Told Tell(const Configure& configure) {
    const std::shared_ptr<Request> request = Start(configure);
    return Read(*request);
  }
  Told TellWithStops(const Strings& stops) {
    return Tell([&](TurnOptions& options) { options.SetStopStrings(stops); });
  }
};

TEST(TurnText, IsShownInWholeCharactersAndAddsUp) {
  TextHost host({"Hi ", "\xE2", "\x82", "\xAC", "5", "<s>", "\xF0\x9F"});
  const auto told = host.Tell([](TurnOptions&) {});
  EXPECT_EQ(told.texts, (Strings{"Hi ", "", "", "€", "5", "", "", "\xEF\xBF\xBD"}));
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kEos);
}

TEST(TurnText, IsThereOnlyWhenAskedFor) {
  TextHost host({"a", "b"});
  const auto told = host.Tell([](TurnOptions& options) { options.SetEmitText(false, false); });
  EXPECT_EQ(told.text(), "");
  EXPECT_EQ(told.tokens, 2u);
}

TEST(TurnText, WritesSpecialTokensOutWhenAsked) {
  TextHost host({"a", "<s>", "b"});
  EXPECT_EQ(host.Tell([](TurnOptions& options) { options.SetEmitText(true, true); }).text(), "a<s>b");
}

TEST(StopStrings, EndTheTurnAcrossTokenBorders) {
  TextHost host({"Hello", " wor", "ld", "!", "more"});
  const std::shared_ptr<Request> request = host.Start([](TurnOptions& options) {
    options.SetStopStrings({"never", "world"});
  });
  const auto told = host.Read(*request);
  EXPECT_EQ(told.text(), "Hello ");
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kStopString);
  EXPECT_EQ(told.ending.matched_stop_string_index, 1);
  EXPECT_EQ(told.ending.flags, event_flags::kToken | event_flags::kTurnFinished) << "the completing token is emitted";
  EXPECT_EQ(told.ending.token, 2);
  EXPECT_EQ(told.ending.usage.generated_tokens, 3u) << "and counted";
  EXPECT_EQ(request->tokens().size(), TextHost::kPrompt + 3) << "and kept";
}

TEST(StopStrings, ActWithoutTextBeingShown) {
  TextHost host({"a", "b", "c"});
  const auto told = host.Tell([](TurnOptions& options) {
    options.SetEmitText(false, false);
    options.SetStopStrings({"ab"});
  });
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kStopString);
  EXPECT_EQ(told.text(), "");
}

TEST(StopStrings, HoldBackOnlyWhatMayStillMatchAndReleaseItAtTheEnd) {
  TextHost host({"UNO ", "DUE ", "TRE"});
  const auto told = host.TellWithStops({"TRE\nAAAA"});
  EXPECT_EQ(told.texts, (Strings{"UNO ", "DUE ", "", "TRE"}));
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kEos);
  EXPECT_EQ(told.ending.matched_stop_string_index, -1);
}

TEST(StopStrings, HoldBackUntilTheNextTokenClearsIt) {
  TextHost host({"\n", " Al", "ice", "!", "x"});
  EXPECT_EQ(host.TellWithStops({"\n\n", " Alice:"}).texts, (Strings{"", "\n", "", " Alice!", "x", ""}));
}

TEST(StopStrings, WinOverEveryOtherEndingOfTheSameToken) {
  TextHost host({"a", "b", "c"});
  for (const bool stop_token : {false, true}) {
    const auto told = host.Tell([&](TurnOptions& options) {
      options.SetStopStrings({"ab"});
      options.SetMaxGeneratedTokens(2);
      if (stop_token) options.SetStopTokens({1});
    });
    EXPECT_EQ(told.ending.finish_reason, FinishReason::kStopString);
    EXPECT_EQ(told.text(), "");
  }
}

TEST(StopStrings, ALimitReleasesWhatWasHeldBack) {
  TextHost host({"a", "b", "c"});
  const auto told = host.Tell([](TurnOptions& options) {
    options.SetStopStrings({"abc"});
    options.SetMaxGeneratedTokens(2);
  });
  EXPECT_EQ(told.text(), "ab");
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kMaxGeneratedTokens);
}

TEST(StopStrings, AStopTokenIsNoTextAndReleasesWhatWasHeldBack) {
  TextHost host({"a", "b", "c"});
  const auto told = host.Tell([](TurnOptions& options) {
    options.SetStopStrings({"abX"});
    options.SetStopTokens({2});
  });
  EXPECT_EQ(told.text(), "ab");
  EXPECT_EQ(told.tokens, 3u) << "the stop token is emitted all the same";
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kEos);
}

TEST(StopStrings, ACancelReleasesWhatWasHeldBack) {
  TextHost host({"a", "b", "c", "d", "e"});
  const std::shared_ptr<Request> request = host.Start([](TurnOptions& options) {
    options.SetStopStrings({"bcX", "a?"});
  });
  std::string text;
  for (int i = 0; i < 3; ++i) text += host.Step().front().text;
  EXPECT_EQ(text, "a");
  EXPECT_TRUE(request->CancelTurn(1));
  EXPECT_EQ(host.Read(*request).text(), "bc");
}

// The token's event is still undrained: the ending joins it, and so does the text.
TEST(StopStrings, ACancelJoinsTheTextOfAnEventThatWasNotTaken) {
  TextHost host({"a", "b", "c"});
  const std::shared_ptr<Request> first = host.Start([](TurnOptions& options) { options.SetStopStrings({"aX"}); });
  const std::shared_ptr<Request> second = host.Start([](TurnOptions& options) { options.SetStopStrings({"bX"}); });
  const auto one = host.engine->CreateEventBuffer(1);
  host.engine->Run(*one);
  ASSERT_EQ(one->at(0)->request, first);
  EXPECT_TRUE(second->CancelTurn(1));
  host.engine->Run(*one);
  ASSERT_EQ(one->at(0)->request, second);
  EXPECT_EQ(one->at(0)->text, "a");
  EXPECT_EQ(one->at(0)->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(one->at(0)->token, 0);
}

TEST(StopStrings, SeeTheOutputOfTheTurnOnly) {
  TextHost host({"a", "b", "a", "b", "c"});
  const std::shared_ptr<Request> request = host.Start([](TurnOptions& options) { options.SetMaxGeneratedTokens(1); });
  EXPECT_EQ(host.Read(*request).text(), "a");
  const auto options = request->CreateTurnOptions();
  options->SetStopStrings({"ab"});
  options->SetEmitText(true, false);
  // The input "b" would complete "ab" with the output before it.
  request->BeginTurn(std::vector<TokenId>{1}, options.get());
  const auto told = host.Read(*request);
  EXPECT_EQ(told.text(), "");
  EXPECT_EQ(told.ending.usage.generated_tokens, 2u);
  EXPECT_EQ(told.ending.finish_reason, FinishReason::kStopString);
}

TEST(StopStrings, TheNextTurnContinuesFromTheKeptToken) {
  TextHost host({"a", "b", "c", "d", "e"});
  const std::shared_ptr<Request> request = host.Start([](TurnOptions& options) { options.SetStopStrings({"ab"}); });
  host.Read(*request);
  const std::vector<TokenId> input{4};
  request->BeginTurn(input, nullptr);
  EXPECT_EQ(request->tokens().size(), TextHost::kPrompt + 3);
  EXPECT_EQ(request->tokens()[TextHost::kPrompt + 1], 1) << "the completing token is part of the sequence";
  host.Finish();
  request->RewindToStartOfTurn(2);
  EXPECT_EQ(request->tokens().size(), TextHost::kPrompt + 2);
}

TEST(StopStrings, AreNotCarriedToATurnThatDoesNotAskForThem) {
  TextHost host({"a", "b", "a", "b", "a", "b"});
  const std::shared_ptr<Request> request = host.Start([](TurnOptions& options) { options.SetStopStrings({"ab"}); });
  EXPECT_EQ(host.Read(*request).ending.finish_reason, FinishReason::kStopString);
  request->BeginTurn(std::vector<TokenId>{5}, nullptr);
  EXPECT_EQ(host.Read(*request).ending.finish_reason, FinishReason::kEos);
}

// Every step is tried twice, and the first attempt fails at each of its places in turn.
TEST(StopStrings, AStepThatIsRolledBackLeavesNoTraceInTheText) {
  const Strings output{"\xE2", "\x82", "\xAC", "a", "b", "c", "a", "b", "X", "tail"};
  const Strings stops{"abX"};
  const auto undisturbed = TextHost(output).TellWithStops(stops);
  for (const FaultPoint point : {FaultPoint::kReserveCache, FaultPoint::kCheckpoint, FaultPoint::kPack,
                                 FaultPoint::kSample, FaultPoint::kPrepare}) {
    int calls = 0;
    TextHost host(output, [&](FaultPoint at) {
      if (at == point && ++calls % 2 == 1) throw std::bad_alloc();
    });
    const auto told = host.TellWithStops(stops);
    EXPECT_EQ(told.texts, undisturbed.texts);
    EXPECT_EQ(told.ending.matched_stop_string_index, 0);
    EXPECT_GT(calls, 10);
  }
}

TEST(StopStrings, ARequestIsPreemptedAndReadTheSame) {
  const Strings output(20, "ab ");
  const auto configure = [](TurnOptions& options) { options.SetStopStrings({"b ab ab ab ab ab ab ab ab ab ab X"}); };
  const std::string alone = TextHost(output).Tell(configure).text();
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 8;
  TextHost host(output, {}, limits);
  std::vector<std::shared_ptr<Request>> requests;
  std::map<const Request*, std::string> texts;
  for (int i = 0; i < 4; ++i) requests.push_back(host.Start(configure));
  while (host.engine->HasPendingRequests()) {
    for (const Event& event : host.Step()) texts[event.request.get()] += event.text;
  }
  EXPECT_GT(host.engine->GetStatistics().preemptions, 0u);
  for (const auto& request : requests) EXPECT_EQ(texts[request.get()], alone);
}

TEST(StopStrings, ABadListIsRefusedAndTheOldOneStays) {
  TextHost host({"a", "b", "c"});
  const auto request = host.Create();
  const auto options = request->CreateTurnOptions();
  options->SetStopStrings({"ab"});
  const auto kept = options->text().stop_strings;
  for (const Strings& bad : {Strings{""}, Strings(17, "x"), Strings{std::string(16385, 'x')}, Strings{"\xFF"}}) {
    EXPECT_THROW(options->SetStopStrings(bad), Error);
    EXPECT_EQ(options->text().stop_strings, kept);
  }
  options->SetStopStrings({});
  EXPECT_EQ(options->text().stop_strings, nullptr);
}

TEST(StopStrings, NeedATokenizerAndTokensAloneDoNot) {
  EngineHarness host;
  const auto request = host.Create();
  const auto options = request->CreateTurnOptions();
  options->SetStopStrings({"ab"});
  try {
    request->BeginTurn(EngineHarness::Prompt(3), options.get());
    FAIL() << "a turn with stop strings began without a tokenizer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kNotFound);
  }
  EXPECT_EQ(request->state(), RequestState::kCreated);
  EXPECT_EQ(request->BeginTurn(EngineHarness::Prompt(3), nullptr), 1u);
}

}  // namespace
}  // namespace oga::testing
