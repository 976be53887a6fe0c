// A decode step allocates nothing, whether its rows are split among threads or not.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels/attention/paged_attention.h"
#include "native/kernels/attention/paged_attention_case.h"

namespace {
std::atomic<int64_t> allocations = 0;
}

// Replaced for this whole test program, to count. Not inlined: the compiler would see malloc meet delete and warn. The
// nothrow forms come along, since a library that mixes them with these would free what it did not allocate.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace oga::kernels {
namespace {

TEST(PagedAttention, AllocatesNothingInADecodeStep) {
  for (const CacheType type : {CacheType::kFloat32, CacheType::kFloat16, CacheType::kBfloat16, CacheType::kInt8}) {
    for (const size_t num_rows : {1, 3, 70}) {
      CaseSpec spec;
      spec.head_size = 32;
      spec.cache_type = type;
      spec.rows.assign(num_rows, {2 * kKvSplit + 5, 1});
      PagedAttentionCase memory(spec);
      PagedAttentionArgs args = memory.Args();
      const ParallelFor serially = Serially;
      for (const CpuIsa isa : AvailableIsas()) {
        for (const int32_t num_threads : {1, 8}) {  // with joined heads, where a variant has them, and without
          args.num_threads = num_threads;
          const int64_t before = allocations;
          const std::string problem = ValidatePagedAttention(args);
          PagedAttention(isa, args, serially);
          const int64_t made = allocations - before;
          EXPECT_EQ(made, 0) << CpuIsaName(isa) << ", " << num_threads << " threads: " << spec.Describe();
          EXPECT_EQ(problem, "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace oga::kernels
