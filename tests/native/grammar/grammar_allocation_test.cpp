// A guided step allocates nothing of ours: llguidance's own memory does not come from operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "grammar/mask_batch.h"
#include "native/grammar/grammar_world.h"

namespace {

std::atomic<int> allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace oga::grammar {
namespace {

TEST(GrammarAllocation, AGuidedStepAllocatesNothing) {
  MaskBatch batch(2);
  std::vector<std::unique_ptr<GrammarCursor>> cursors;
  std::vector<GrammarCursor*> rows;
  for (int i = 0; i < 4; ++i) {
    cursors.push_back(test::NewCursor("regex", "[a-z]{1,200}"));
    rows.push_back(cursors.back().get());
  }
  std::vector<TokenId> forced(4);
  int before = 0;
  for (int step = 0; step < 50; ++step) {
    if (step == 2) before = allocations;
    batch.Start(rows);
    batch.Wait();
    for (GrammarCursor* const cursor : rows) {
      ASSERT_TRUE(test::IsAllowed(*cursor, 'q'));
      ASSERT_EQ(cursor->ForcedTokens(forced), 0u);
      cursor->Stage('q');
      cursor->Rollback();
      cursor->Stage('q');
      ASSERT_FALSE(cursor->IsComplete());
      cursor->Commit();
    }
  }
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace oga::grammar
