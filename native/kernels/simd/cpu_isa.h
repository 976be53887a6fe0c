// Which instruction set the kernels use. Chosen once per process: the best the CPU and the operating system support, or
// what OGA_CPU_ISA names (portable, avx2, avx512, avx512_bf16, amx). Each includes the ones before it; a kernel without
// a variant for the chosen one runs its best variant below that.
#pragma once

#include <string>

namespace oga::kernels {

enum class CpuIsa { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

// The best variant this machine runs. Asks the kernel of the operating system for the use of AMX tiles, once.
CpuIsa BestCpuIsa() noexcept;

// What a process uses whose OGA_CPU_ISA is `requested` (null or empty when unset) on a machine whose best variant is
// `best`. Throws Error{kInvalidArgument} for an unknown name and Error{kUnsupported} for a variant above `best`; both
// list the choices.
CpuIsa ResolveCpuIsa(const char* requested, CpuIsa best);

// ResolveCpuIsa of the environment. The answer of the first call that succeeds holds for the whole process. Called when
// a model is loaded, so that a wrong setting is told there and not in the middle of a step.
CpuIsa SelectedCpuIsa();

const char* CpuIsaName(CpuIsa isa) noexcept;

}  // namespace oga::kernels
