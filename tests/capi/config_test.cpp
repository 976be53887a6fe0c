#include <oga/config.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

// What the config says, as a host can see it: the batch size of an engine made from it.
size_t BatchSize(const OgaConfig* config) {
  OgaModel* model = nullptr;
  Must(OgaCreateModelFromConfig(config, &model));
  const ModelHandle owned(model);
  const EngineHandle engine = MakeEngine(model);
  OgaEngineCapabilities* capabilities = nullptr;
  Must(OgaEngineGetCapabilities(engine.get(), &capabilities));
  const size_t batch_size = OgaEngineCapabilitiesGetConfiguredMaxBatchSize(capabilities);
  OgaDestroyEngineCapabilities(capabilities);
  return batch_size;
}

std::string BatchSizeOverlay(int size) {
  return R"({"engine": {"dynamic_batching": {"max_batch_size": )" + std::to_string(size) + "}}}";
}

class Config : public test::WithRuntime {};

TEST_F(Config, ReadsAFolder) { EXPECT_EQ(BatchSize(MakeConfig().get()), kMaxBatchSize); }

TEST_F(Config, AnOverlayReplacesOneValueAndKeepsTheRest) {
  const ConfigHandle config = MakeConfig(BatchSizeOverlay(2));
  EXPECT_EQ(BatchSize(config.get()), 2u);
  EXPECT_TRUE(Succeeds(OgaConfigOverlay(config.get(), BatchSizeOverlay(3).c_str())));
  EXPECT_EQ(BatchSize(config.get()), 3u);
}

TEST_F(Config, ARefusedOverlayLeavesTheConfigAsItWas) {
  const ConfigHandle config = MakeConfig(BatchSizeOverlay(2));
  EXPECT_TRUE(Fails(OgaConfigOverlay(config.get(), BatchSizeOverlay(0).c_str()), OgaStatusCode_InvalidArgument,
                    "max_batch_size"));
  EXPECT_TRUE(Fails(OgaConfigOverlay(config.get(), "{"), OgaStatusCode_InvalidArgument, "overlay"));
  EXPECT_TRUE(Fails(OgaConfigOverlay(config.get(), ""), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaConfigOverlay(config.get(), "[1]"), OgaStatusCode_InvalidArgument));
  const std::string half = R"({"search": {"max_length": 32}, "engine": {"dynamic_batching": {"max_batch_size": "x"}}})";
  EXPECT_TRUE(Fails(OgaConfigOverlay(config.get(), half.c_str()), OgaStatusCode_InvalidArgument, "max_batch_size"));
  EXPECT_EQ(BatchSize(config.get()), 2u);
}

TEST_F(Config, AMisspeltEngineKeyIsRefusedWithItsNearestNeighbour) {
  const ConfigHandle config = MakeConfig();
  const char* overlay = R"({"engine": {"dynamic_batching": {"max_batchsize": 2}}})";
  const Outcome outcome = Take(OgaConfigOverlay(config.get(), overlay));
  EXPECT_EQ(outcome.code, OgaStatusCode_InvalidArgument);
  EXPECT_NE(outcome.message.find("max_batchsize"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("max_batch_size"), std::string::npos) << outcome.message;
}

TEST_F(Config, ModelsOutliveTheConfigTheyWereMadeFrom) {
  ConfigHandle config = MakeConfig();
  OgaModel* model = nullptr;
  Must(OgaCreateModelFromConfig(config.get(), &model));
  const ModelHandle owned(model);
  Must(OgaConfigOverlay(config.get(), BatchSizeOverlay(2).c_str()));
  config.reset();
  const EngineHandle engine = MakeEngine(model);
  OgaEngineCapabilities* capabilities = nullptr;
  Must(OgaEngineGetCapabilities(engine.get(), &capabilities));
  EXPECT_EQ(OgaEngineCapabilitiesGetConfiguredMaxBatchSize(capabilities), kMaxBatchSize);
  OgaDestroyEngineCapabilities(capabilities);
}

TEST_F(Config, CpuIsAProviderAndNeedsNothing) {
  const ConfigHandle config = MakeConfig();
  EXPECT_TRUE(Succeeds(OgaConfigClearProviders(config.get())));
  EXPECT_TRUE(Succeeds(OgaConfigAppendProvider(config.get(), "cpu")));
  EXPECT_EQ(BatchSize(config.get()), kMaxBatchSize);
}

TEST_F(Config, AProviderThisBuildCannotUseIsRefusedByName) {
  const ConfigHandle config = MakeConfig();
  EXPECT_TRUE(Fails(OgaConfigAppendProvider(config.get(), "cuda"), OgaStatusCode_Unsupported, "cuda"));
  EXPECT_EQ(BatchSize(config.get()), kMaxBatchSize);
}

TEST_F(Config, AMissingFolderIsNamed) {
  OgaConfig* config = reinterpret_cast<OgaConfig*>(this);  // must be overwritten
  EXPECT_TRUE(Fails(OgaCreateConfig("no/such/folder", &config), OgaStatusCode_NotFound, "no/such/folder"));
  EXPECT_EQ(config, nullptr);
  EXPECT_TRUE(Fails(OgaCreateConfig("", &config), OgaStatusCode_InvalidArgument, "empty path"));
}

TEST_F(Config, AFolderWithoutAConfigNamesTheFile) {
  OgaConfig* config = nullptr;
  EXPECT_TRUE(
      Fails(OgaCreateConfig(test::DataPath("models").c_str(), &config), OgaStatusCode_NotFound, "genai_config.json"));
}

}  // namespace
}  // namespace oga::capi_test
