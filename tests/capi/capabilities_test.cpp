#include <oga/capabilities.h>

#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class Capabilities : public WithEngine {
 protected:
  void SetUp() override {
    WithEngine::SetUp();
    OgaEngineCapabilities* capabilities = nullptr;
    Must(OgaEngineGetCapabilities(engine_.get(), &capabilities));
    capabilities_.reset(capabilities);
  }

  void ExpectTheConfiguredLimits() const {
    EXPECT_EQ(OgaEngineCapabilitiesGetConfiguredMaxBatchSize(capabilities_.get()), kMaxBatchSize);
    EXPECT_EQ(OgaEngineCapabilitiesGetMaxScheduledTokens(capabilities_.get()), kMaxScheduledTokens);
    EXPECT_EQ(OgaEngineCapabilitiesGetMaxRequestLength(capabilities_.get()), kContext);
    EXPECT_TRUE(OgaEngineCapabilitiesGetPrefixCaching(capabilities_.get()));
  }

  Owned<OgaEngineCapabilities, OgaDestroyEngineCapabilities> capabilities_;
};

TEST_F(Capabilities, AreTheConfiguredLimits) { ExpectTheConfiguredLimits(); }

TEST_F(Capabilities, ReadOnAnyThreadAndAfterTheEngineIsGone) {
  std::thread([this] { ExpectTheConfiguredLimits(); }).join();
  engine_.reset();
  ExpectTheConfiguredLimits();
}

class NoPrefixCapabilities : public Capabilities {
  std::string Overlay() const override { return R"({"engine": {"dynamic_batching": {"prefix_caching": false}}})"; }
};

TEST_F(NoPrefixCapabilities, TheConfigTurnsThePrefixCacheOff) {
  EXPECT_FALSE(OgaEngineCapabilitiesGetPrefixCaching(capabilities_.get()));
}

// The last sampled token needs no cache slot, so a pool of n slots holds sequences of n + 1.
class SmallPoolCapabilities : public Capabilities {
  std::string Overlay() const override { return R"({"engine": {"dynamic_batching": {"num_blocks": 5}}})"; }
};

TEST_F(SmallPoolCapabilities, ASmallPoolBoundsTheRequestLength) {
  EXPECT_EQ(OgaEngineCapabilitiesGetMaxRequestLength(capabilities_.get()), 5 * kBlockSize + 1);
}

}  // namespace
}  // namespace oga::capi_test
