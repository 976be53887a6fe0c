// A host whose engine runs the scripted executor, so that a test decides how executions end.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "capi/boundary.h"
#include "capi/harness.h"
#include "native/engine/engine_harness.h"
#include "simulation/allocation_guard.h"

namespace oga::capi_test {

// The script's own allocations are none of liboga's.
class UncountedExecutor : public testing::ScriptedExecutor {
 public:
  using ScriptedExecutor::ScriptedExecutor;

  ExecutionResult Execute(const ExecutionBatch& batch) override {
    const testing::AllocationPause pause;
    return ScriptedExecutor::Execute(batch);
  }
};

struct ScriptedHost {
  // `tokens`: the texts of the vocabulary, for guidance.
  explicit ScriptedHost(std::shared_ptr<const TokenBytes> tokens = nullptr) {
    EngineParts parts;
    parts.tokens = std::move(tokens);
    parts.fault_hook = [this](FaultPoint point) {
      if (at_point) at_point(point);
    };
    parts.limits = testing::EngineHarness::SmallLimits();
    parts.traits.vocab_size = testing::EngineHarness::kVocab;
    parts.traits.eos_token_ids = {testing::EngineHarness::kEos};
    parts.validate = true;
    auto scripted =
        std::make_unique<UncountedExecutor>(parts.limits, testing::EngineHarness::kVocab, testing::EngineHarness::Next);
    executor = scripted.get();
    parts.executor = std::move(scripted);
    engine.reset(new OgaEngine{oga::Engine::Create(std::move(parts))});
    buffer = MakeBuffer(engine.get());
  }

  // What a request must generate after `prompt`, by the script.
  static std::vector<int32_t> Expected(const std::vector<int32_t>& prompt, size_t tokens) {
    return testing::EngineHarness::Reference(prompt, tokens);
  }

  void FailNext(ExecutionStatus status) { executor->outcomes.push_back({.status = status}); }

  ScriptedHost(const ScriptedHost&) = delete;
  ScriptedHost& operator=(const ScriptedHost&) = delete;

  testing::ScriptedExecutor* executor = nullptr;
  std::function<void(FaultPoint)> at_point;  // called at every named point of a step; may throw
  EngineHandle engine;
  BufferHandle buffer;
};

}  // namespace oga::capi_test
