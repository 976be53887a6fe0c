#include "model/manifest.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using ort::Dimension;
using ort::ElementType;
using ort::TensorInfo;
using testing::ErrorOf;

Dimension Open(const char* symbol) { return {-1, symbol}; }
Dimension Fixed(int64_t size) { return {size, ""}; }

// The paged graph of kSmallConfig: vocabulary 64, two layers, 2 kv heads of size 8.
class Manifests : public ::testing::Test {
 protected:
  Manifests() {
    inputs_ = {{"input_ids", ElementType::kInt64, {Open("num_tokens")}},
               {"cumulative_sequence_lengths", ElementType::kInt32, {Open("rows_plus_1")}},
               {"past_sequence_lengths", ElementType::kInt32, {Open("rows")}},
               {"block_table", ElementType::kInt32, {Open("rows"), Open("columns")}},
               {"attention_metadata", ElementType::kInt32, {Fixed(3)}}};
    outputs_ = {{"logits", ElementType::kFloat, {Open("num_tokens"), Fixed(64)}}};
    for (const char* layer : {"0", "1"}) {
      for (const char* side : {"key", "value"}) {
        const std::vector<Dimension> dims = {Open("num_blocks"), Open("block_size"), Fixed(2), Fixed(8)};
        inputs_.push_back({Message("past_key_values.", layer, ".", side), ElementType::kFloat, dims});
        outputs_.push_back({Message("present.", layer, ".", side), ElementType::kFloat, dims});
      }
    }
  }

  TensorInfo& Input(const std::string& name) { return Find(inputs_, name); }
  TensorInfo& Output(const std::string& name) { return Find(outputs_, name); }
  static TensorInfo& Find(std::vector<TensorInfo>& tensors, const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  }
  static void Remove(std::vector<TensorInfo>& tensors, const std::string& name) {
    tensors.erase(std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; }));
  }

  void Overlay(const char* json) { config_ = config_.WithOverlay(json); }
  DecoderManifest Read() const { return ReadManifest(inputs_, outputs_, config_); }

  // The graph must be refused, with the file's path and every one of `parts` in the message.
  void ExpectRefused(StatusCode code, std::initializer_list<const char*> parts) const {
    const Error error = ErrorOf([&] { Read(); });
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_CONTAINS(error.message(), "/models/small/model.onnx");
    for (const char* part : parts) EXPECT_CONTAINS(error.message(), part);
  }

  GenaiConfig config_ = testing::SmallConfig();
  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
};

TEST_F(Manifests, DescribeTheCachesOfEveryLayer) {
  const DecoderManifest manifest = Read();
  ASSERT_EQ(manifest.layers.size(), 2u);
  EXPECT_EQ(manifest.layers[1].past_key, "past_key_values.1.key");
  EXPECT_EQ(manifest.layers[1].present_value, "present.1.value");
  EXPECT_EQ(manifest.num_kv_heads, 2u);
  EXPECT_EQ(manifest.head_size, 8u);
  EXPECT_EQ(manifest.cache_type, CacheType::kFloat32);
  EXPECT_EQ(manifest.bytes_per_slot(), 2u * 2 * 2 * 8 * 4);
  EXPECT_EQ(manifest.vocab_size, 64);
  EXPECT_TRUE(manifest.has_attention_metadata);
  EXPECT_EQ(manifest.position_rows, 0);
  EXPECT_EQ(manifest.fixed_num_blocks, -1);
  EXPECT_EQ(manifest.fixed_block_size, -1);
}

TEST_F(Manifests, TakeCachesOfEveryTypeThatTheKernelHas) {
  const struct {
    ElementType element;
    CacheType cache;
    uint64_t bytes;
  } types[] = {{ElementType::kFloat16, CacheType::kFloat16, 2},
               {ElementType::kBfloat16, CacheType::kBfloat16, 2},
               {ElementType::kInt8, CacheType::kInt8, 1}};
  for (const auto& type : types) {
    for (auto* tensors : {&inputs_, &outputs_}) {
      for (TensorInfo& tensor : *tensors) {
        if (tensor.dims.size() == 4) tensor.type = type.element;
      }
    }
    EXPECT_EQ(Read().cache_type, type.cache);
    EXPECT_EQ(Read().bytes_per_slot(), 2u * 2 * 2 * 8 * type.bytes);
  }
}

TEST_F(Manifests, TakeSizesThatTheGraphFixesOrLeavesOpen) {
  for (auto* tensors : {&inputs_, &outputs_}) {
    for (TensorInfo& tensor : *tensors) {
      if (tensor.dims.size() == 4) tensor.dims = {Fixed(128), Fixed(4), Open("heads"), Open("")};
    }
  }
  EXPECT_EQ(Read().fixed_num_blocks, 128);
  EXPECT_EQ(Read().fixed_block_size, 4);
  Output("present.1.key").dims[1] = Fixed(8);
  ExpectRefused(StatusCode::kModelError, {"output 'present.1.key'", "dimension 1 must be 4"});
}

TEST_F(Manifests, TellWhichTokensGetLogitsByTheNameOfTheDimension) {
  EXPECT_EQ(Read().logits_rows, LogitsRows::kPerToken);
  Output("logits").dims[0] = Open("rows");
  EXPECT_EQ(Read().logits_rows, LogitsRows::kPerRow);
  for (const Dimension& dim : {Open("something"), Open(""), Fixed(1)}) {
    Output("logits").dims[0] = dim;
    ExpectRefused(StatusCode::kModelError, {"output 'logits' (model.decoder.outputs.logits)", "'num_tokens'", "'rows'",
                                            "model.decoder.inputs.logits_indices"});
  }
  Input("input_ids").dims[0] = Open("");
  Output("logits").dims[0] = Open("");
  ExpectRefused(StatusCode::kModelError, {"unnamed"});
}

TEST_F(Manifests, PreferLogitsIndices) {
  Overlay(R"({"model": {"decoder": {"inputs": {"logits_indices": "wanted"}}}})");
  ExpectRefused(StatusCode::kModelError,
                {"input 'wanted' (model.decoder.inputs.logits_indices) is not in the graph", "input_ids, cumulative"});
  inputs_.push_back({"wanted", ElementType::kInt32, {Open("n")}});
  EXPECT_EQ(Read().logits_rows, LogitsRows::kPerIndex);
  EXPECT_EQ(Read().logits_index_type, ElementType::kInt32);
  Input("wanted").type = ElementType::kInt64;
  EXPECT_EQ(Read().logits_index_type, ElementType::kInt64);
  Input("wanted").type = ElementType::kFloat;
  ExpectRefused(StatusCode::kModelError, {"'wanted'", "element type float; int32 or int64 is wanted"});
}

TEST_F(Manifests, TakePositionsAsVectorOrMatrix) {
  Overlay(R"({"model": {"decoder": {"inputs": {"position_ids": "position_ids"}}}})");
  inputs_.push_back({"position_ids", ElementType::kInt64, {Open("num_tokens")}});
  EXPECT_EQ(Read().position_rows, 1);
  Input("position_ids").dims = {Fixed(3), Open("num_tokens")};
  EXPECT_EQ(Read().position_rows, 3);
  const std::vector<Dimension> wrong[] = {
      {Fixed(2), Open("n")}, {Open("batch"), Open("n")}, {Fixed(3), Open("a"), Open("b")}};
  for (const auto& dims : wrong) {
    Input("position_ids").dims = dims;
    ExpectRefused(StatusCode::kModelError, {"input 'position_ids' (model.decoder.inputs.position_ids)", "3"});
  }
}

TEST_F(Manifests, DoWithoutAttentionMetadata) {
  Remove(inputs_, "attention_metadata");
  EXPECT_FALSE(Read().has_attention_metadata);
}

TEST_F(Manifests, RefuseAMissingTensorByNameAndKey) {
  for (const char* name : {"input_ids", "cumulative_sequence_lengths", "past_sequence_lengths", "block_table"}) {
    const std::vector<TensorInfo> whole = inputs_;
    Remove(inputs_, name);
    ExpectRefused(StatusCode::kModelError,
                  {Message("input '", name, "' (model.decoder.inputs.", name, ") is not in the graph").c_str()});
    inputs_ = whole;
  }
  Remove(inputs_, "past_key_values.1.value");
  ExpectRefused(StatusCode::kModelError, {"'past_key_values.1.value' (model.decoder.inputs.past_value_names)"});
}

TEST_F(Manifests, RefusalsAreAboutTheKeyThatNamesTheTensorOrElseAboutTheGraph) {
  const auto field = [&] { return ErrorOf([&] { Read(); }).field(); };
  Output("logits").type = ElementType::kFloat16;
  EXPECT_EQ(field(), "model.decoder.outputs.logits");
  Input("block_table").dims = {Open("rows")};
  EXPECT_EQ(field(), "model.decoder.inputs.block_table");
  Remove(inputs_, "input_ids");
  EXPECT_EQ(field(), "model.decoder.inputs.input_ids");
  Remove(inputs_, "block_table");
  inputs_.push_back({"attention_mask", ElementType::kInt64, {Open("batch"), Open("total")}});
  EXPECT_EQ(field(), "/models/small/model.onnx") << "a plain export";
}

TEST_F(Manifests, RefuseAMissingOutput) {
  Remove(outputs_, "present.0.key");
  ExpectRefused(StatusCode::kModelError, {"output 'present.0.key' (model.decoder.outputs.present_key_names)"});
}

TEST_F(Manifests, RefuseAnotherTypeOrRank) {
  Input("input_ids").type = ElementType::kInt32;
  ExpectRefused(StatusCode::kModelError, {"'input_ids'", "element type int32; int64 is wanted"});
  Input("input_ids").type = ElementType::kInt64;
  Input("block_table").dims = {Open("rows")};
  ExpectRefused(StatusCode::kModelError, {"'block_table'", "shape [rows], of rank 1; [rows, columns] is wanted"});
}

TEST_F(Manifests, RefuseCachesOfAnotherShape) {
  Input("past_key_values.0.key").dims[2] = Fixed(4);
  ExpectRefused(StatusCode::kModelError, {"'past_key_values.0.key'", "[num_blocks, block_size, 4, 8]",
                                          "dimension 2 must be 2", "model.decoder.num_key_value_heads"});
  Input("past_key_values.0.key").dims[2] = Fixed(2);
  Output("present.1.value").dims[3] = Fixed(64);
  ExpectRefused(StatusCode::kModelError, {"'present.1.value'", "dimension 3 must be 8", "model.decoder.head_size"});
  Output("present.1.value").dims = {Open("a"), Open("b"), Open("c")};
  ExpectRefused(StatusCode::kModelError, {"'present.1.value'", "rank 3", "num_key_value_heads, head_size]"});
}

TEST_F(Manifests, RefuseCachesOfOtherTypes) {
  Output("present.0.value").type = ElementType::kFloat16;
  ExpectRefused(StatusCode::kModelError, {"'present.0.value'", "element type float16; float is wanted"});
  Input("past_key_values.0.key").type = ElementType::kFloat8e4m3fn;
  ExpectRefused(StatusCode::kUnsupported, {"'past_key_values.0.key'", "float8e4m3fn", "bfloat16 and int8"});
}

TEST_F(Manifests, RefuseLogitsOfAnotherTypeOrWidth) {
  Output("logits").type = ElementType::kFloat16;
  ExpectRefused(StatusCode::kModelError, {"'logits'", "element type float16; float is wanted"});
  Output("logits").type = ElementType::kFloat;
  Output("logits").dims[1] = Fixed(65);
  ExpectRefused(StatusCode::kModelError, {"'logits'", "[num_tokens, 65]", "must be 64", "model.vocab_size"});
  Output("logits").dims[1] = Open("vocab");
  ExpectRefused(StatusCode::kModelError, {"'logits'", "must be 64", "model.vocab_size"});
  Output("logits").dims = {Open("batch"), Open("sequence"), Fixed(64)};
  ExpectRefused(StatusCode::kModelError, {"'logits'", "[batch, sequence, 64], of rank 3"});
}

TEST_F(Manifests, RefuseLayersThatTheConfigDoesNotHave) {
  Overlay(R"({"model": {"decoder": {"num_hidden_layers": 1}}})");
  ExpectRefused(StatusCode::kModelError,
                {"'past_key_values.1.key' is the cache of a layer", "model.decoder.num_hidden_layers is 1"});
}

TEST_F(Manifests, RefuseInputsThatNothingWouldFill) {
  inputs_.push_back({"position_ids", ElementType::kInt64, {Open("num_tokens")}});
  ExpectRefused(StatusCode::kModelError, {"input 'position_ids' of shape [num_tokens]", "model.decoder.inputs"});
}

TEST_F(Manifests, RefuseWindowTables) {
  inputs_.push_back({"block_table_windowed", ElementType::kInt32, {Open("rows"), Open("ring")}});
  ExpectRefused(StatusCode::kUnsupported, {"'block_table_windowed'", "ring tables", "not built"});
  Overlay(R"({"model": {"decoder": {"inputs": {"block_table_windowed": "ring"}}}})");
  ExpectRefused(StatusCode::kUnsupported, {"'ring' (model.decoder.inputs.block_table_windowed)"});
}

TEST_F(Manifests, RecogniseAPlainExportAndSayHowToConvertIt) {
  for (const char* name : {"block_table", "cumulative_sequence_lengths", "past_sequence_lengths"}) {
    Remove(inputs_, name);
  }
  Input("input_ids").dims = {Open("batch"), Open("sequence")};
  ExpectRefused(StatusCode::kUnsupported,
                {"plain export", "input_ids of shape [batch, sequence]", "oga convert '/models/small' NEW_FOLDER"});
  inputs_.push_back({"attention_mask", ElementType::kInt64, {Open("batch"), Open("total")}});
  ExpectRefused(StatusCode::kUnsupported, {"plain export", "has the input 'attention_mask'", "oga convert"});
}

}  // namespace
}  // namespace oga
