// Who multiplies on the CPU, and in what precision: `cpu_matmul` of a model's config and OGA_CPU_MATMUL.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace oga::operators {

enum class CpuMatMul {
  kAuto,      // weights as they are stored: float in float, 16 bits in bfloat16
  kFloat,     // weights and arithmetic in float
  kBfloat16,  // all weights rounded to bfloat16
  kRuntime,   // the runtime's own kernels, for whatever has one
};

// What a config may say. OGA_CPU_MATMUL may also be "runtime".
inline constexpr std::array<std::pair<std::string_view, CpuMatMul>, 3> kCpuMatMulNames = {
    {{"auto", CpuMatMul::kAuto}, {"fp32", CpuMatMul::kFloat}, {"bf16", CpuMatMul::kBfloat16}}};

// Empty for a name that a config may not say.
std::optional<CpuMatMul> ParseCpuMatMul(std::string_view name);

// What holds when OGA_CPU_MATMUL is `requested` (null or empty when unset) and the config says `configured`. Throws
// Error{kInvalidArgument} for an unknown name, listing the known ones.
CpuMatMul ResolveCpuMatMul(const char* requested, CpuMatMul configured);

}  // namespace oga::operators
