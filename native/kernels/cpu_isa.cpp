#include "kernels/cpu_isa.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"

namespace oga::kernels {

namespace {

constexpr CpuIsa kAllIsas[] = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512};

std::string NamesUpTo(CpuIsa best) {
  std::string names;
  for (const CpuIsa isa : kAllIsas) {
    if (isa > best) break;
    names += names.empty() ? "" : ", ";
    names += CpuIsaName(isa);
  }
  return names;
}

}  // namespace

CpuIsa BestCpuIsa() noexcept {
#if defined(__x86_64__)
  // These builtins also ask the operating system (xgetbv) whether it saves the wide registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? CpuIsa::kAvx512 : avx2 ? CpuIsa::kAvx2 : CpuIsa::kPortable;
#else
  return CpuIsa::kPortable;
#endif
}

CpuIsa ResolveCpuIsa(const char* requested, CpuIsa best) {
  if (requested == nullptr || *requested == '\0') return best;
  for (const CpuIsa isa : kAllIsas) {
    if (std::string_view(requested) != CpuIsaName(isa)) continue;
    if (isa > best) {
      Throw(StatusCode::kUnsupported, "OGA_CPU_ISA is ", requested, ", but this machine runs only: ", NamesUpTo(best),
            "; name one of these or unset it");
    }
    return isa;
  }
  Throw(StatusCode::kInvalidArgument, "OGA_CPU_ISA is \"", requested,
        "\", which is not one of: ", NamesUpTo(CpuIsa::kAvx512), "; unset it to use the best this machine runs (",
        CpuIsaName(best), ")");
}

CpuIsa SelectedCpuIsa() {
  static const CpuIsa selected = ResolveCpuIsa(std::getenv("OGA_CPU_ISA"), BestCpuIsa());
  return selected;
}

const char* CpuIsaName(CpuIsa isa) noexcept {
  switch (isa) {
    case CpuIsa::kPortable: return "portable";
    case CpuIsa::kAvx2: return "avx2";
    case CpuIsa::kAvx512: return "avx512";
  }
  return "unknown";
}

}  // namespace oga::kernels
