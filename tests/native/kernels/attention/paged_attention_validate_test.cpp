// Malformed calls are refused by a sentence that names the place, before anything is read through the tables.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "kernels/attention/paged_attention.h"
#include "native/kernels/attention/paged_attention_case.h"

namespace oga::kernels {
namespace {

CaseSpec ThreeRows() {
  CaseSpec spec;
  spec.block_size = 4;
  spec.rows = {{9, 3}, {0, 6}, {7, 1}};
  return spec;
}

struct Malformation {
  const char* name;
  std::function<void(PagedAttentionCase&, PagedAttentionArgs&)> apply;
  std::vector<std::string> message_parts;
};

// The call's tables lie in memory that ends where they end, so that the address sanitizer sees a step outside.
void ExpectRefused(const Malformation& malformation) {
  SCOPED_TRACE(malformation.name);
  PagedAttentionCase memory(ThreeRows());
  PagedAttentionArgs args = memory.Args();
  malformation.apply(memory, args);
  const std::vector<uint8_t> keys = memory.key_cache, values = memory.value_cache;
  const std::string problem = ValidatePagedAttention(args);
  ASSERT_NE(problem, "");
  for (const std::string& part : malformation.message_parts) {
    EXPECT_NE(problem.find(part), std::string::npos) << "\"" << problem << "\" does not say \"" << part << "\"";
  }
  EXPECT_TRUE(keys == memory.key_cache && values == memory.value_cache);
}

TEST(ValidatePagedAttention, RefusesMalformedLengths) {
  const Malformation malformations[] = {
      {"start", [](auto& m, auto&) { m.cumulative_lengths[0] = 1; }, {"cumulative_sequence_lengths[0] is 1"}},
      {"decrease",
       [](auto& m, auto&) { m.cumulative_lengths[2] = 2; },
       {"cumulative_sequence_lengths[2] is 2", "predecessor 3"}},
      {"end below",
       [](auto& m, auto&) { m.cumulative_lengths[3] = 9; },
       {"cumulative_sequence_lengths[3] is 9", "number of tokens, 10"}},
      {"end above", [](auto& m, auto&) { m.cumulative_lengths[3] = 11; }, {"cumulative_sequence_lengths[3] is 11"}},
      {"far negative", [](auto& m, auto&) { m.cumulative_lengths[1] = INT32_MIN; }, {"[1] is -2147483648"}},
      {"negative past", [](auto& m, auto&) { m.past_lengths[1] = -1; }, {"past_sequence_lengths[1] is -1"}},
      {"past behind the table",
       [](auto& m, auto&) { m.past_lengths[2] = 16; },
       {"row 2 reaches length 17", "hold 16", "4 block_table columns"}},
      {"overflowing past", [](auto& m, auto&) { m.past_lengths[0] = INT32_MAX; }, {"row 0 reaches length 2147483650"}},
      {"rotary table too short",
       [](auto&, auto& a) { a.params.rotary_positions = 11; },
       {"row 0 reaches length 12", "have 11 positions"}},
  };
  for (const Malformation& malformation : malformations) ExpectRefused(malformation);
}

TEST(ValidatePagedAttention, RefusesMalformedTables) {
  const Malformation malformations[] = {
      {"unmapped",
       [](auto& m, auto&) { m.block_table[1] = -1; },
       {"block_table row 0, column 1 is -1", "positions 0 to 11"}},
      {"negative", [](auto& m, auto&) { m.block_table[m.table_columns] = -7; }, {"row 1, column 0 is -7"}},
      {"id of no block",
       [](auto& m, auto&) { m.block_table[2 * m.table_columns + 1] = m.num_blocks; },
       {"row 2, column 1", "[0, "}},
      {"last written block", [](auto& m, auto&) { m.block_table[m.table_columns + 1] = -1; }, {"row 1, column 1"}},
      {"one block written by two rows",
       [](auto& m, auto&) { m.block_table[m.table_columns + 1] = m.block_table[2 * m.table_columns + 1]; },
       {"row 1, column 1 and row 2, column 1", "one owner"}},
      {"one block written twice by a row",
       [](auto& m, auto&) { m.block_table[m.table_columns + 1] = m.block_table[m.table_columns]; },
       {"row 1, column 0 and row 1, column 1"}},
  };
  for (const Malformation& malformation : malformations) ExpectRefused(malformation);
}

TEST(ValidatePagedAttention, RefusesMalformedShapesAndParameters) {
  const Malformation malformations[] = {
      {"heads", [](auto&, auto& a) { a.shape.num_heads = 5; }, {"num_heads is 5", "num_kv_heads is 2"}},
      {"no heads", [](auto&, auto& a) { a.shape.num_kv_heads = 0; }, {"num_kv_heads is 0"}},
      {"odd head size", [](auto&, auto& a) { a.shape.head_size = 60; }, {"head_size is 60", "multiple of 8"}},
      {"huge head size", [](auto&, auto& a) { a.shape.head_size = 520; }, {"head_size is 520", "512"}},
      {"block size", [](auto&, auto& a) { a.shape.block_size = 0; }, {"block_size is 0"}},
      {"negative rows", [](auto&, auto& a) { a.shape.num_rows = -1; }, {"num_rows -1"}},
      {"odd rotary", [](auto&, auto& a) { a.params.rotary_dim = 31; }, {"rotary_dim is 31"}},
      {"wide rotary", [](auto&, auto& a) { a.params.rotary_dim = 66; }, {"rotary_dim is 66", "head_size 64"}},
      {"rotary behind an offset",
       [](auto&, auto& a) { a.params.rotary_offset = 8; },
       {"rotary_dim is 64", "head_size 64 less the rotary_offset 8"}},
      {"odd offset", [](auto&, auto& a) { a.params.rotary_offset = 4; }, {"rotary_offset is 4", "multiple of 8"}},
      {"offset", [](auto&, auto& a) { a.params.rotary_offset = -8; }, {"rotary_offset is -8"}},
      {"softcap", [](auto&, auto& a) { a.params.softcap = -1.0f; }, {"softcap is -1"}},
      {"endless softcap", [](auto&, auto& a) { a.params.softcap = INFINITY; }, {"softcap is inf"}},
      {"epsilon", [](auto&, auto& a) { a.params.norm_epsilon = -1e-6f; }, {"norm_epsilon is -1e-06"}},
      {"one norm", [](auto&, auto& a) { a.query_norm = a.query; }, {"both or neither"}},
      {"scale of floats",
       [](auto& m, auto& a) { a.value_scale.data = m.cosines.data(); },
       {"value_scale is given for a cache of floats"}},
      {"no rotary", [](auto&, auto& a) { a.params.rotary_dim = 0; }, {"rotary_dim is 0"}},
      {"missing table", [](auto&, auto& a) { a.sin_cache = nullptr; }, {"sin table is missing"}},
      {"zero window", [](auto&, auto& a) { a.params.window = 0; }, {"window is 0"}},
      {"negative window", [](auto&, auto& a) { a.params.window = -2; }, {"window is -2"}},
      {"scale", [](auto&, auto& a) { a.params.scale = std::nanf(""); }, {"scale is nan"}},
      {"query stride", [](auto&, auto& a) { a.query_stride = 255; }, {"255", "256"}},
      {"key stride", [](auto&, auto& a) { a.key_stride = 127; }, {"127", "128"}},
      {"no value", [](auto&, auto& a) { a.value = nullptr; }, {"value", "missing"}},
      {"no cache", [](auto&, auto& a) { a.key_cache = nullptr; }, {"key cache", "missing"}},
      {"no lengths", [](auto&, auto& a) { a.past_lengths = nullptr; }, {"past lengths are missing"}},
  };
  for (const Malformation& malformation : malformations) ExpectRefused(malformation);
}

TEST(ValidatePagedAttention, RefusesScalesThatMakeNoSense) {
  CaseSpec spec = ThreeRows();
  spec.cache_type = CacheType::kInt8;
  spec.channel_scales = true;
  PagedAttentionCase memory(spec);
  EXPECT_EQ(ValidatePagedAttention(memory.Args()), "");
  memory.key_scale[127] = -0.5f;
  EXPECT_NE(ValidatePagedAttention(memory.Args()).find("key_scale[127] is -0.5"), std::string::npos);
  memory.key_scale[127] = 0.0f;
  memory.value_scale[3] = std::nanf("");
  EXPECT_NE(ValidatePagedAttention(memory.Args()).find("value_scale[3] is nan"), std::string::npos);
  PagedAttentionArgs args = memory.Args();
  args.value_scale = {};
  EXPECT_NE(ValidatePagedAttention(args).find("value_scale is missing; an int8 cache"), std::string::npos);
}

TEST(ValidatePagedAttention, RefusesMalformedSlotMappings) {
  CaseSpec spec = ThreeRows();
  spec.mapped = true;
  PagedAttentionCase memory(spec);
  const PagedAttentionArgs args = memory.Args();
  EXPECT_EQ(ValidatePagedAttention(args), "");
  int32_t* const slots = const_cast<int32_t*>(args.slot_mapping);
  const int32_t fourth = slots[4];
  slots[4] = -2;
  EXPECT_NE(ValidatePagedAttention(args).find("slot_mapping[4] is -2"), std::string::npos);
  slots[4] = memory.num_blocks * spec.block_size;
  EXPECT_NE(ValidatePagedAttention(args).find("slot_mapping[4] is "), std::string::npos);
  slots[4] = slots[9];
  EXPECT_NE(ValidatePagedAttention(args).find("by token 4 and token 9"), std::string::npos);
  slots[4] = fourth;
  slots[5] = slots[6] = -1;  // any number of tokens may write nothing
  EXPECT_EQ(ValidatePagedAttention(args), "");
}

TEST(ValidatePagedAttention, FindsAConflictAmongThousandsOfWrittenBlocks) {
  CaseSpec spec;
  spec.num_heads = spec.num_kv_heads = 1;
  spec.head_size = 8;
  spec.block_size = 1;
  spec.rows = {{0, 1500}, {0, 1500}};
  PagedAttentionCase memory(spec);
  EXPECT_EQ(ValidatePagedAttention(memory.Args()), "");
  memory.block_table[memory.table_columns + 1499] = memory.block_table[3];
  EXPECT_NE(ValidatePagedAttention(memory.Args()).find("row 0, column 3 and row 1, column 1499"), std::string::npos);
}

TEST(ValidatePagedAttention, LeavesColumnsAloneThatTheCallDoesNotTouch) {
  CaseSpec spec = ThreeRows();
  spec.window = 3;
  spec.rows = {{30, 3}, {50, 0}, {8, 1}};  // the second row has no tokens and no blocks
  PagedAttentionCase memory(spec);
  EXPECT_EQ(memory.block_table[0], -1);
  EXPECT_EQ(ValidatePagedAttention(memory.Args()), "");
  // Row 0 sees positions 28 to 32: its window's oldest key is the first slot of column 7.
  memory.block_table[7] = -1;
  EXPECT_NE(ValidatePagedAttention(memory.Args()).find("row 0, column 7"), std::string::npos);
}

TEST(ValidatePagedAttention, AcceptsACallWithoutTokens) {
  CaseSpec spec = ThreeRows();
  spec.rows = {{5, 0}};
  PagedAttentionCase memory(spec);
  memory.Run(CpuIsa::kPortable);
  spec.rows = {};
  PagedAttentionCase empty(spec);
  empty.Run(CpuIsa::kPortable);
}

}  // namespace
}  // namespace oga::kernels
