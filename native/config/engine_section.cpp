#include "config/config_sections.h"

namespace oga {

namespace {

// The engine keeps arrays of these lengths, so a mistyped limit must be an error here and not an allocation later.
constexpr int64_t kMaxBlockSize = 65536;
constexpr int64_t kMaxBlocks = INT32_MAX;  // a block id is an int32 in the model's tables
constexpr int64_t kMaxRows = 65536;
constexpr int64_t kMaxStepTokens = int64_t{1} << 24;
constexpr int64_t kMaxResidents = int64_t{1} << 20;
constexpr int64_t kMaxWaitSteps = 1000000;

void CheckStaticBatching(const JsonObject& engine, ConfigNotes& notes) {
  const std::optional<JsonObject> batching = engine.Object("static_batching");
  if (!batching) return;
  batching->Integer("max_batch_size", {1, kMaxRows});
  notes.AddOff(batching->value(), batching->path(), "a paged model runs with dynamic batching");
}

}  // namespace

DynamicBatchingConfig ReadEngine(const JsonObject& root, ConfigNotes& notes) {
  DynamicBatchingConfig config;
  const std::optional<JsonObject> engine = root.Object("engine");
  if (!engine) return config;
  CheckStaticBatching(*engine, notes);
  const std::optional<JsonObject> batching = engine->Object("dynamic_batching");
  if (!batching) return config;
  const auto count = [&](const char* key, int64_t max) -> std::optional<uint32_t> {
    const std::optional<int64_t> value = batching->Integer(key, {1, max});
    return value ? std::optional<uint32_t>(static_cast<uint32_t>(*value)) : std::nullopt;
  };
  config.block_size = count("block_size", kMaxBlockSize);
  config.num_blocks = count("num_blocks", kMaxBlocks);
  config.max_batch_size = count("max_batch_size", kMaxRows);
  config.max_scheduled_tokens = count("max_scheduled_tokens", kMaxStepTokens);
  config.max_resident_requests = count("max_resident_requests", kMaxResidents);
  config.max_wait_steps = count("max_wait_steps", kMaxWaitSteps);
  if (batching->Real("gpu_utilization_factor", {.min = 0, .max = 1, .min_excluded = true})) {
    const JsonValue& factor = *batching->Find("gpu_utilization_factor");
    config.gpu_utilization_factor = factor.real;
    notes.AddOff(factor, batching->PathOf("gpu_utilization_factor"),
                 "models run on the CPU; num_blocks comes from the free memory when it is not set");
  }
  config.prefix_caching = batching->Boolean("prefix_caching");
  return config;
}

}  // namespace oga
