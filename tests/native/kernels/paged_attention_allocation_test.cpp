// A decode step allocates nothing, whether its rows are split among threads or not.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels/paged_attention.h"
#include "native/kernels/paged_attention_case.h"

namespace {
std::atomic<int64_t> allocations = 0;
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace oga::kernels {
namespace {

TEST(PagedAttention, AllocatesNothingInADecodeStep) {
  for (const CpuIsa isa : AvailableIsas()) {
    for (const size_t num_rows : {1, 3, 70}) {
      CaseSpec spec;
      spec.rows.assign(num_rows, {2 * kKvSplit + 5, 1});
      PagedAttentionCase memory(spec);
      const PagedAttentionArgs args = memory.Args();
      const ParallelFor serially = Serially;
      const int64_t before = allocations;
      const std::string problem = ValidatePagedAttention(args);
      PagedAttention(isa, args, serially);
      EXPECT_EQ(allocations - before, 0) << CpuIsaName(isa) << ", " << num_rows << " rows";
      EXPECT_EQ(problem, "");
    }
  }
}

}  // namespace
}  // namespace oga::kernels
