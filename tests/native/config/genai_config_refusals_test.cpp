// Every way a config can be wrong. Each row is tried as a file and as an overlay, and each refusal must name where, the
// JSON path, what was found and what was wanted, and leave the old config as it was.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "config/json_reader.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::Fingerprint;
using testing::kSmallConfig;
using testing::SmallConfig;
using testing::WriteJson;

JsonValue Parse(const std::string& text) { return ReadJson(text, std::make_shared<const std::string>("test")); }

struct WrongValue {
  const char* overlay;
  const char* path;
  const char* found;
  const char* wanted;
};

void ExpectRefused(const WrongValue& row) {
  SCOPED_TRACE(row.overlay);
  const auto expect_named = [&](const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(error.field(), row.path);
    EXPECT_CONTAINS(error.message(), std::string(": ") + row.path + " ");
    EXPECT_CONTAINS(error.message(), row.found);
    EXPECT_CONTAINS(error.message(), row.wanted);
  };
  JsonValue as_file = Parse(kSmallConfig);
  MergeOver(as_file, Parse(row.overlay));
  const Error from_file = ErrorOf([&] { GenaiConfig::FromText(WriteJson(as_file), "/models/small"); });
  expect_named(from_file);
  EXPECT_CONTAINS(from_file.message(), "/models/small/genai_config.json, line ");

  const GenaiConfig config = SmallConfig();
  const std::string before = Fingerprint(config);
  const Error from_overlay = ErrorOf([&] { config.WithOverlay(row.overlay); });
  expect_named(from_overlay);
  EXPECT_CONTAINS(from_overlay.message(), "the overlay is refused and the config stays as it was: ");
  EXPECT_EQ(Fingerprint(config), before);
}

TEST(GenaiConfigRefusals, ValuesOfTheModelSection) {
  const WrongValue rows[] = {
      {R"({"model": 5})", "model", "is 5", "must be an object"},
      {R"({"model": []})", "model", "is an empty list", "must be an object"},
      {R"({"model": null})", "model", "is null", "must be an object"},
      {R"({"model": {"type": 3}})", "model.type", "is 3", "a string"},
      {R"({"model": {"type": ""}})", "model.type", "is the string ''", "not empty"},
      {R"({"model": {"type": null}})", "model.type", "is null", "a string"},
      {R"({"model": {"vocab_size": 0}})", "model.vocab_size", "is 0", "from 1 to 2147483647"},
      {R"({"model": {"vocab_size": -5}})", "model.vocab_size", "is -5", "from 1 to 2147483647"},
      {R"({"model": {"vocab_size": 2.5}})", "model.vocab_size", "is 2.5", "an integer"},
      {R"({"model": {"vocab_size": "64"}})", "model.vocab_size", "is the string '64'", "an integer"},
      {R"({"model": {"vocab_size": true}})", "model.vocab_size", "is true", "an integer"},
      {R"({"model": {"vocab_size": [64]}})", "model.vocab_size", "is a list of 1 value", "an integer"},
      {R"({"model": {"vocab_size": {}}})", "model.vocab_size", "is an object", "an integer"},
      {R"({"model": {"vocab_size": null}})", "model.vocab_size", "is null", "an integer"},
      {R"({"model": {"vocab_size": 2147483648}})", "model.vocab_size", "is 2147483648", "from 1 to 2147483647"},
      {R"({"model": {"vocab_size": 99999999999999999999}})", "model.vocab_size", "is 99999999999999999999",
       "from 1 to 2147483647"},
      {R"({"model": {"context_length": 0}})", "model.context_length", "is 0", "from 1 to 2147483647"},
      {R"({"model": {"context_length": "long"}})", "model.context_length", "is the string 'long'", "an integer"},
      {R"({"model": {"decoder": []}})", "model.decoder", "is an empty list", "an object"},
      {R"({"model": {"vision": 3}})", "model.vision", "is 3", "an object"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(GenaiConfigRefusals, TokenIds) {
  const WrongValue rows[] = {
      {R"({"model": {"eos_token_id": "</s>"}})", "model.eos_token_id", "is the string '</s>'",
       "a token id (an integer from 0 to 63), a list of them, or null"},
      {R"({"model": {"eos_token_id": true}})", "model.eos_token_id", "is true", "a token id"},
      {R"({"model": {"eos_token_id": {}}})", "model.eos_token_id", "is an object", "a token id"},
      {R"({"model": {"eos_token_id": 1.5}})", "model.eos_token_id", "is 1.5", "from 0 to 63"},
      {R"({"model": {"eos_token_id": 64}})", "model.eos_token_id", "is 64", "from 0 to 63"},
      {R"({"model": {"eos_token_id": -1}})", "model.eos_token_id", "is -1", "from 0 to 63"},
      {R"({"model": {"eos_token_id": [1, "2"]}})", "model.eos_token_id[1]", "is the string '2'", "from 0 to 63"},
      {R"({"model": {"eos_token_id": [1, 2, 64]}})", "model.eos_token_id[2]", "is 64", "from 0 to 63"},
      {R"({"model": {"eos_token_id": [[1]]}})", "model.eos_token_id[0]", "is a list of 1 value", "an integer"},
      {R"({"model": {"eos_token_id": [null]}})", "model.eos_token_id[0]", "is null", "an integer"},
      {R"({"model": {"pad_token_id": "x"}})", "model.pad_token_id", "is the string 'x'", "a token id"},
      {R"({"model": {"pad_token_id": -2}})", "model.pad_token_id", "is -2", "from -1 to 2147483647"},
      {R"({"model": {"pad_token_id": [0, false]}})", "model.pad_token_id[1]", "is false", "an integer"},
      {R"({"model": {"bos_token_id": 0.5}})", "model.bos_token_id", "is 0.5", "an integer"},
      {R"({"model": {"sep_token_id": "x"}})", "model.sep_token_id", "is the string 'x'", "a token id"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(GenaiConfigRefusals, ValuesOfTheDecoderSection) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"filename": ""}}})", "model.decoder.filename", "is the string ''", "not empty"},
      {R"({"model": {"decoder": {"filename": 1}}})", "model.decoder.filename", "is 1", "a string"},
      {R"({"model": {"decoder": {"filename": "/etc/passwd"}}})", "model.decoder.filename",
       "is the string '/etc/passwd'", "relative to the model folder"},
      {R"({"model": {"decoder": {"num_hidden_layers": 0}}})", "model.decoder.num_hidden_layers", "is 0",
       "from 1 to 65536"},
      {R"({"model": {"decoder": {"num_hidden_layers": 1.5}}})", "model.decoder.num_hidden_layers", "is 1.5",
       "an integer"},
      {R"({"model": {"decoder": {"num_hidden_layers": 2147483647}}})", "model.decoder.num_hidden_layers",
       "is 2147483647", "from 1 to 65536"},
      {R"({"model": {"decoder": {"num_attention_heads": -4}}})", "model.decoder.num_attention_heads", "is -4",
       "from 1 to 65536"},
      {R"({"model": {"decoder": {"num_key_value_heads": false}}})", "model.decoder.num_key_value_heads", "is false",
       "an integer"},
      {R"({"model": {"decoder": {"num_key_value_heads": 3}}})", "model.decoder.num_key_value_heads", "is 3",
       "a divisor of model.decoder.num_attention_heads, which is 4"},
      {R"({"model": {"decoder": {"num_key_value_heads": 8}}})", "model.decoder.num_key_value_heads", "is 8",
       "a divisor of model.decoder.num_attention_heads, which is 4"},
      {R"({"model": {"decoder": {"head_size": "8"}}})", "model.decoder.head_size", "is the string '8'", "an integer"},
      {R"({"model": {"decoder": {"hidden_size": 0}}})", "model.decoder.hidden_size", "is 0", "from 1 to 2147483647"},
      {R"({"model": {"decoder": {"inputs": []}}})", "model.decoder.inputs", "is an empty list", "an object"},
      {R"({"model": {"decoder": {"outputs": "x"}}})", "model.decoder.outputs", "is the string 'x'", "an object"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(GenaiConfigRefusals, TensorNames) {
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

TEST(GenaiConfigRefusals, StringsWithANul) {
  const GenaiConfig config = SmallConfig();
  const Error error = ErrorOf([&] { config.WithOverlay(R"({"model": {"decoder": {"filename": "a\u0000b"}}})"); });
  EXPECT_CONTAINS(error.message(), "model.decoder.filename is the string 'a\\x00b'; it must be a string without NUL");
}

TEST(GenaiConfigRefusals, StateGroupsAndWindows) {
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

TEST(GenaiConfigRefusals, SessionOptions) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"session_options": []}}})", "model.decoder.session_options", "is an empty list",
       "an object"},
      {R"({"model": {"decoder": {"session_options": {"intra_op_num_threads": -1}}}})",
       "model.decoder.session_options.intra_op_num_threads", "is -1", "from 0 to 4096"},
      {R"({"model": {"decoder": {"session_options": {"inter_op_num_threads": "2"}}}})",
       "model.decoder.session_options.inter_op_num_threads", "is the string '2'", "an integer"},
      {R"({"model": {"decoder": {"session_options": {"enable_mem_pattern": 0}}}})",
       "model.decoder.session_options.enable_mem_pattern", "is 0", "true or false"},
      {R"({"model": {"decoder": {"session_options": {"cpu_matmul": "int8"}}}})",
       "model.decoder.session_options.cpu_matmul", "is the string 'int8'", "\"auto\", \"fp32\" or \"bf16\""},
      {R"({"model": {"decoder": {"session_options": {"cpu_matmul": 16}}}})", "model.decoder.session_options.cpu_matmul",
       "is 16", "a string"},
      {R"({"model": {"decoder": {"session_options": {"log_id": 0}}}})", "model.decoder.session_options.log_id", "is 0",
       "a string"},
      {R"({"model": {"decoder": {"session_options": {"log_severity_level": 9}}}})",
       "model.decoder.session_options.log_severity_level", "is 9", "from 0 to 4"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": {"cuda": {}}}}}})",
       "model.decoder.session_options.provider_options", "is an object", "a list of objects like {\"cpu\": {}}"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": ["cuda"]}}}})",
       "model.decoder.session_options.provider_options[0]", "is the string 'cuda'", "an object like {\"cpu\": {}}"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": [{"cpu": {}}, {}]}}}})",
       "model.decoder.session_options.provider_options[1]", "is an object", "named by its provider"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": [{"cpu": 1}]}}}})",
       "model.decoder.session_options.provider_options[0].cpu", "is 1", "an object"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": [{"": {}}]}}}})",
       "model.decoder.session_options.provider_options[0]", "is an object", "named by its provider"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(GenaiConfigRefusals, ValuesOfTheSearchSection) {
  const WrongValue rows[] = {
      {R"({"search": 1})", "search", "is 1", "an object"},
      {R"({"search": {"do_sample": 1}})", "search.do_sample", "is 1", "true or false"},
      {R"({"search": {"do_sample": "true"}})", "search.do_sample", "is the string 'true'", "true or false"},
      {R"({"search": {"temperature": -0.1}})", "search.temperature", "is -0.1", "not less than 0"},
      {R"({"search": {"temperature": "0.7"}})", "search.temperature", "is the string '0.7'", "a number"},
      {R"({"search": {"temperature": true}})", "search.temperature", "is true", "a number"},
      {R"({"search": {"temperature": 1e39}})", "search.temperature", "is 1e39", "a 32-bit float can hold"},
      {R"({"search": {"top_k": -1}})", "search.top_k", "is -1", "from 0 to 2147483647"},
      {R"({"search": {"top_k": 1.5}})", "search.top_k", "is 1.5", "an integer"},
      {R"({"search": {"top_p": 1.1}})", "search.top_p", "is 1.1", "not less than 0 and not greater than 1"},
      {R"({"search": {"top_p": -0.5}})", "search.top_p", "is -0.5", "not less than 0 and not greater than 1"},
      {R"({"search": {"repetition_penalty": 0}})", "search.repetition_penalty", "is 0", "greater than 0"},
      {R"({"search": {"repetition_penalty": 1e-60}})", "search.repetition_penalty", "is 1e-60", "greater than 0"},
      {R"({"search": {"repetition_penalty": -2}})", "search.repetition_penalty", "is -2", "greater than 0"},
      {R"({"search": {"max_length": 0}})", "search.max_length", "is 0", "1 or more"},
      {R"({"search": {"max_length": -1}})", "search.max_length", "is -1", "1 or more"},
      {R"({"search": {"max_length": 129}})", "search.max_length", "is 129",
       "at most model.context_length, which is 128"},
      {R"({"search": {"min_length": -1}})", "search.min_length", "is -1", "0 or more"},
      {R"({"search": {"num_beams": 0}})", "search.num_beams", "is 0", "from 1 to"},
      {R"({"search": {"chunk_size": -1}})", "search.chunk_size", "is -1", "from 0 to 16777216"},
      {R"({"search": {"chunk_size": 2.5}})", "search.chunk_size", "is 2.5", "an integer"},
      {R"({"search": {"batch_size": 0}})", "search.batch_size", "is 0", "from 1 to"},
      {R"({"search": {"num_return_sequences": "1"}})", "search.num_return_sequences", "is the string '1'",
       "an integer"},
      {R"({"search": {"early_stopping": 1}})", "search.early_stopping", "is 1", "true or false"},
      {R"({"search": {"past_present_share_buffer": 0}})", "search.past_present_share_buffer", "is 0", "true or false"},
      {R"({"search": {"length_penalty": "x"}})", "search.length_penalty", "is the string 'x'", "a number"},
      {R"({"search": {"diversity_penalty": []}})", "search.diversity_penalty", "is an empty list", "a number"},
      {R"({"search": {"no_repeat_ngram_size": -1}})", "search.no_repeat_ngram_size", "is -1", "from 0 to"},
      {R"({"search": {"random_seed": -2}})", "search.random_seed", "is -2", "-1 or more"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(GenaiConfigRefusals, ValuesOfTheEngineSection) {
  const WrongValue rows[] = {
      {R"({"engine": []})", "engine", "is an empty list", "an object"},
      {R"({"engine": {"dynamic_batching": true}})", "engine.dynamic_batching", "is true", "an object"},
      {R"({"engine": {"static_batching": 4}})", "engine.static_batching", "is 4", "an object"},
      {R"({"engine": {"static_batching": {"max_batch_size": 0}}})", "engine.static_batching.max_batch_size", "is 0",
       "from 1 to 65536"},
      {R"({"engine": {"dynamic_batching": {"gpu_utilization_factor": 0}}})",
       "engine.dynamic_batching.gpu_utilization_factor", "is 0", "greater than 0 and not greater than 1"},
      {R"({"engine": {"dynamic_batching": {"gpu_utilization_factor": 1.5}}})",
       "engine.dynamic_batching.gpu_utilization_factor", "is 1.5", "greater than 0 and not greater than 1"},
      {R"({"engine": {"dynamic_batching": {"prefix_caching": "on"}}})", "engine.dynamic_batching.prefix_caching",
       "is the string 'on'", "true or false"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
  const struct {
    const char* key;
    const char* max;
  } limits[] = {{"block_size", "65536"},
                {"num_blocks", "2147483647"},
                {"max_batch_size", "65536"},
                {"max_scheduled_tokens", "16777216"},
                {"max_resident_requests", "1048576"},
                {"max_wait_steps", "1000000"}};
  for (const auto& limit : limits) {
    const std::string path = Message("engine.dynamic_batching.", limit.key);
    const std::string wanted = Message("an integer from 1 to ", limit.max);
    for (const char* value : {"0", "-1", "1.5", "true", "4000000000", "18446744073709551616"}) {
      const std::string overlay = Message("{\"engine\": {\"dynamic_batching\": {\"", limit.key, "\": ", value, "}}}");
      const std::string found = Message("is ", value, ";");
      ExpectRefused({overlay.c_str(), path.c_str(), found.c_str(), wanted.c_str()});
    }
    const std::string overlay = Message("{\"engine\": {\"dynamic_batching\": {\"", limit.key, "\": \"8\"}}}");
    ExpectRefused({overlay.c_str(), path.c_str(), "is the string '8'", wanted.c_str()});
  }
}

TEST(GenaiConfigRefusals, EachRequiredKeyThatIsMissing) {
  const struct {
    const char* parent;
    const char* key;
    const char* wanted;
  } rows[] = {
      {"", "model", "an object"},
      {"model", "type", "a string"},
      {"model", "vocab_size", "an integer from 1 to 2147483647"},
      {"model", "context_length", "an integer from 1 to 2147483647"},
      {"model", "decoder", "an object"},
      {"model.decoder", "filename", "a string"},
      {"model.decoder", "num_hidden_layers", "an integer from 1 to 65536"},
      {"model.decoder", "num_attention_heads", "an integer from 1 to 65536"},
      {"model.decoder", "num_key_value_heads", "an integer from 1 to 65536"},
      {"model.decoder", "head_size", "an integer from 1 to 65536"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.key);
    JsonValue root = Parse(kSmallConfig);
    JsonValue* parent = &root;
    if (std::string(row.parent) != "") parent = parent->Find("model");
    if (std::string(row.parent) == "model.decoder") parent = parent->Find("decoder");
    std::erase_if(parent->members, [&](const JsonMember& member) { return member.name == row.key; });
    const Error error = ErrorOf([&] { GenaiConfig::FromText(WriteJson(root), "/models/small"); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_CONTAINS(error.message(), "/models/small/genai_config.json, line ");
    EXPECT_CONTAINS(error.message(), Message(": ", JoinPath(row.parent, row.key), " is missing; it is required"));
    EXPECT_CONTAINS(error.message(), row.wanted);
  }
}

TEST(GenaiConfigRefusals, NamesTheLineOfTheValue) {
  std::string text = kSmallConfig;
  text.replace(text.find("64"), 2, "0");
  EXPECT_EQ(ErrorOf([&] { GenaiConfig::FromText(text, "/m"); }).message(),
            "/m/genai_config.json, line 4: model.vocab_size is 0; it must be an integer from 1 to 2147483647");
}

TEST(GenaiConfigRefusals, ATopLevelThatIsNoObject) {
  for (const char* text : {"[]", "3", "\"x\"", "null", "true"}) {
    const Error error = ErrorOf([&] { GenaiConfig::FromText(text, "/m"); });
    EXPECT_CONTAINS(error.message(), "/m/genai_config.json, line 1: the top level is ");
    EXPECT_CONTAINS(error.message(), "it must be a JSON object");
    const Error overlay_error = ErrorOf([&] { SmallConfig().WithOverlay(text); });
    EXPECT_CONTAINS(overlay_error.message(), "overlay, line 1: the top level is ");
  }
}

TEST(GenaiConfigRefusals, ADecoderOfSeveralGraphsByName) {
  const Error error =
      ErrorOf([] { SmallConfig().WithOverlay(R"({"model": {"decoder": {"pipeline": [{"a": {}}]}}})"); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_CONTAINS(error.message(), "model.decoder.pipeline splits the decoder into several graphs");
}

TEST(GenaiConfigRefusals, KeysAreComparedByteByByte) {
  const Error error =
      ErrorOf([] { SmallConfig().WithOverlay(R"({"engine": {"dynamic_batching": {"BLOCK_SIZE": 4}}})"); });
  EXPECT_CONTAINS(error.message(), "engine.dynamic_batching.BLOCK_SIZE is not a known key");
}

}  // namespace
}  // namespace oga
