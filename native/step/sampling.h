// Plain values of token choice: what a host may set, the model's defaults, and the resolved settings of one turn.
#pragma once

#include <cstdint>
#include <optional>

namespace oga {

// The model's own generation defaults (`search` in its config), already validated.
struct SearchDefaults {
  bool do_sample = false;
  float temperature = 1.0f;
  int32_t top_k = 50;
  float top_p = 1.0f;
  float repetition_penalty = 1.0f;
  uint64_t max_length_tokens = 0;  // 0: the context length
  uint64_t min_length_tokens = 0;  // CreateRequest refuses a model that sets it
  uint64_t num_beams = 1;          // CreateRequest refuses any other value
};

// What a host set for a turn; an unset field takes the model's default.
struct SamplingOptions {
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> repetition_penalty;
  std::optional<uint64_t> seed;
  uint64_t max_generated_tokens = 0;  // 0 is no limit
  uint64_t min_generated_tokens = 0;
};

// Resolved and consistent. `greedy` already accounts for temperature 0 and top_k 1; then no warper field acts.
struct SamplingSettings {
  bool greedy = true;
  float temperature = 1.0f;
  int32_t top_k = 0;   // 0 is off
  float top_p = 1.0f;  // 1 is off
  float repetition_penalty = 1.0f;
  std::optional<uint64_t> seed;
  uint64_t max_generated_tokens = 0;
  uint64_t min_generated_tokens = 0;
};

}  // namespace oga
