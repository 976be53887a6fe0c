#include <oga/model.h>

#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Model : public test::WithRuntime {};

std::string Type(const OgaModel* model) {
  const char* type = nullptr;
  Must(OgaModelGetType(model, &type));
  const std::string copy = type;
  OgaDestroyString(type);
  return copy;
}

TEST_F(Model, LoadsAFolder) {
  OgaModel* model = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateModel(ModelFolder().c_str(), &model)));
  const ModelHandle owned(model);
  EXPECT_EQ(Type(model), "llama");
  const char* device = nullptr;
  ASSERT_TRUE(Succeeds(OgaModelGetDeviceType(model, &device)));
  EXPECT_EQ(device, test::DefaultDevice());
  OgaDestroyString(device);
}

TEST_F(Model, LoadsFromAnyThread) {
  std::string type;
  std::thread([&] { type = Type(MakeModel().get()); }).join();
  EXPECT_EQ(type, "llama");
}

TEST_F(Model, AMissingFolderIsNamed) {
  OgaModel* model = reinterpret_cast<OgaModel*>(this);
  EXPECT_TRUE(Fails(OgaCreateModel("no/such/folder", &model), OgaStatusCode_NotFound, "no/such/folder"));
  EXPECT_EQ(model, nullptr);
}

TEST_F(Model, AGraphThatDoesNotMatchItsConfigIsRefusedNamingTheTensor) {
  OgaModel* model = nullptr;
  const ConfigHandle config = MakeConfig(R"({"model": {"decoder": {"head_size": 16}}})");
  EXPECT_TRUE(Fails(OgaCreateModelFromConfig(config.get(), &model), OgaStatusCode_ModelError, "past_key_values.0.key"));
  EXPECT_EQ(model, nullptr);
  const ConfigHandle renamed = MakeConfig(R"({"model": {"decoder": {"inputs": {"block_table": "missing_table"}}}})");
  EXPECT_TRUE(Fails(OgaCreateModelFromConfig(renamed.get(), &model), OgaStatusCode_ModelError, "missing_table"));
}

TEST_F(Model, APlainExportIsRefusedWithTheCommandThatConvertsIt) {
  OgaModel* model = nullptr;
  EXPECT_TRUE(
      Fails(OgaCreateModel(test::DataPath("models/plain").c_str(), &model), OgaStatusCode_Unsupported, "oga convert"));
}

TEST_F(Model, AMissingGraphNamesTheFile) {
  OgaModel* model = nullptr;
  const ConfigHandle config = MakeConfig(R"({"model": {"decoder": {"filename": "absent.onnx"}}})");
  EXPECT_TRUE(Fails(OgaCreateModelFromConfig(config.get(), &model), OgaStatusCode_NotFound, "absent.onnx"));
}

TEST_F(Model, LivesAsLongAsItsEngine) {
  ModelHandle model = MakeModel();
  const EngineHandle engine = MakeEngine(model.get());
  const BufferHandle buffer = MakeBuffer(engine.get());
  model.reset();
  const RequestHandle request = MakeRequest(engine.get());
  BeginTurn(request.get(), Prompt(3), ExactlyTokens(request.get(), 2).get());
  EXPECT_EQ(RunToEnd(engine.get(), buffer.get())[request.get()].tokens.size(), 2u);
}

}  // namespace
}  // namespace oga::capi_test
