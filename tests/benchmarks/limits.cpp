#include "benchmarks/limits.h"

#include <algorithm>
#include <atomic>
#include <fstream>

#include "base/check.h"

namespace oga::benchmarks {

namespace {

constexpr size_t kLeastBytes = size_t{192} << 20;
constexpr size_t kMostBytes = size_t{512} << 20;

std::atomic<uint64_t> read_sum = 0;
std::atomic<float> product_sum = 0;

}  // namespace

const LimitLoops& LimitsOf(kernels::CpuIsa isa) {
#if defined(__x86_64__)
  using kernels::CpuIsa;
  if (isa == CpuIsa::kAmx) return kLimitsAmx;
  if (isa == CpuIsa::kAvx512Bf16) return kLimitsAvx512Bf16;
  if (isa == CpuIsa::kAvx512) return kLimitsAvx512;
  if (isa == CpuIsa::kAvx2) return kLimitsAvx2;
#endif
  OGA_CHECK(isa == kernels::CpuIsa::kPortable);
  return kLimitsPortable;
}

size_t BeyondCachesBytes() {
  // Of the caches that one core reaches: what sysconf reports counts those of other cores on some machines.
  size_t cache_kib = 0;
  std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> cache_kib;
  return std::clamp(4 * (cache_kib << 10), kLeastBytes, kMostBytes);
}

BigMemory::BigMemory() : bytes_(BeyondCachesBytes()), data_(arena_.Allocate(bytes_)) {
  std::fill_n(data_, bytes_, uint8_t{1});  // pages that nobody has written are all the same page of zeros
}

void BigMemory::Read(ThreadTeam* team, size_t bytes) const {
  const LimitLoops& loops = LimitsOf(kernels::BestCpuIsa());
  const size_t parts = std::min(bytes, bytes_) / kPart;
  const size_t shares = static_cast<size_t>(team->size());
  team->ForEach(shares, [&](size_t share) {
    const size_t begin = parts * share / shares, end = parts * (share + 1) / shares;
    read_sum += loops.read(data_ + begin * kPart, (end - begin) * kPart);
  });
}

void BigMemory::Triad(ThreadTeam* team) {
  const size_t parts = triad_bytes() / 3 / kPart;
  const size_t shares = static_cast<size_t>(team->size());
  float* const a = reinterpret_cast<float*>(data_);
  constexpr size_t kPartFloats = kPart / sizeof(float);
  const float* const b = a + parts * kPartFloats;
  const float* const c = b + parts * kPartFloats;
  team->ForEach(shares, [&](size_t share) {
    const size_t begin = parts * share / shares * kPartFloats, end = parts * (share + 1) / shares * kPartFloats;
    for (size_t i = begin; i < end; ++i) a[i] = b[i] + 3.0f * c[i];
  });
}

void Multiply(ThreadTeam* team, const LimitLoops& loops, int64_t rounds) {
  team->ForEach(static_cast<size_t>(team->size()), [&](size_t) { product_sum.store(loops.multiply(rounds)); });
}

}  // namespace oga::benchmarks
