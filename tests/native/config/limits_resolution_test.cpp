#include "config/limits_resolution.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::InfoLog;
using testing::SmallConfig;

constexpr uint64_t kGiB = uint64_t{1} << 30;
const HostMemory kPlenty{64 * kGiB, "MemAvailable of /proc/meminfo"};

LedgerSources Sources(const HostMemory& memory, std::optional<uint64_t> stated = {}) {
  return {stated, [memory] { return memory; }, [](uintptr_t, uint64_t) { return uint64_t{0}; }};
}

// The limits under a ledger of that memory, with nothing else in it.
EngineLimits LimitsUnder(const GenaiConfig& config, uint64_t bytes_per_slot, const HostMemory& memory) {
  Ledger ledger(Sources(memory));
  return ResolveEngineLimits(config, bytes_per_slot, ledger).limits;
}

GenaiConfig WithBatching(const std::string& members) {
  return SmallConfig().WithOverlay("{\"engine\": {\"dynamic_batching\": {" + members + "}}}");
}

TEST(LimitsResolution, KeepsConfiguredLimitsAsTheyAre) {
  const GenaiConfig config =
      WithBatching(R"("block_size": 4, "num_blocks": 11, "max_batch_size": 3, "max_scheduled_tokens": 7,
                      "max_resident_requests": 5, "max_wait_steps": 9)")
          .WithOverlay(R"({"search": {"chunk_size": 6}})");
  const EngineLimits limits = LimitsUnder(config, 1000, kPlenty);
  EXPECT_EQ(limits.block_size_slots, 4u);
  EXPECT_EQ(limits.num_blocks, 11u);
  EXPECT_EQ(limits.max_batch_size, 3u);
  EXPECT_EQ(limits.max_scheduled_tokens, 7u);
  EXPECT_EQ(limits.max_resident_requests, 5u);
  EXPECT_EQ(limits.max_wait_steps, 9u);
  EXPECT_EQ(limits.chunk_size_tokens, 6u);
  EXPECT_EQ(limits.context_length_tokens, 128u);
  EXPECT_EQ(limits.max_request_tokens(), 45u);
}

TEST(LimitsResolution, FillsTheRestByDefault) {
  const EngineLimits limits = LimitsUnder(SmallConfig(), 1000, kPlenty);
  EXPECT_EQ(limits.block_size_slots, 16u);
  EXPECT_EQ(limits.max_batch_size, 16u);
  EXPECT_EQ(limits.max_scheduled_tokens, 2048u);
  EXPECT_EQ(limits.max_resident_requests, 64u);
  EXPECT_EQ(limits.max_wait_steps, 32u);
  EXPECT_EQ(limits.chunk_size_tokens, 0u);
  EXPECT_EQ(LimitsUnder(WithBatching(R"("max_batch_size": 5)"), 1000, kPlenty).max_resident_requests, 20u);
}

// Context 128: 127 slots, since the last token of a sequence is never stored.
TEST(LimitsResolution, TakesNoMoreBlocksThanRequestsCanUse) {
  const struct {
    const char* members;
    uint32_t num_blocks;
  } rows[] = {
      {R"("block_size": 16, "max_resident_requests": 2)", 16},
      {R"("block_size": 127, "max_resident_requests": 2)", 2},
      {R"("block_size": 128, "max_resident_requests": 3)", 3},
      {R"("block_size": 63, "max_resident_requests": 1)", 3},
      {R"("block_size": 1, "max_resident_requests": 1)", 127},
      {R"("block_size": 65536, "max_resident_requests": 1)", 1},
  };
  for (const auto& row : rows) {
    const EngineLimits limits = LimitsUnder(WithBatching(row.members), 1000, kPlenty);
    EXPECT_EQ(limits.num_blocks, row.num_blocks) << row.members;
    EXPECT_EQ(limits.max_request_tokens(), 128u) << row.members;
  }
  // Bounded by the ids that a block can have, whatever the product is.
  const GenaiConfig huge = WithBatching(R"("block_size": 1, "max_resident_requests": 1048576)")
                               .WithOverlay(R"({"model": {"context_length": 2147483647}})");
  EXPECT_EQ(LimitsUnder(huge, 0, kPlenty).num_blocks, 2147483647u);
  // A context of one token still needs a block to stand in.
  const GenaiConfig tiny =
      SmallConfig().WithOverlay(R"({"model": {"context_length": 1}, "search": {"max_length": 1}})");
  EXPECT_EQ(LimitsUnder(tiny, 1000, kPlenty).num_blocks, 64u);
}

TEST(LimitsResolution, TakesHalfOfTheAvailableMemoryWhenThatIsLess) {
  const GenaiConfig config = WithBatching(R"("block_size": 4)");
  const struct {
    uint64_t available_bytes;
    uint32_t num_blocks;
  } rows[] = {{8000, 1}, {15999, 1}, {16000, 2}, {80000, 10}, {800000, 100}};
  for (const auto& row : rows) {
    EXPECT_EQ(LimitsUnder(config, 1000, {row.available_bytes, "x"}).num_blocks, row.num_blocks) << row.available_bytes;
  }
}

TEST(LimitsResolution, RefusesWhenNotOneBlockFitsAndGivesTheNumbers) {
  const GenaiConfig config = WithBatching(R"("block_size": 4)");
  for (const uint64_t available_bytes : {uint64_t{0}, uint64_t{7999}}) {
    const Error error = ErrorOf([&] { LimitsUnder(config, 1000, {available_bytes, "/sys/fs/cgroup/x/memory.max"}); });
    EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
    EXPECT_CONTAINS(error.message(), "one block of 4 tokens takes 3.9 KiB");
    EXPECT_CONTAINS(error.message(), "/sys/fs/cgroup/x/memory.max leaves");
    EXPECT_CONTAINS(error.message(), "engine.dynamic_batching.block_size");
  }
  EXPECT_CONTAINS(ErrorOf([&] { LimitsUnder(config, 1000, {7000, "x"}); }).message(), "half of the 6.8 KiB");
}

TEST(LimitsResolution, KeepsConfiguredBlocksBeyondTheMemory) {
  const GenaiConfig config = WithBatching(R"("block_size": 16, "num_blocks": 1000000)");
  EXPECT_EQ(LimitsUnder(config, 100000, {1000, "x"}).num_blocks, 1000000u);
  EXPECT_EQ(ResolveEngineLimits(config, 100000, Ledger::Cpu()).limits.num_blocks, 1000000u);
}

// What is beyond the memory is attributed: neither lent nor a reason to leave others without.
TEST(LimitsResolution, SetsAsideForAConfiguredCacheWhatThereIs) {
  Ledger ledger(Sources({10000, "x"}));
  const GenaiConfig fits = WithBatching(R"("block_size": 4, "num_blocks": 2)");
  const GenaiConfig too_much = WithBatching(R"("block_size": 4, "num_blocks": 2000)");
  const SizedLimits first = ResolveEngineLimits(fits, 1000, ledger);
  EXPECT_EQ(first.cache.owned_bytes(), 8000u);
  EXPECT_EQ(first.cache.bytes(), 8000u);
  const SizedLimits second = ResolveEngineLimits(too_much, 1000, ledger);
  EXPECT_EQ(second.cache.owned_bytes(), 1000u);
  EXPECT_EQ(second.cache.bytes(), 8000000u);
  EXPECT_EQ(ledger.Report().of(MemoryRole::kKv).mapped, 8000000u - 1000);
  ledger.Validate();
}

TEST(LimitsResolution, RefusesAConfiguredCacheBeyondTheStatedLimitAndTellsWhatFits) {
  Ledger ledger(Sources(kPlenty, 10000));
  const GenaiConfig config = WithBatching(R"("block_size": 4, "num_blocks": 3)");
  const Error error = ErrorOf([&] { ResolveEngineLimits(config, 1000, ledger); });
  EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(error.field(), "engine.dynamic_batching.num_blocks");
  EXPECT_CONTAINS(error.message(), "11.7 KiB are wanted, and OGA_MEMORY_LIMIT, 9.7 KiB, leaves 9.7 KiB");
  EXPECT_CONTAINS(error.message(), "2 blocks of 3.9 KiB would fit");
  EXPECT_EQ(ledger.Report().total().owned, 0u);
  EXPECT_EQ(ledger.Report().refusals, 1u);
}

// The second sees what the first has left, whether that is used yet or not, and gets it back when the first is gone.
TEST(LimitsResolution, GivesEachEngineHalfOfWhatTheOthersLeft) {
  Ledger ledger(Sources({80000, "x"}));
  const GenaiConfig config = WithBatching(R"("block_size": 4)");
  SizedLimits first = ResolveEngineLimits(config, 1000, ledger);
  EXPECT_EQ(first.limits.num_blocks, 10u);
  EXPECT_EQ(first.cache.owned_bytes(), 40000u);
  const SizedLimits second = ResolveEngineLimits(config, 1000, ledger);
  EXPECT_EQ(second.limits.num_blocks, 5u);
  first = {};
  EXPECT_EQ(ResolveEngineLimits(config, 1000, ledger).limits.num_blocks, 7u);
  ledger.Validate();
}

TEST(LimitsResolution, SizesACacheThatIsConfiguredWhenNobodyTellsTheMemory) {
  Ledger ledger({{}, []() -> HostMemory { Throw(StatusCode::kIoError, "unknown"); }, {}});
  EXPECT_EQ(ResolveEngineLimits(WithBatching(R"("num_blocks": 7)"), 1000, ledger).limits.num_blocks, 7u);
  EXPECT_EQ(ErrorOf([&] { ResolveEngineLimits(SmallConfig(), 1000, ledger); }).code(), StatusCode::kIoError);
}

TEST(LimitsResolution, SurvivesProductsBeyond64Bits) {
  const GenaiConfig configured = WithBatching(R"("block_size": 65536, "num_blocks": 2147483647)");
  const Error error = ErrorOf([&] { LimitsUnder(configured, uint64_t{1} << 40, kPlenty); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_CONTAINS(error.message(), "engine.dynamic_batching.num_blocks is 2147483647");
  EXPECT_CONTAINS(error.message(), "at most 64");
  const GenaiConfig automatic = WithBatching(R"("block_size": 65536)");
  EXPECT_EQ(ErrorOf([&] { LimitsUnder(automatic, UINT64_MAX, kPlenty); }).code(), StatusCode::kResourceExhausted);
}

TEST(LimitsResolution, TakesWhatRequestsCanUseWhenSlotsTakeNoMemory) {
  EXPECT_EQ(LimitsUnder(SmallConfig(), 0, {0, "x"}).num_blocks, 8u * 64u);
}

TEST(LimitsResolution, ReportsHowManyBlocksAndWhyInOneLine) {
  const struct {
    const char* members;
    HostMemory memory;
    const char* line;
  } rows[] = {
      {R"("num_blocks": 10)", kPlenty,
       "key-value cache: 10 blocks of 16 tokens, 156.2 KiB, as engine.dynamic_batching.num_blocks says"},
      {R"("max_resident_requests": 2)", kPlenty,
       "key-value cache: 16 blocks of 16 tokens, 250.0 KiB, all that 2 requests of 128 tokens can use"},
      {"",
       {1024 * 1024, "/sys/fs/cgroup/memory.max"},
       "key-value cache: 32 blocks of 16 tokens, 500.0 KiB, half of the 1.0 MiB that /sys/fs/cgroup/memory.max leaves"},
  };
  for (const auto& row : rows) {
    const GenaiConfig config = WithBatching(row.members);
    InfoLog log;
    LimitsUnder(config, 1000, row.memory);
    EXPECT_EQ(InfoLog::lines(), (std::vector<std::string>{row.line}));
  }
}

TEST(LimitsResolution, UsesTheMemoryOfThisMachine) {
  const HostMemory memory = ReadHostMemory();
  // Large slots, so that memory and not use is the bound.
  const uint64_t bytes_per_slot = uint64_t{4} << 20;
  const EngineLimits limits = ResolveEngineLimits(SmallConfig(), bytes_per_slot, Ledger::Cpu()).limits;
  EXPECT_GE(limits.num_blocks, 1u);
  EXPECT_LE(limits.pool_slots() * bytes_per_slot, memory.available_bytes);
}

}  // namespace
}  // namespace oga
