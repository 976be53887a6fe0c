// The names of the tensors of the decoder.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ExpectRefused;
using testing::SmallConfig;
using testing::WrongValue;

TEST(TensorNamesSection, ReadsEveryName) {
  const DecoderTensorNames names = SmallConfig()
                                       .WithOverlay(R"({"model": {"decoder": {
      "inputs": {"input_ids": "ids", "block_table": "blocks", "block_table_windowed": "blocks_windowed",
                 "cumulative_sequence_lengths": "cu_lengths", "past_sequence_lengths": "past_lengths",
                 "attention_metadata": "metadata", "attention_mask": "mask", "position_ids": "positions",
                 "logits_indices": "wanted_rows", "past_key_names": "past_%d_k", "past_value_names": "past_%d_v"},
      "outputs": {"logits": "scores", "present_key_names": "now_%d_k", "present_value_names": "now_%d_v"}}}})")
                                       .decoder()
                                       .names;
  EXPECT_EQ(names.input_ids, "ids");
  EXPECT_EQ(names.block_table, "blocks");
  EXPECT_EQ(names.block_table_windowed, "blocks_windowed");
  EXPECT_EQ(names.cumulative_sequence_lengths, "cu_lengths");
  EXPECT_EQ(names.past_sequence_lengths, "past_lengths");
  EXPECT_EQ(names.attention_metadata, "metadata");
  EXPECT_EQ(names.attention_mask, "mask");
  EXPECT_EQ(names.position_ids, "positions");
  EXPECT_EQ(names.logits_indices, "wanted_rows");
  EXPECT_EQ(names.past_key_names, "past_%d_k");
  EXPECT_EQ(names.past_value_names, "past_%d_v");
  EXPECT_EQ(names.logits, "scores");
  EXPECT_EQ(names.present_key_names, "now_%d_k");
  EXPECT_EQ(names.present_value_names, "now_%d_v");
}

TEST(TensorNamesSection, LetsAnInputAndAnOutputShareAName) {
  const DecoderTensorNames names =
      SmallConfig().WithOverlay(R"({"model": {"decoder": {"inputs": {"input_ids": "logits"}}}})").decoder().names;
  EXPECT_EQ(names.input_ids, names.logits);
}

TEST(TensorNamesSection, RefusesNamesThatNoGraphCanHave) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"inputs": {"input_ids": 3}}}})", "model.decoder.inputs.input_ids", "is 3", "a string"},
      {R"({"model": {"decoder": {"inputs": {"input_ids": ""}}}})", "model.decoder.inputs.input_ids", "is the string ''",
       "not empty"},
      {R"({"model": {"decoder": {"inputs": {"position_ids": []}}}})", "model.decoder.inputs.position_ids",
       "is an empty list", "a string"},
      {R"({"model": {"decoder": {"inputs": {"past_key_names": "past.key"}}}})", "model.decoder.inputs.past_key_names",
       "is the string 'past.key'", "one %d for the layer"},
      {R"({"model": {"decoder": {"inputs": {"past_value_names": "past.%s"}}}})",
       "model.decoder.inputs.past_value_names", "is the string 'past.%s'", "one %d for the layer"},
      {R"({"model": {"decoder": {"inputs": {"past_value_names": "%d.%d"}}}})", "model.decoder.inputs.past_value_names",
       "is the string '%d.%d'", "one %d for the layer"},
      {R"({"model": {"decoder": {"inputs": {"past_value_names": "%%.%d"}}}})", "model.decoder.inputs.past_value_names",
       "is the string '%%.%d'", "no other %"},
      {R"({"model": {"decoder": {"inputs": {"past_value_names": "%n%d"}}}})", "model.decoder.inputs.past_value_names",
       "is the string '%n%d'", "no other %"},
      {R"({"model": {"decoder": {"outputs": {"present_key_names": "k"}}}})", "model.decoder.outputs.present_key_names",
       "is the string 'k'", "one %d for the layer"},
      {R"({"model": {"decoder": {"inputs": {"past_value_names": "past_key_values.%d.key"}}}})",
       "model.decoder.inputs.past_value_names", "is the string 'past_key_values.%d.key'",
       "another tensor than model.decoder.inputs.past_key_names"},
      {R"({"model": {"decoder": {"inputs": {"input_ids": "block_table"}}}})", "model.decoder.inputs.input_ids",
       "is the string 'block_table'", "another tensor than model.decoder.inputs.block_table"},
      {R"({"model": {"decoder": {"outputs": {"present_value_names": "present.%d.key"}}}})",
       "model.decoder.outputs.present_value_names", "is the string 'present.%d.key'",
       "another tensor than model.decoder.outputs.present_key_names"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

}  // namespace
}  // namespace oga
