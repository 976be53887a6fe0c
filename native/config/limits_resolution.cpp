#include "config/limits_resolution.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/byte_text.h"
#include "base/error.h"
#include "base/log.h"
#include "step/ids.h"

namespace oga {

namespace {

constexpr uint32_t kResidentsPerRow = 4;
constexpr uint64_t kMaxBlocks = std::numeric_limits<BlockId>::max();
constexpr uint64_t kMaxAddressableBytes = uint64_t{1} << 62;

// a * b, or the largest number when that is less.
uint64_t SaturatingProduct(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

constexpr const char* kNumBlocks = "engine.dynamic_batching.num_blocks";

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

Lease ClaimConfigured(const EngineLimits& limits, uint64_t block_bytes, Ledger& ledger) {
  const uint64_t cache_bytes = SaturatingProduct(limits.num_blocks, block_bytes);
  if (cache_bytes > kMaxAddressableBytes) {
    Throw(StatusCode::kInvalidArgument, Field{kNumBlocks}, kNumBlocks, " is ", limits.num_blocks, " blocks of ",
          BytesText(block_bytes), " each, more than there are addresses; it must be at most ",
          kMaxAddressableBytes / block_bytes);
  }
  try {
    return ledger.Claim(MemoryRole::kKv, cache_bytes, BeyondMemory::kAttribute);
  } catch (const MemoryRefused& refusal) {
    throw Error(StatusCode::kResourceExhausted, Field{kNumBlocks},
                Message(refusal.message(), "; ", refusal.left_bytes() / block_bytes, " blocks of ",
                        BytesText(block_bytes), " would fit, and ", kNumBlocks, " is ", limits.num_blocks));
  }
}

Lease UseConfiguredBlocks(EngineLimits& limits, uint32_t num_blocks, uint64_t block_bytes, Ledger& ledger) {
  limits.num_blocks = num_blocks;
  Lease lease = ClaimConfigured(limits, block_bytes, ledger);
  const std::string beyond = lease.owned_bytes() < lease.bytes()
                                 ? Message("; more than there is: ", BytesText(lease.owned_bytes()), " are set aside")
                                 : "";
  log::Info(Message("key-value cache: ", num_blocks, " blocks of ", limits.block_size_slots, " tokens, ",
                    BytesText(lease.bytes()), ", as ", kNumBlocks, " says", beyond));
  return lease;
}

Lease ChooseBlocks(EngineLimits& limits, uint64_t block_bytes, Ledger& ledger) {
  const uint64_t useful_blocks = MostUsefulBlocks(limits);
  Ledger::Share share = ledger.ClaimHalf(MemoryRole::kKv, block_bytes, useful_blocks);
  if (share.units == 0) {
    Throw(StatusCode::kResourceExhausted, Field{kNumBlocks}, "the key-value cache does not fit: one block of ",
          limits.block_size_slots, " tokens takes ", BytesText(block_bytes), ", and the cache may take half of the ",
          BytesText(share.left_bytes), " that ", share.bound, " leaves; free memory, raise that limit, or set ",
          "engine.dynamic_batching.block_size lower or num_blocks by hand");
  }
  limits.num_blocks = static_cast<uint32_t>(share.units);
  const std::string size = Message("key-value cache: ", limits.num_blocks, " blocks of ", limits.block_size_slots,
                                   " tokens, ", BytesText(limits.num_blocks * block_bytes));
  if (share.units == useful_blocks) {
    log::Info(Message(size, ", all that ", limits.max_resident_requests, " requests of ", limits.context_length_tokens,
                      " tokens can use"));
  } else {
    log::Info(Message(size, ", half of the ", BytesText(share.left_bytes), " that ", share.bound, " leaves"));
  }
  return std::move(share.lease);
}

}  // namespace

SizedLimits ResolveEngineLimits(const GenaiConfig& config, uint64_t bytes_per_slot, Ledger& ledger) {
  SizedLimits sized{ConfiguredLimits(config), {}};
  const uint64_t block_bytes = SaturatingProduct(sized.limits.block_size_slots, bytes_per_slot);
  const auto num_blocks = config.dynamic_batching().num_blocks;
  sized.cache = num_blocks ? UseConfiguredBlocks(sized.limits, *num_blocks, block_bytes, ledger)
                           : ChooseBlocks(sized.limits, block_bytes, ledger);
  return sized;
}

}  // namespace oga
