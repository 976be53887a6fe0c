// Overlays and providers: what a host may change between reading a config and loading the model.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::Fingerprint;
using testing::InfoLog;
using testing::SmallConfig;

TEST(GenaiConfigOverlay, MergesObjectsKeyByKeyAndReplacesTheRest) {
  const GenaiConfig config = SmallConfig()
                                 .WithOverlay(R"({"model": {"eos_token_id": [3, 4]}, "search": {"top_k": 7}})")
                                 .WithOverlay(R"({"model": {"eos_token_id": [5]}, "search": {"top_p": 0.5}})");
  EXPECT_EQ(config.eos_token_ids(), (std::vector<TokenId>{5})) << "a list replaces a list";
  EXPECT_EQ(config.search().top_k, 7);
  EXPECT_EQ(config.search().top_p, 0.5f);
  EXPECT_EQ(config.search().max_length_tokens, 100u) << "a key that the overlay does not name stays";
  EXPECT_EQ(config.decoder().num_hidden_layers, 2);
}

TEST(GenaiConfigOverlay, TakesAValueBackWithNull) {
  const GenaiConfig changed = SmallConfig().WithOverlay(
      R"({"search": {"top_k": 7, "max_length": 50}, "engine": {"dynamic_batching": {"num_blocks": 9}}})");
  const GenaiConfig back = changed.WithOverlay(
      R"({"search": {"top_k": null, "max_length": null}, "engine": {"dynamic_batching": {"num_blocks": null}}})");
  EXPECT_EQ(back.search().top_k, 50);
  EXPECT_EQ(back.search().max_length_tokens, 0u);
  EXPECT_EQ(back.dynamic_batching().num_blocks, std::nullopt);
}

TEST(GenaiConfigOverlay, AnEmptyObjectChangesNothing) {
  const GenaiConfig config = SmallConfig();
  EXPECT_EQ(Fingerprint(config.WithOverlay("{}")), Fingerprint(config));
}

TEST(GenaiConfigOverlay, LeavesTheConfigItStartsFromAsItWas) {
  const GenaiConfig config = SmallConfig();
  const std::string before = Fingerprint(config);
  const GenaiConfig changed = config.WithOverlay(R"({"model": {"type": "other"}})");
  EXPECT_EQ(changed.model_type(), "other");
  EXPECT_EQ(Fingerprint(config), before);
}

TEST(GenaiConfigOverlay, IsRefusedWholeWhenHalfOfItIsWrong) {
  const GenaiConfig config = SmallConfig();
  const std::string before = Fingerprint(config);
  const char* const overlays[] = {
      R"({"search": {"top_k": 7, "top_p": 2}})",
      R"({"search": {"top_k": 7}, "engine": {"dynamic_batching": {"num_blocks": 4, "typo": 1}}})",
      R"({"search": {"top_k": 7},})",
      "",
      "not json",
      R"({"search": {"top_k": 7, "top_k": 8}})",
      R"(["search"])",
  };
  for (const char* overlay : overlays) {
    const Error error = ErrorOf([&] { config.WithOverlay(overlay); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << overlay;
    EXPECT_CONTAINS(error.message(), "the overlay is refused and the config stays as it was: overlay");
    EXPECT_EQ(Fingerprint(config), before) << overlay;
  }
  // And it is still usable.
  EXPECT_EQ(config.WithOverlay(R"({"search": {"top_k": 8}})").search().top_k, 8);
}

TEST(GenaiConfigOverlay, NamesTheFileWhenTheFilesValueNoLongerFits) {
  const Error error = ErrorOf([] { SmallConfig().WithOverlay(R"({"model": {"context_length": 64}})"); });
  EXPECT_EQ(error.message(),
            "the overlay is refused and the config stays as it was: /models/small/genai_config.json, line 19: "
            "search.max_length is 100; it must be at most model.context_length, which is 64");
}

TEST(GenaiConfigProviders, AreUsableWhenThereIsNoneOrTheCpu) {
  EXPECT_NO_THROW(SmallConfig().CheckProvidersUsable());
  for (const char* name : {"cpu", "CPU", "CPUExecutionProvider"}) {
    const GenaiConfig config = SmallConfig().WithOverlay(
        Message(R"({"model": {"decoder": {"session_options": {"provider_options": [{")", name, R"(": {}}]}}}})"));
    EXPECT_NO_THROW(config.CheckProvidersUsable()) << name;
    EXPECT_NO_THROW(config.CheckRunnable()) << name;
  }
}

TEST(GenaiConfigProviders, RefuseToRunWithOneThatTheBuildLacksAndNameTheWayOut) {
  const GenaiConfig config = SmallConfig().WithOverlay(
      R"({"model": {"decoder": {"session_options": {"provider_options": [{"cpu": {}}, {"cuda": {}}]}}}})");
  for (const Error& error :
       {ErrorOf([&] { config.CheckProvidersUsable(); }), ErrorOf([&] { config.CheckRunnable(); })}) {
    EXPECT_EQ(error.code(), StatusCode::kUnsupported);
    EXPECT_CONTAINS(error.message(), "overlay, line 1: model.decoder.session_options.provider_options");
    EXPECT_CONTAINS(error.message(), "'cuda'");
    EXPECT_CONTAINS(error.message(), "OgaConfigClearProviders");
    EXPECT_CONTAINS(error.message(), "config.clear_providers()");
  }
  EXPECT_NO_THROW(config.WithoutProviders().CheckRunnable());
}

TEST(GenaiConfigProviders, CanBeClearedAndAppended) {
  const GenaiConfig config = SmallConfig().WithOverlay(
      R"({"model": {"decoder": {"session_options": {"log_id": "x", "intra_op_num_threads": 2,
                                                    "provider_options": [{"cuda": {}}]}}}})");
  const GenaiConfig cleared = config.WithoutProviders();
  EXPECT_TRUE(cleared.providers().empty());
  EXPECT_EQ(cleared.decoder().session.intra_op_num_threads, 2);
  EXPECT_EQ(config.providers().size(), 1u);
  EXPECT_EQ(cleared.WithProvider("cpu").providers(), (std::vector<std::string>{"cpu"}));
  EXPECT_EQ(config.WithProvider("cpu").providers(), (std::vector<std::string>{"cuda", "cpu"}));
  EXPECT_EQ(SmallConfig().WithProvider("cpu").providers(), (std::vector<std::string>{"cpu"}));
  EXPECT_TRUE(SmallConfig().WithoutProviders().providers().empty());
}

TEST(GenaiConfigProviders, CanBeClearedWhenTheListIsNull) {
  for (const char* overlay : {R"({"model": {"decoder": {"session_options": null}}})",
                              R"({"model": {"decoder": {"session_options": {"provider_options": null}}}})"}) {
    const GenaiConfig config = SmallConfig().WithOverlay(overlay);
    EXPECT_TRUE(config.providers().empty());
    EXPECT_EQ(config.WithoutProviders().WithProvider("cpu").providers(), (std::vector<std::string>{"cpu"}));
  }
}

TEST(GenaiConfigProviders, RefuseToAppendOneThatTheBuildLacks) {
  const GenaiConfig config = SmallConfig();
  for (const char* name : {"cuda", "dml", "CPU ", "c\xffpu"}) {
    const Error error = ErrorOf([&] { config.WithProvider(name); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported);
    EXPECT_CONTAINS(error.message(), "no execution provider '");
  }
  EXPECT_CONTAINS(ErrorOf([&] { config.WithProvider("cuda"); }).message(), "'cuda'");
  EXPECT_CONTAINS(ErrorOf([&] { config.WithProvider("c\xffpu"); }).message(), "'c\\xffpu'");
  EXPECT_EQ(ErrorOf([&] { config.WithProvider(""); }).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(config.providers().empty());
}

TEST(GenaiConfigProviders, StayChangedUnderALaterOverlay) {
  const GenaiConfig config =
      SmallConfig()
          .WithOverlay(R"({"model": {"decoder": {"session_options": {"provider_options": [{"cuda": {}}]}}}})")
          .WithoutProviders()
          .WithOverlay(R"({"search": {"top_k": 3}})");
  EXPECT_TRUE(config.providers().empty());
  EXPECT_EQ(config.search().top_k, 3);
}

TEST(GenaiConfigStateGroups, OfFixedKindsAreAcceptedReportedAndRefusedOnlyAtLoad) {
  for (const char* kind : {"fixed_conv", "fixed_recurrent"}) {
    InfoLog log;
    const GenaiConfig config = SmallConfig().WithOverlay(
        Message(R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [1]}, {"kind": ")", kind,
                R"(", "layer_ids": [0]}]}}})"));
    EXPECT_EQ(config.decoder().paged_layers, (std::vector<int32_t>{1}));
    ASSERT_EQ(InfoLog::With("model.decoder.state_groups[1]").size(), 1u);
    EXPECT_CONTAINS(InfoLog::With("model.decoder.state_groups[1]")[0], kind);
    EXPECT_NO_THROW(config.CheckProvidersUsable());
    const Error error = ErrorOf([&] { config.CheckRunnable(); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported);
    EXPECT_CONTAINS(error.message(), Message("model.decoder.state_groups[1].kind is '", kind, "'"));
  }
}

}  // namespace
}  // namespace oga
