#include "kernels/simd/cpu_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/platform_process.h"

namespace oga::kernels {

namespace {

constexpr CpuIsa kAllIsas[] = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx};

std::string NamesUpTo(CpuIsa best) {
  std::string names;
  for (const CpuIsa isa : kAllIsas) {
    if (isa > best) break;
    names += names.empty() ? "" : ", ";
    names += CpuIsaName(isa);
  }
  return names;
}

#if defined(__x86_64__)
// Compilers do not agree on how these two are asked of them, so they are read from the CPU's own leaves.
bool HasBf16() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1u) != 0;
}

// Tiles are 8 KiB of state per thread, which a process has to ask for.
bool MayUseTiles() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTile = 1u << 24, kTileBf16 = 1u << 22;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTile) == 0 || (d & kTileBf16) == 0) return false;
  return platform::RequestTileState();
}

CpuIsa FindBest() noexcept {
  // These builtins also ask the operating system (xgetbv) whether it saves the wide registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (!avx512) return avx2 ? CpuIsa::kAvx2 : CpuIsa::kPortable;
  if (!HasBf16()) return CpuIsa::kAvx512;
  return MayUseTiles() ? CpuIsa::kAmx : CpuIsa::kAvx512Bf16;
}
#else
CpuIsa FindBest() noexcept { return CpuIsa::kPortable; }
#endif

}  // namespace

CpuIsa BestCpuIsa() noexcept {
  static const CpuIsa best = FindBest();
  return best;
}

CpuIsa ResolveCpuIsa(const char* requested, CpuIsa best) {
  if (requested == nullptr || *requested == '\0') return best;
  for (const CpuIsa isa : kAllIsas) {
    if (std::string_view(requested) != CpuIsaName(isa)) continue;
    if (isa > best) {
      Throw(StatusCode::kUnsupported, Field{"OGA_CPU_ISA"}, "OGA_CPU_ISA is ", requested,
            ", but this machine runs only: ", NamesUpTo(best), "; name one of these or unset it");
    }
    return isa;
  }
  Throw(StatusCode::kInvalidArgument, Field{"OGA_CPU_ISA"}, "OGA_CPU_ISA is \"", requested,
        "\", which is not one of: ", NamesUpTo(CpuIsa::kAmx), "; unset it to use the best this machine runs (",
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
    case CpuIsa::kAvx512Bf16: return "avx512_bf16";
    case CpuIsa::kAmx: return "amx";
  }
  return "unknown";
}

}  // namespace oga::kernels
