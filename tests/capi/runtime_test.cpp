#include <oga/runtime.h>

#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Runtime : public test::WithRuntime {};

std::string OrtVersion() {
  const char* version = nullptr;
  Must(OgaGetOrtVersion(&version));
  const std::string copy = version;
  OgaDestroyString(version);
  return copy;
}

TEST_F(Runtime, TheApiVersionIsTheHeaders) {
  EXPECT_EQ(OgaGetApiVersion(), OGA_API_VERSION);
  EXPECT_EQ(OgaGetApiVersion() >> 16, 0u);
  EXPECT_EQ(OgaGetApiVersion() & 0xffff, 1u);
}

TEST_F(Runtime, TellsTheInstructionSetOfTheKernels) {
  const char* isa = nullptr;
  Must(OgaGetCpuIsa(&isa));
  const std::string name = isa;
  OgaDestroyString(isa);
  EXPECT_TRUE(name.starts_with("avx") || name == "portable") << name;
}

TEST_F(Runtime, TellsVersionAndPathOfOnnxRuntime) {
  const std::string version = OrtVersion();
  EXPECT_EQ(version.find("1."), 0u) << version;
  EXPECT_NE(version.find("libonnxruntime.so"), std::string::npos) << version;
}

TEST_F(Runtime, AnotherLibraryIsRefusedOnceOneIsInUse) {
  OrtVersion();
  EXPECT_TRUE(Fails(OgaSetOrtLibrary("other/libonnxruntime.so"), OgaStatusCode_InvalidState, "already in use"));
  EXPECT_TRUE(Succeeds(OgaSetOrtLibrary(test::RuntimePath().c_str())));
  EXPECT_TRUE(Succeeds(OgaSetOrtLibrary("")));
  EXPECT_TRUE(Succeeds(OgaSetOrtLibrary(nullptr)));
}

TEST_F(Runtime, ShutdownIsOptionalRepeatableAndNotTheEnd) {
  for (int round = 0; round < 3; ++round) {
    {
      const ModelHandle model = MakeModel();
      const EngineHandle engine = MakeEngine(model.get());
      const BufferHandle buffer = MakeBuffer(engine.get());
      const RequestHandle request = MakeRequest(engine.get());
      BeginTurn(request.get(), Prompt(4), ExactlyTokens(request.get(), 3).get());
      EXPECT_EQ(RunToEnd(engine.get(), buffer.get())[request.get()].tokens.size(), 3u);
    }
    OgaShutdown();
    OgaShutdown();
  }
}

TEST_F(Runtime, ShutdownLeavesLiveModelsUsable) {
  const ModelHandle model = MakeModel();
  const EngineHandle engine = MakeEngine(model.get());
  std::thread([] { OgaShutdown(); }).join();
  const BufferHandle buffer = MakeBuffer(engine.get());
  const RequestHandle request = MakeRequest(engine.get());
  BeginTurn(request.get(), Prompt(4), ExactlyTokens(request.get(), 3).get());
  EXPECT_EQ(RunToEnd(engine.get(), buffer.get())[request.get()].tokens.size(), 3u);
  const ModelHandle another = MakeModel();
  EXPECT_NE(another.get(), nullptr);
}

}  // namespace
}  // namespace oga::capi_test
