// Every option of a PagedAttention node reaches the kernel: the node gives what the kernel gives when it is called with
// the same options by name.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "kernels/attention/paged_attention.h"
#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"
#include "ort/library.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

struct AcceptedTypes {
  const char* name;
  ort::ElementType element;
  kernels::ActivationType activations;
};

constexpr ort::ElementType kFloat = ort::ElementType::kFloat, kInt8 = ort::ElementType::kInt8,
                           kInt32 = ort::ElementType::kInt32;

class PagedAttentionOptions : public test::WithRuntime, public testing::WithParamInterface<AcceptedTypes> {
 protected:
  static constexpr int64_t kHeadSize = 16, kTokens = 7, kRows = 2, kBlocks = 6;
  static constexpr int64_t kQueryWidth = 4 * kHeadSize, kKvWidth = 2 * kHeadSize;

  std::string Graph() const { return test::DataPath(std::string("models/operators/") + GetParam().name + ".onnx"); }

  // Activations between `low` and `high`, by a rule that repeats late.
  std::vector<uint16_t> Draw(size_t count, float low, float high) {
    const size_t halves = GetParam().element == kFloat ? 2 : 1;
    std::vector<uint16_t> memory(count * halves);
    for (size_t i = 0; i < count; ++i) {
      drawn_ = (drawn_ * 73 + 41) % 1009;
      const float x = low + (high - low) * static_cast<float>(drawn_) / 1009.0f;
      if (halves == 2) std::memcpy(&memory[2 * i], &x, 4);
      if (GetParam().element == ort::ElementType::kFloat16) memory[i] = kernels::ToFloat16(x).bits;
      if (GetParam().element == ort::ElementType::kBfloat16) memory[i] = kernels::ToBfloat16(x).bits;
    }
    return memory;
  }

  void DrawAll() {
    query_ = Draw(kTokens * kQueryWidth, -3, 3);
    key_ = Draw(kTokens * kKvWidth, -1, 1);
    value_ = Draw(kTokens * kKvWidth, -1, 1);
    sink_ = Draw(4, -1, 2);
    cosine_ = Draw(64 * 4, -1, 1);
    sine_ = Draw(64 * 4, -1, 1);
    query_gains_ = Draw(kHeadSize, 0.5f, 2);
    key_gains_ = Draw(kHeadSize, 0.5f, 2);
    for (int64_t i = 0; i < kKvWidth; ++i) key_scale_.push_back(0.01f + 0.001f * static_cast<float>(i % 5));
    for (int64_t i = 0; i < kBlocks * 4 * kKvWidth; ++i) {
      keys_.push_back(static_cast<int8_t>(i * 37));
      values_.push_back(static_cast<int8_t>(i * 59));
    }
  }

  // What the graph's attributes say, by the kernel's names.
  void RunKernel(std::vector<uint16_t>* output, std::vector<int8_t>* keys, std::vector<int8_t>* values) const {
    kernels::PagedAttentionArgs args;
    args.shape = {kTokens, kRows, 4, 2, kHeadSize, kBlocks, 4, 2};
    args.params = {.scale = 0.3f,
                   .window = 6,
                   .softcap = 5.0f,
                   .norm_epsilon = 1e-3f,
                   .rotary = true,
                   .rotary_interleaved = true,
                   .rotary_offset = 8,
                   .rotary_dim = 8,
                   .rotary_positions = 64};
    args.cache_type = CacheType::kInt8;
    args.activation_type = GetParam().activations;
    args.query = query_.data(), args.key = key_.data(), args.value = value_.data(), args.output = output->data();
    args.query_stride = kQueryWidth, args.key_stride = args.value_stride = kKvWidth;
    args.key_cache = keys->data(), args.value_cache = values->data();
    args.cumulative_lengths = cumulative_.data(), args.past_lengths = past_.data(), args.block_table = table_.data();
    args.slot_mapping = slots_.data(), args.cos_cache = cosine_.data(), args.sin_cache = sine_.data();
    args.query_norm = query_gains_.data(), args.key_norm = key_gains_.data(), args.head_sink = sink_.data();
    args.key_scale = {key_scale_.data(), true};
    args.value_scale = {value_scale_.data(), false};
    ASSERT_EQ(kernels::ValidatePagedAttention(args), "");
    kernels::PagedAttention(args, [](size_t count, const std::function<void(size_t)>& body) {
      for (size_t i = 0; i < count; ++i) body(i);
    });
  }

  void RunNode(const ort::Session& session, std::vector<uint16_t>* output) {
    const auto describe = [&](auto& values, std::vector<int64_t> dims, ort::ElementType type) {
      return ort::Tensor(session, AddressOf(values.data()), values.size() * sizeof(values[0]), dims, type);
    };
    const ort::ElementType type = GetParam().element;
    const std::vector<int64_t> cache_dims = {kBlocks, 4, 2, kHeadSize};
    ort::IoBinding binding(session);
    binding.BindInput("query", describe(query_, {kTokens, kQueryWidth}, type));
    binding.BindInput("key", describe(key_, {kTokens, kKvWidth}, type));
    binding.BindInput("value", describe(value_, {kTokens, kKvWidth}, type));
    binding.BindInput("key_cache", describe(keys_, cache_dims, kInt8));
    binding.BindInput("value_cache", describe(values_, cache_dims, kInt8));
    binding.BindInput("cumulative", describe(cumulative_, {kRows + 1}, kInt32));
    binding.BindInput("past", describe(past_, {kRows}, kInt32));
    binding.BindInput("table", describe(table_, {kRows, 2}, kInt32));
    binding.BindInput("cos", describe(cosine_, {64, 4}, type));
    binding.BindInput("sin", describe(sine_, {64, 4}, type));
    binding.BindInput("slot_mapping", describe(slots_, {kTokens}, kInt32));
    binding.BindInput("head_sink", describe(sink_, {4}, type));
    binding.BindInput("q_norm", describe(query_gains_, {kHeadSize}, type));
    binding.BindInput("k_norm", describe(key_gains_, {kHeadSize}, type));
    binding.BindInput("k_scale", describe(key_scale_, key_scale_dims_, kFloat));
    binding.BindInput("v_scale", describe(value_scale_, {1}, kFloat));
    binding.BindInput("metadata", describe(metadata_, {3}, kInt32));
    binding.BindOutput("output", describe(*output, {kTokens, kQueryWidth}, type));
    binding.BindOutput("key_cache_out", describe(keys_, cache_dims, kInt8));
    binding.BindOutput("value_cache_out", describe(values_, cache_dims, kInt8));
    session.Run(binding);
  }

  uint32_t drawn_ = 1;
  std::vector<uint16_t> query_, key_, value_, sink_, cosine_, sine_, query_gains_, key_gains_;
  std::vector<float> key_scale_, value_scale_ = {0.01f};
  std::vector<int64_t> key_scale_dims_ = {2, 1, kHeadSize};
  std::vector<int8_t> keys_, values_;
  std::vector<int32_t> cumulative_ = {0, 2, 7}, past_ = {5, 0}, table_ = {4, 2, 1, 3}, metadata_ = {0, 0, 0};
  std::vector<int32_t> slots_ = {9, 10, -1, 5, 6, 7, 12};  // the second row's first token is in the cache
};

TEST_P(PagedAttentionOptions, ReachTheKernel) {
  if (!ort::LoadedLibrary().IsAtLeast(1, 24) && GetParam().element != kFloat) {
    EXPECT_THROW(ort::Session(Graph(), CpuSessionOptions({})),
                 Error);  // that release must be told the output's type, and is told float
    return;
  }
  const ort::Session session(Graph(), CpuSessionOptions({.intra_op_threads = 2}));
  DrawAll();
  std::vector<uint16_t> output(query_.size()), wanted(query_.size());
  std::vector<int8_t> wanted_keys = keys_, wanted_values = values_;
  RunKernel(&wanted, &wanted_keys, &wanted_values);
  RunNode(session, &output);
  EXPECT_EQ(output, wanted);
  EXPECT_EQ(keys_, wanted_keys);
  EXPECT_EQ(values_, wanted_values);
}

TEST_P(PagedAttentionOptions, RefuseAScaleOfTheWrongShape) {
  if (!ort::LoadedLibrary().IsAtLeast(1, 24) && GetParam().element != kFloat) return;  // refused at load
  const ort::Session session(Graph(), CpuSessionOptions({.intra_op_threads = 2}));
  DrawAll();
  key_scale_dims_ = {1, 2, kHeadSize};
  std::vector<uint16_t> output(query_.size());
  try {
    RunNode(session, &output);
    FAIL() << "a scale of another shape was taken";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("[2, 1, 16] is wanted"), std::string::npos) << error.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PagedAttentionOptions,
                         testing::Values(AcceptedTypes{"accepted_everything", kFloat,
                                                       kernels::ActivationType::kFloat32},
                                         AcceptedTypes{"accepted_everything_float16", ort::ElementType::kFloat16,
                                                       kernels::ActivationType::kFloat16},
                                         AcceptedTypes{"accepted_everything_bfloat16", ort::ElementType::kBfloat16,
                                                       kernels::ActivationType::kBfloat16}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace oga::operators
