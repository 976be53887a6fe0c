// Every declared slot is reached by real use of the installed runtime, so a wrong index or signature cannot hide, and
// no slot is declared that nothing calls.
#include "ort/abi.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "base/error.h"
#include "native/operators/cpu/product_case.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/environment.h"
#include "ort/io_binding.h"
#include "ort/library.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::ort {
namespace {

std::map<int, std::atomic<int>>& Calls() {
  static std::map<int, std::atomic<int>> calls;
  return calls;
}

// Stands in for one slot: counts, and calls the runtime's function.
template <int slot, typename Function>
struct Counted;
template <int slot, typename Result, typename... Arguments>
struct Counted<slot, Result (*)(Arguments...) noexcept> {
  static inline Result (*real)(Arguments...) noexcept = nullptr;
  static Result Call(Arguments... arguments) noexcept {
    ++Calls().at(slot);
    return real(arguments...);
  }
};

class DeclaredSlots : public test::WithRuntime {
 protected:
  void SetUp() override {
    test::WithRuntime::SetUp();
    Shutdown();
    auto& api = const_cast<abi::Api&>(Api());  // the table itself is ours and not const
    original_ = api;
#define OGA_COUNT(slot, Result, Name, Parameters)           \
  Calls()[slot] = 0;                                        \
  Counted<slot, decltype(abi::Api::Name)>::real = api.Name; \
  api.Name = &Counted<slot, decltype(abi::Api::Name)>::Call;
    OGA_ORT_SLOTS(OGA_COUNT)
#undef OGA_COUNT
  }

  void TearDown() override {
    Shutdown();
    const_cast<abi::Api&>(Api()) = original_;
  }

  abi::Api original_;
};

void RunOnce() {
  const Session session(test::DataPath("models/operators/accepted_float16_cache.onnx"),
                        operators::CpuSessionOptions({.intra_op_threads = 2}));
  std::vector<float> query(32, 1.0f), key(16, 1.0f), value(16, 3.0f), output(32, 0.0f);
  std::vector<uint16_t> key_cache(4 * 16, 0), value_cache(4 * 16, 0);
  std::vector<int32_t> cumulative = {0, 1}, past = {0}, table = {0};
  IoBinding binding(session);
  const auto tensor = [&](auto& values, std::vector<int64_t> dims, ElementType type) {
    return Tensor(session, AddressOf(values.data()), values.size() * sizeof(values[0]), dims, type);
  };
  binding.BindInput("query", tensor(query, {1, 32}, ElementType::kFloat));
  binding.BindInput("key", tensor(key, {1, 16}, ElementType::kFloat));
  binding.BindInput("value", tensor(value, {1, 16}, ElementType::kFloat));
  binding.BindInput("cumulative", tensor(cumulative, {2}, ElementType::kInt32));
  binding.BindInput("past", tensor(past, {1}, ElementType::kInt32));
  binding.BindInput("table", tensor(table, {1, 1}, ElementType::kInt32));
  for (const char* suffix : {"", "_out"}) {
    const auto bind = [&](const std::string& name, auto& cache) {
      const Tensor bound = tensor(cache, {1, 4, 2, 8}, ElementType::kFloat16);
      *suffix == '\0' ? binding.BindInput(name, bound) : binding.BindOutput(name + suffix, bound);
    };
    bind("key_cache", key_cache);
    bind("value_cache", value_cache);
  }
  binding.BindOutput("output", tensor(output, {1, 32}, ElementType::kFloat));
  session.Run(binding, ArenaAfterRun::kShrink);
  EXPECT_EQ(output, std::vector<float>(32, 3.0f));
}

TEST_F(DeclaredSlots, AreAllCalledByRealUse) {
  RunOnce();
  { const Session packed(test::DataPath("models/packed_float16/model.onnx"), operators::CpuSessionOptions({})); }
  { const Session quantised(test::DataPath("models/matmul_nbits/plain.onnx"), operators::CpuSessionOptions({})); }
  operators::ProductCase("models/matmul/scaled").Run({.matmul = operators::CpuMatMul::kBfloat16});
  EXPECT_THROW(Session(test::DataPath("models/operators/not_causal.onnx"), operators::CpuSessionOptions({})), Error);
  Shutdown();

  for (const auto& [slot, calls] : Calls()) {
    // Shape inference of operators with absent inputs works from 1.24 on; 1.23 is driven without it.
    const bool infers_shapes = (slot >= 57 && slot <= 59) || (slot >= 268 && slot <= 271);
    if (infers_shapes && !LoadedLibrary().IsAtLeast(1, 24)) continue;
    EXPECT_GT(calls, 0) << "slot " << slot << " was never called";
  }
}

TEST(Slots, AreDeclaredInOrderAndOnce) {
  int previous = -1;
#define OGA_ORDER(slot, Result, Name, Parameters)           \
  EXPECT_GT(slot, previous) << #Name << " is out of order"; \
  previous = slot;
  OGA_ORT_SLOTS(OGA_ORDER)
#undef OGA_ORDER
}

}  // namespace
}  // namespace oga::ort
