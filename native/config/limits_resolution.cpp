#include "config/limits_resolution.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "step/ids.h"

namespace oga {

namespace {

constexpr uint32_t kResidentsPerRow = 4;
// The other half is for the runtime's activations, for other processes and for an error in the estimate.
constexpr uint64_t kCacheShare = 2;
constexpr uint64_t kMaxBlocks = std::numeric_limits<BlockId>::max();
constexpr uint64_t kMaxAddressableBytes = uint64_t{1} << 62;

// a * b, or the largest number when that is less.
uint64_t SaturatingProduct(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

// "3.4 GiB", by integers, since every other way of writing a fraction asks the locale.
std::string BytesText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  uint64_t unit = 0;
  uint64_t tenths = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    tenths = (bytes % 1024) * 10 / 1024;
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? Message(bytes, kUnits[0]) : Message(bytes, ".", tenths, kUnits[unit]);
}

EngineLimits ConfiguredLimits(const GenaiConfig& config) {
  const DynamicBatchingConfig& batching = config.dynamic_batching();
  EngineLimits limits;
  limits.block_size_slots = batching.block_size.value_or(limits.block_size_slots);
  limits.max_batch_size = batching.max_batch_size.value_or(limits.max_batch_size);
  limits.max_scheduled_tokens = batching.max_scheduled_tokens.value_or(limits.max_scheduled_tokens);
  limits.max_resident_requests = batching.max_resident_requests.value_or(kResidentsPerRow * limits.max_batch_size);
  limits.max_wait_steps = batching.max_wait_steps.value_or(limits.max_wait_steps);
  limits.prefix_caching = batching.prefix_caching.value_or(true);
  limits.chunk_size_tokens = config.chunk_size_tokens();
  limits.context_length_tokens = config.context_length_tokens();
  return limits;
}

// Blocks beyond which no request could ever use one more.
uint64_t MostUsefulBlocks(const EngineLimits& limits) {
  // The last token of a sequence is sampled but never stored.
  const uint64_t slots = std::max<uint64_t>(limits.context_length_tokens - 1, 1);
  const uint64_t blocks_per_request = (slots + limits.block_size_slots - 1) / limits.block_size_slots;
  return std::min(SaturatingProduct(blocks_per_request, limits.max_resident_requests), kMaxBlocks);
}

void UseConfiguredBlocks(EngineLimits& limits, uint32_t num_blocks, uint64_t block_bytes) {
  limits.num_blocks = num_blocks;
  const uint64_t cache_bytes = SaturatingProduct(num_blocks, block_bytes);
  if (cache_bytes > kMaxAddressableBytes) {
    Throw(StatusCode::kInvalidArgument, Field{"engine.dynamic_batching.num_blocks"},
          "engine.dynamic_batching.num_blocks is ", num_blocks, " blocks of ", BytesText(block_bytes),
          " each, more than there are addresses; it must be at most ", kMaxAddressableBytes / block_bytes);
  }
  log::Info(Message("key-value cache: ", num_blocks, " blocks of ", limits.block_size_slots, " tokens, ",
                    BytesText(cache_bytes), ", as engine.dynamic_batching.num_blocks says"));
}

void ChooseBlocks(EngineLimits& limits, uint64_t block_bytes, const HostMemory& memory) {
  const uint64_t budget_bytes = memory.available_bytes / kCacheShare;
  const uint64_t useful_blocks = MostUsefulBlocks(limits);
  const uint64_t affordable_blocks = block_bytes == 0 ? useful_blocks : budget_bytes / block_bytes;
  if (affordable_blocks == 0) {
    Throw(StatusCode::kResourceExhausted, "the key-value cache does not fit: one block of ", limits.block_size_slots,
          " tokens takes ", BytesText(block_bytes), ", and the cache may take half of the ",
          BytesText(memory.available_bytes), " that ", memory.bound, " leaves; free memory, raise that limit, or set ",
          "engine.dynamic_batching.block_size lower or num_blocks by hand");
  }
  limits.num_blocks = static_cast<uint32_t>(std::min(useful_blocks, affordable_blocks));
  const std::string size = Message("key-value cache: ", limits.num_blocks, " blocks of ", limits.block_size_slots,
                                   " tokens, ", BytesText(limits.num_blocks * block_bytes));
  if (useful_blocks <= affordable_blocks) {
    log::Info(Message(size, ", all that ", limits.max_resident_requests, " requests of ", limits.context_length_tokens,
                      " tokens can use"));
  } else {
    log::Info(Message(size, ", half of the ", BytesText(memory.available_bytes), " that ", memory.bound, " leaves"));
  }
}

}  // namespace

EngineLimits ResolveEngineLimits(const GenaiConfig& config, uint64_t bytes_per_slot) {
  // A configured size must not fail because the free memory cannot be told.
  const bool is_configured = config.dynamic_batching().num_blocks.has_value();
  return ResolveEngineLimits(config, bytes_per_slot, is_configured ? HostMemory{} : ReadHostMemory());
}

EngineLimits ResolveEngineLimits(const GenaiConfig& config, uint64_t bytes_per_slot, const HostMemory& memory) {
  EngineLimits limits = ConfiguredLimits(config);
  const uint64_t block_bytes = SaturatingProduct(limits.block_size_slots, bytes_per_slot);
  if (const auto num_blocks = config.dynamic_batching().num_blocks) {
    UseConfiguredBlocks(limits, *num_blocks, block_bytes);
  } else {
    ChooseBlocks(limits, block_bytes, memory);
  }
  return limits;
}

}  // namespace oga
