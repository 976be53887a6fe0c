#include "operators/cpu/paged_attention_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"
#include "ort/library.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

std::string Case(const std::string& name) { return test::DataPath("models/operators/" + name + ".onnx"); }

struct Refusal {
  const char* name;
  StatusCode code;
  std::vector<const char*> parts;  // of the message, besides the node's name
  bool by_type = false;
};

class PagedAttentionRefusals : public test::WithRuntime, public testing::WithParamInterface<Refusal> {};

TEST_P(PagedAttentionRefusals, NameTheNodeWhatWasFoundAndWhatIsSupported) {
  if (GetParam().by_type && !ort::LoadedLibrary().IsAtLeast(1, 24)) {
    // That release checks the types of an operator which cannot infer shapes itself, before it asks the kernel.
    EXPECT_THROW(ort::Session(Case(GetParam().name), CpuSessionOptions({})), Error);
    return;
  }
  try {
    ort::Session(Case(GetParam().name), CpuSessionOptions({}));
    FAIL() << GetParam().name << " was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GetParam().code) << error.message();
    EXPECT_EQ(error.message().rfind("PagedAttention node /attn: ", 0), 0u) << error.message();
    for (const char* part : GetParam().parts) {
      EXPECT_NE(error.message().find(part), std::string::npos) << part << " is not in: " << error.message();
    }
  }
}

constexpr StatusCode kUnsupported = StatusCode::kUnsupported;
constexpr StatusCode kModelError = StatusCode::kModelError;

INSTANTIATE_TEST_SUITE_P(
    Everything, PagedAttentionRefusals,
    testing::Values(Refusal{"negative_softcap", kModelError, {"attribute softcap is -50", "0 for none"}},
                    Refusal{"one_norm", kModelError, {"q_norm_weight and k_norm_weight must both be given"}},
                    Refusal{"negative_epsilon", kModelError, {"attribute qk_norm_epsilon is -1"}},
                    Refusal{"double_sink", kModelError, {"head_sink has element type double and query float"}, true},
                    Refusal{"int64_slots", kUnsupported, {"slot_mapping has element type int64", "int32"}, true},
                    Refusal{"scale_of_floats", kModelError, {"input k_scale is given", "only an int8 cache"}},
                    Refusal{"int8_cache_without_type", kModelError, {"k_quant_type is NONE for a cache of int8"}},
                    Refusal{"int8_cache_without_scale", kModelError, {"input v_scale is missing"}},
                    Refusal{"float16_scale", kUnsupported, {"input v_scale has element type float16"}, true},
                    Refusal{"uint8_cache", kUnsupported, {"key_cache has element type uint8", "bfloat16 and int8"}},
                    Refusal{"double_activations", kUnsupported, {"query has element type double"}, true},
                    Refusal{"mixed_activations", kModelError, {"value has element type float16 and query float"}},
                    Refusal{"mixed_caches", kModelError, {"float and value_cache float16", "equal"}, true},
                    Refusal{"int64_lengths", kUnsupported, {"cumulative_sequence_length has element type int64"}, true},
                    Refusal{"not_causal", kUnsupported, {"attribute is_causal is 0", "only 1"}},
                    Refusal{"rotary_offset", kModelError, {"attribute rotary_offset is 4", "multiple of 8"}},
                    Refusal{"v_head_size", kUnsupported, {"attribute v_head_size is 4"}},
                    Refusal{"latent", kUnsupported, {"attribute kv_cache_layout is LATENT", "SEPARATE"}},
                    Refusal{"quantized", kModelError, {"attribute k_quant_type is PER_TENSOR for a cache of float"}},
                    Refusal{"unknown_quantization", kModelError, {"attribute v_quant_type is PER_BLOCK", "NONE, "}},
                    Refusal{"packed_cache_type", kUnsupported, {"attribute k_cache_dtype is int4"}},
                    Refusal{"key_without_value", kModelError, {"key and value must both be given"}},
                    Refusal{"rotary_without_tables", kModelError, {"do_rotary is set", "cos_cache and sin_cache"}},
                    Refusal{"window_zero", kModelError, {"local_window_size is 0"}},
                    Refusal{"uneven_heads", kModelError, {"num_heads is 3", "kv_num_heads 2"}},
                    Refusal{"no_heads", kModelError, {"num_heads is 0"}},
                    Refusal{"missing_heads", kModelError, {"kv_num_heads is missing"}},
                    Refusal{"odd_head_size", kUnsupported, {"head size is 12", "multiples of 8"}},
                    Refusal{"large_head_size", kUnsupported, {"head size is 1024", "up to 512"}}),
    [](const auto& info) { return std::string(info.param.name); });

// The graph `accepted`: 4 heads, 2 kv heads of size 8, blocks of 4 slots, rotary tables for 64 positions.
class PagedAttentionNode : public test::WithRuntime {
 protected:
  static constexpr int64_t kHeadSize = 8;
  static constexpr int64_t kQueryWidth = 4 * kHeadSize;
  static constexpr int64_t kKvWidth = 2 * kHeadSize;
  static constexpr int64_t kBlocks = 6;
  static constexpr int64_t kBlockFloats = 4 * kKvWidth;

  void SetUp() override {
    test::WithRuntime::SetUp();
    session_ = std::make_unique<const ort::Session>(Case("accepted"), CpuSessionOptions({.intra_op_threads = 2}));
    // No rotation, so that the expected values can be told without a table.
    std::fill(cosine_.begin(), cosine_.end(), 1.0f);
  }

  template <typename T>
  ort::Tensor Describe(std::vector<T>& values, std::vector<int64_t> dims) {
    constexpr ort::ElementType type = std::is_same_v<T, float> ? ort::ElementType::kFloat : ort::ElementType::kInt32;
    return ort::Tensor(*session_, AddressOf(values.data()), values.size() * sizeof(T), dims, type);
  }

  // Runs rows of `lengths` new tokens after `past_` ones through `table_`. Every value vector is its token's number in
  // the call, every score is equal, so an output is the mean of the values that its token sees.
  void Run(std::vector<int32_t> cumulative, std::vector<int32_t> past, std::vector<int32_t> table) {
    const int64_t tokens = cumulative.back();
    const int64_t rows = static_cast<int64_t>(past.size());
    std::vector<float> query(tokens * kQueryWidth, 1.0f);
    std::vector<float> key(tokens * kKvWidth, 0.0f);
    std::vector<float> value(tokens * kKvWidth);
    for (int64_t i = 0; i < tokens * kKvWidth; ++i) value[i] = static_cast<float>(i / kKvWidth);
    std::vector<int32_t> metadata(3, 0);
    output_.assign(tokens * kQueryWidth, -1.0f);
    const std::vector<int64_t> cache_dims = {kBlocks, 4, 2, kHeadSize};
    ort::IoBinding binding(*session_);
    binding.BindInput("query", Describe(query, {tokens, kQueryWidth}));
    binding.BindInput("key", Describe(key, {tokens, kKvWidth}));
    binding.BindInput("value", Describe(value, {tokens, value_width_}));
    binding.BindInput("key_cache", Describe(key_cache_, cache_dims));
    binding.BindInput("value_cache", Describe(value_cache_, cache_dims));
    binding.BindInput("cumulative", Describe(cumulative, {static_cast<int64_t>(cumulative.size())}));
    binding.BindInput("past", Describe(past, {rows}));
    binding.BindInput("table", Describe(table, {rows, static_cast<int64_t>(table.size()) / rows}));
    binding.BindInput("cos", Describe(cosine_, {64, 4}));
    binding.BindInput("sin", Describe(sine_, {64, 4}));
    binding.BindInput("metadata", Describe(metadata, {3}));
    binding.BindOutput("output", Describe(output_, {tokens, kQueryWidth}));
    binding.BindOutput("key_cache_out", Describe(in_place_ ? key_cache_ : elsewhere_, cache_dims));
    binding.BindOutput("value_cache_out", Describe(value_cache_, cache_dims));
    session_->Run(binding);
  }

  std::string RunError(std::vector<int32_t> cumulative, std::vector<int32_t> past, std::vector<int32_t> table) {
    const std::vector<float> keys = key_cache_;
    const std::vector<float> values = value_cache_;
    try {
      Run(std::move(cumulative), std::move(past), std::move(table));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << error.message();
      EXPECT_EQ(key_cache_, keys) << "a refused batch was written";
      EXPECT_EQ(value_cache_, values) << "a refused batch was written";
      return error.message();
    }
    return "accepted";
  }

  std::unique_ptr<const ort::Session> session_;
  bool in_place_ = true;
  int64_t value_width_ = kKvWidth;
  std::vector<float> key_cache_ = std::vector<float>(kBlocks * kBlockFloats, 0.0f);
  std::vector<float> value_cache_ = key_cache_;
  std::vector<float> elsewhere_ = key_cache_;
  std::vector<float> cosine_ = std::vector<float>(64 * 4, 0.0f);
  std::vector<float> sine_ = cosine_;
  std::vector<float> output_;
};

TEST_F(PagedAttentionNode, AttendsOverTheBlocksOfEachRowAndUpdatesTheCacheInPlace) {
  // Row 0 has one token in block 5 already, whose value is 9; row 1 starts anew in block 2.
  std::fill_n(value_cache_.begin() + 5 * kBlockFloats, kKvWidth, 9.0f);
  Run({0, 2, 5}, {1, 0}, {5, -1, 2, -1});
  const float expected[] = {(9 + 0) / 2.0f, (9 + 0 + 1) / 3.0f, 2, (2 + 3) / 2.0f, (2 + 3 + 4) / 3.0f};
  for (size_t i = 0; i < output_.size(); ++i) ASSERT_NEAR(output_[i], expected[i / kQueryWidth], 1e-5f) << i;
  for (int64_t token = 0; token < 3; ++token) {
    EXPECT_EQ(value_cache_[2 * kBlockFloats + token * kKvWidth], static_cast<float>(2 + token));
  }
  EXPECT_EQ(value_cache_[5 * kBlockFloats + 2 * kKvWidth], 1.0f);
  EXPECT_EQ(value_cache_[0], 0.0f);
}

TEST_F(PagedAttentionNode, RefusesMalformedTablesAndLeavesTheCacheAlone) {
  const auto expect_refused = [&](const std::string& message) {
    EXPECT_EQ(message.rfind("PagedAttention node /attn: ", 0), 0u) << message;
  };
  expect_refused(RunError({0, 2}, {0}, {6}));                           // no such block
  expect_refused(RunError({0, 2}, {0}, {-1}));                          // not mapped
  expect_refused(RunError({0, 2}, {3}, {1}));                           // the second token has no column
  expect_refused(RunError({0, 2}, {-1}, {1}));                          // negative past
  expect_refused(RunError({0, 3, 2}, {0, 0}, {1, 2}));                  // borders that go backwards
  expect_refused(RunError({1, 2}, {0}, {1}));                           // borders that do not start at 0
  expect_refused(RunError({0, 1}, {64}, std::vector<int32_t>(17, 1)));  // beyond the rotary tables
}

TEST_F(PagedAttentionNode, RefusesShapesThatDoNotFitTogether) {
  value_width_ = 2 * kKvWidth;
  EXPECT_NE(RunError({0, 2}, {0}, {1}), "accepted");
  value_width_ = kKvWidth;
  const std::string message = RunError({0, 1, 2}, {0}, {1});
  EXPECT_NE(message.find("input cumulative_sequence_length has shape [3]; [2] is wanted"), std::string::npos)
      << message;
}

TEST_F(PagedAttentionNode, RefusesACacheThatIsNotUpdatedInPlace) {
  in_place_ = false;
  const std::string message = RunError({0, 2}, {0}, {1});
  EXPECT_NE(message.find("the output of key_cache is not bound to the memory of the input"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace oga::operators
