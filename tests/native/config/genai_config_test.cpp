// What a config that is right reads as.
#include "config/genai_config.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::Fingerprint;
using testing::InfoLog;
using testing::SmallConfig;

// As the field's exporter writes it for a paged model.
constexpr const char* kFieldConfig = R"({
    "model": {
        "bos_token_id": 50256,
        "context_length": 2048,
        "decoder": {
            "session_options": {
                "log_id": "onnxruntime-genai",
                "intra_op_num_threads": 3,
                "provider_options": [{"cuda": {"enable_cuda_graph": "1"}}]
            },
            "filename": "model.onnx",
            "head_size": 80,
            "hidden_size": 2560,
            "inputs": {
                "input_ids": "ids",
                "block_table": "blocks",
                "block_table_windowed": "blocks_windowed",
                "cumulative_sequence_lengths": "cu_lengths",
                "past_sequence_lengths": "past_lengths",
                "attention_metadata": "metadata",
                "attention_mask": "mask",
                "position_ids": "positions",
                "logits_indices": "wanted_rows",
                "past_key_names": "past_%d_k",
                "past_value_names": "past_%d_v"
            },
            "outputs": {
                "logits": "scores",
                "present_key_names": "now_%d_k",
                "present_value_names": "now_%d_v"
            },
            "num_attention_heads": 32,
            "num_hidden_layers": 4,
            "num_key_value_heads": 8,
            "state_groups": [{"kind": "paged_kv", "layer_ids": [3, 1]}],
            "sliding_window": {"window_size": 128, "slide_key_value_cache": false, "slide_inputs": false,
                               "layers": [1], "cache_slack": 0, "pad_value": -1, "alignment": "right"}
        },
        "eos_token_id": [50256, 50295],
        "pad_token_id": 50256,
        "type": "phi",
        "vocab_size": 51200
    },
    "search": {
        "diversity_penalty": 0.0,
        "do_sample": true,
        "early_stopping": true,
        "length_penalty": 1.0,
        "max_length": 2048,
        "min_length": 0,
        "no_repeat_ngram_size": 0,
        "num_beams": 1,
        "num_return_sequences": 1,
        "past_present_share_buffer": false,
        "repetition_penalty": 1.1,
        "temperature": 0.7,
        "top_k": 40,
        "top_p": 0.95,
        "batch_size": 1,
        "chunk_size": 256,
        "random_seed": -1
    },
    "engine": {
        "dynamic_batching": {
            "block_size": 256,
            "num_blocks": 1024,
            "gpu_utilization_factor": 0.9,
            "max_batch_size": 100,
            "max_scheduled_tokens": 4096,
            "prefix_caching": true,
            "max_resident_requests": 300,
            "max_wait_steps": 7
        },
        "static_batching": {"max_batch_size": 4}
    }
})";

TEST(GenaiConfig, ReadsEveryValueOfAFieldConfig) {
  const GenaiConfig config = GenaiConfig::FromText(kFieldConfig, "/models/phi");
  EXPECT_EQ(config.folder(), "/models/phi");
  EXPECT_EQ(config.decoder_path(), "/models/phi/model.onnx");
  EXPECT_EQ(config.model_type(), "phi");
  EXPECT_EQ(config.vocab_size(), 51200);
  EXPECT_EQ(config.context_length_tokens(), 2048u);
  EXPECT_EQ(config.eos_token_ids(), (std::vector<TokenId>{50256, 50295}));
  EXPECT_EQ(config.bos_token_id(), 50256);
  EXPECT_EQ(config.pad_token_id(), 50256);

  const DecoderConfig& decoder = config.decoder();
  EXPECT_EQ(decoder.num_hidden_layers, 4);
  EXPECT_EQ(decoder.num_attention_heads, 32);
  EXPECT_EQ(decoder.num_key_value_heads, 8);
  EXPECT_EQ(decoder.head_size, 80);
  EXPECT_EQ(decoder.hidden_size, 2560);
  EXPECT_EQ(decoder.paged_layers, (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(decoder.session.intra_op_num_threads, 3);
  EXPECT_EQ(decoder.session.inter_op_num_threads, std::nullopt);
  EXPECT_EQ(config.providers(), (std::vector<std::string>{"cuda"}));
}

TEST(GenaiConfig, ReadsEverySearchAndEngineValue) {
  const GenaiConfig config = GenaiConfig::FromText(kFieldConfig, "/m");
  const SearchDefaults& search = config.search();
  EXPECT_TRUE(search.do_sample);
  EXPECT_EQ(search.temperature, 0.7f);
  EXPECT_EQ(search.top_k, 40);
  EXPECT_EQ(search.top_p, 0.95f);
  EXPECT_EQ(search.repetition_penalty, 1.1f);
  EXPECT_EQ(search.max_length_tokens, 2048u);
  EXPECT_EQ(search.min_length_tokens, 0u);
  EXPECT_EQ(search.num_beams, 1u);
  EXPECT_EQ(config.chunk_size_tokens(), 256u);

  const DynamicBatchingConfig& batching = config.dynamic_batching();
  EXPECT_EQ(batching.block_size, 256u);
  EXPECT_EQ(batching.num_blocks, 1024u);
  EXPECT_EQ(batching.gpu_utilization_factor, 0.9);
  EXPECT_EQ(batching.max_batch_size, 100u);
  EXPECT_EQ(batching.max_scheduled_tokens, 4096u);
  EXPECT_EQ(batching.max_resident_requests, 300u);
  EXPECT_EQ(batching.max_wait_steps, 7u);
}

TEST(GenaiConfig, ReportsFeaturesThatAreOffInOneLine) {
  InfoLog log;
  GenaiConfig::FromText(kFieldConfig, "/m");
  const auto lines = InfoLog::With("off in this build");
  ASSERT_EQ(lines.size(), 1u);
  for (const char* key :
       {"/m/genai_config.json", "engine.dynamic_batching.gpu_utilization_factor", "engine.static_batching",
        "model.decoder.sliding_window", "model.decoder.session_options.provider_options[0].cuda"}) {
    EXPECT_CONTAINS(lines[0], key);
  }
}

TEST(GenaiConfig, ReportsOnlyFeaturesThatWereAskedFor) {
  InfoLog log;
  SmallConfig().WithOverlay(R"({"engine": {"dynamic_batching": {"prefix_caching": true}},
                                "search": {"no_repeat_ngram_size": 3, "random_seed": -1}})");
  EXPECT_TRUE(InfoLog::lines().empty()) << InfoLog::lines().front();
  SmallConfig().WithOverlay(R"({"search": {"random_seed": 5},
      "model": {"vision": {"filename": "v.onnx"}, "decoder": {"session_options": {"enable_mem_pattern": true}}}})");
  ASSERT_EQ(InfoLog::lines().size(), 1u);
  for (const char* key : {"search.random_seed", "model.vision", "model.decoder.session_options.enable_mem_pattern"}) {
    EXPECT_CONTAINS(InfoLog::lines()[0], key);
  }
}

TEST(GenaiConfig, ReadsLeftOutKeysAsDefaults) {
  const GenaiConfig config = GenaiConfig::FromText(
      R"({"model": {"type": "llama", "vocab_size": 64, "context_length": 128, "decoder": {"filename": "sub/d.onnx",
          "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4, "head_size": 8}}})",
      "/m");
  EXPECT_EQ(config.decoder_path(), "/m/sub/d.onnx");
  EXPECT_TRUE(config.eos_token_ids().empty());
  EXPECT_EQ(config.bos_token_id(), std::nullopt);
  EXPECT_EQ(config.pad_token_id(), std::nullopt);
  EXPECT_EQ(config.decoder().hidden_size, 0);
  EXPECT_EQ(config.decoder().paged_layers, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(config.providers().empty());
  const DecoderTensorNames names;
  EXPECT_EQ(config.decoder().names.block_table, names.block_table);
  EXPECT_EQ(config.decoder().names.past_value_names, "past_key_values.%d.value");
  EXPECT_EQ(config.decoder().names.position_ids, "");
  EXPECT_EQ(config.decoder().names.logits_indices, "");
  EXPECT_FALSE(config.search().do_sample);
  EXPECT_EQ(config.search().temperature, 1.0f);
  EXPECT_EQ(config.search().top_k, 50);
  EXPECT_EQ(config.search().top_p, 1.0f);
  EXPECT_EQ(config.search().repetition_penalty, 1.0f);
  EXPECT_EQ(config.search().max_length_tokens, 0u);
  EXPECT_EQ(config.chunk_size_tokens(), 0u);
  EXPECT_EQ(config.dynamic_batching().block_size, std::nullopt);
  EXPECT_EQ(config.dynamic_batching().num_blocks, std::nullopt);
}

TEST(GenaiConfig, AcceptsTheBordersOfEveryRange) {
  const char* const overlays[] = {
      R"({"search": {"max_length": 1}})",
      R"({"search": {"max_length": 128}})",
      R"({"search": {"temperature": 0, "top_k": 0, "top_p": 0, "repetition_penalty": 0.000001}})",
      R"({"search": {"temperature": 1e30, "top_k": 2147483647, "top_p": 1, "repetition_penalty": 1e30}})",
      R"({"search": {"chunk_size": 0}})",
      R"({"search": {"min_length": 4, "num_beams": 4}})",  // refused when a request is created, where it matters
      R"({"search": {"length_penalty": -3, "diversity_penalty": 0.5, "batch_size": 4, "num_return_sequences": 2}})",
      R"({"model": {"context_length": 2147483647, "vocab_size": 2147483647}})",
      R"({"model": {"decoder": {"num_attention_heads": 2, "num_key_value_heads": 2}}})",
      R"({"model": {"decoder": {"pipeline": []}}})",
      R"({"model": {"decoder": {"inputs": {"position_ids": "", "logits_indices": null}}}})",
  };
  for (const char* overlay : overlays) EXPECT_NO_THROW(SmallConfig().WithOverlay(overlay)) << overlay;
}

TEST(GenaiConfig, TakesTextWithAByteOrderMark) {
  const GenaiConfig config =
      GenaiConfig::FromText(std::string("\xef\xbb\xbf") + testing::kSmallConfig, "/models/small");
  EXPECT_EQ(Fingerprint(config), Fingerprint(SmallConfig()));
}

}  // namespace
}  // namespace oga
