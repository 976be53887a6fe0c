#include "operators/cpu/cpu_matmul.h"

#include "base/error.h"
#include "base/printable_text.h"

namespace oga::operators {

std::optional<CpuMatMul> ParseCpuMatMul(std::string_view name) {
  for (const auto& [known, choice] : kCpuMatMulNames) {
    if (name == known) return choice;
  }
  return std::nullopt;
}

CpuMatMul ResolveCpuMatMul(const char* requested, CpuMatMul configured) {
  const std::string_view name = requested == nullptr ? "" : requested;
  if (name.empty()) return configured;
  if (name == "runtime") return CpuMatMul::kRuntime;
  if (const auto choice = ParseCpuMatMul(name)) return *choice;
  Throw(StatusCode::kInvalidArgument, Field{"OGA_CPU_MATMUL"}, "OGA_CPU_MATMUL is \"", Printable(requested),
        "\", which is not one of: auto, fp32, bf16, runtime; unset it to use what the model's config says");
}

}  // namespace oga::operators
