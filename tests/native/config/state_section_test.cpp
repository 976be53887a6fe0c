// State groups and windows: which layers own paged keys and values.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ExpectRefused;
using testing::SmallConfig;
using testing::WrongValue;

TEST(StateSection, PagesAllLayersWithoutGroupsAndElseThoseOfThePagedGroupInItsOrder) {
  const auto layers = [](const std::string& groups) {
    return SmallConfig()
        .WithOverlay(Message(R"({"model": {"decoder": {"state_groups": )", groups, "}}}"))
        .decoder()
        .paged_layers;
  };
  EXPECT_EQ(layers("null"), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(layers(R"([{"kind": "paged_kv", "layer_ids": [1, 0]}])"), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(layers(R"([{"kind": "fixed_conv", "layer_ids": [0]}, {"kind": "paged_kv", "layer_ids": [1]}])"),
            (std::vector<int32_t>{1}));
}

TEST(StateSection, TakesAWindowOverAnyPagedLayers) {
  for (const char* window : {"{}", R"({"layers": []})", R"({"layers": [1, 0], "alignment": "left"})",
                             R"({"window_size": 1, "cache_slack": 0, "pad_value": -2147483648})"}) {
    EXPECT_NO_THROW(SmallConfig().WithOverlay(Message(R"({"model": {"decoder": {"sliding_window": )", window, "}}}")))
        << window;
  }
}

TEST(StateSection, RefusesGroupsAndWindowsThatNoDecoderHas) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"state_groups": {}}}})", "model.decoder.state_groups", "is an object",
       "a list of objects with kind and layer_ids"},
      {R"({"model": {"decoder": {"state_groups": []}}})", "model.decoder.state_groups", "is an empty list",
       "one 'paged_kv' group"},
      {R"({"model": {"decoder": {"state_groups": [3]}}})", "model.decoder.state_groups[0]", "is 3", "an object"},
      {R"({"model": {"decoder": {"state_groups": [{"layer_ids": [0]}]}}})", "model.decoder.state_groups[0].kind",
       "is missing", "a string"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "", "layer_ids": [0]}]}}})",
       "model.decoder.state_groups[0].kind", "is the string ''", "not empty"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "fixed", "layer_ids": [0]}]}}})",
       "model.decoder.state_groups[0].kind", "is the string 'fixed'", "'paged_kv', 'fixed_conv' or 'fixed_recurrent'"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv"}]}}})", "model.decoder.state_groups[0].layer_ids",
       "is missing", "a list of layer ids"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layers": [0]}]}}})",
       "model.decoder.state_groups[0].layer_ids", "is missing", "a list of layer ids"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": []}]}}})",
       "model.decoder.state_groups[0].layer_ids", "is an empty list", "at least one layer id"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": 0}]}}})",
       "model.decoder.state_groups[0].layer_ids", "is 0", "a list of layer ids"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [0, 2]}]}}})",
       "model.decoder.state_groups[0].layer_ids[1]", "is 2", "from 0 to 1"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [-1]}]}}})",
       "model.decoder.state_groups[0].layer_ids[0]", "is -1", "from 0 to 1"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [1, 1]}]}}})",
       "model.decoder.state_groups[0].layer_ids[1]", "is 1", "does not name before"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": ["0"]}]}}})",
       "model.decoder.state_groups[0].layer_ids[0]", "is the string '0'", "an integer"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [0]},
                                                  {"kind": "paged_kv", "layer_ids": [1]}]}}})",
       "model.decoder.state_groups[1].kind", "is the string 'paged_kv'", "a kind that no group before has"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "fixed_conv", "layer_ids": [0]}]}}})",
       "model.decoder.state_groups", "is a list of 1 value", "one 'paged_kv' group"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [0], "id": "main"}]}}})",
       "model.decoder.state_groups[0].id", "does not belong in a state group", "model.decoder.inputs"},
      {R"({"model": {"decoder": {"state_groups": [{"kind": "paged_kv", "layer_ids": [0], "bindings": {}}]}}})",
       "model.decoder.state_groups[0].bindings", "does not belong in a state group", "model.decoder.inputs"},
      {R"({"model": {"decoder": {"sliding_window": 128}}})", "model.decoder.sliding_window", "is 128", "an object"},
      {R"({"model": {"decoder": {"sliding_window": {"window_size": 0}}}})", "model.decoder.sliding_window.window_size",
       "is 0", "from 1 to"},
      {R"({"model": {"decoder": {"sliding_window": {"cache_slack": -1}}}})", "model.decoder.sliding_window.cache_slack",
       "is -1", "from 0 to 2147483647"},
      {R"({"model": {"decoder": {"sliding_window": {"pad_value": -2147483649}}}})",
       "model.decoder.sliding_window.pad_value", "is -2147483649", "from -2147483648 to 2147483647"},
      {R"({"model": {"decoder": {"sliding_window": {"slide_key_value_cache": 0}}}})",
       "model.decoder.sliding_window.slide_key_value_cache", "is 0", "true or false"},
      {R"({"model": {"decoder": {"sliding_window": {"alignment": "middle"}}}})",
       "model.decoder.sliding_window.alignment", "is the string 'middle'", "'left' or 'right'"},
      {R"({"model": {"decoder": {"sliding_window": {"slide_inputs": 1}}}})",
       "model.decoder.sliding_window.slide_inputs", "is 1", "true or false"},
      {R"({"model": {"decoder": {"sliding_window": {"layers": [5]}}}})", "model.decoder.sliding_window.layers[0]",
       "is 5", "from 0 to 1"},
      {R"({"model": {"decoder": {"sliding_window": {"layers": [1]},
                                 "state_groups": [{"kind": "paged_kv", "layer_ids": [0]}]}}})",
       "model.decoder.sliding_window.layers", "layer 1 is not in it", "'paged_kv' group only"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

}  // namespace
}  // namespace oga
