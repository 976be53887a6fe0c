#include "ort/cpu_operators.h"

#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/printable_text.h"
#include "ort/make.h"
#include "ort/matmul_nbits_op.h"
#include "ort/paged_attention_op.h"

namespace oga::ort {

bool UsesOwnMatMul(const char* requested) {
  const std::string_view name = requested == nullptr ? "" : requested;
  if (name.empty() || name == "oga") return true;
  if (name == "runtime") return false;
  Throw(StatusCode::kInvalidArgument, "OGA_CPU_MATMUL is \"", Printable(requested),
        "\", which is not one of: oga, runtime; unset it to use liboga's own matrix product");
}

CpuOperators::CpuOperators()
    : microsoft_(
          Make<abi::CustomOpDomain>(Api().CreateCustomOpDomain, "cannot create an operator domain", "com.microsoft")) {
  Check(Api().CustomOpDomain_Add(microsoft_.get(), PagedAttentionOp()), "cannot add the PagedAttention operator");
  if (!UsesOwnMatMul(std::getenv("OGA_CPU_MATMUL"))) return;
  matmul_nbits_ = std::make_unique<const MatMulNBitsOp>();
  Check(Api().CustomOpDomain_Add(microsoft_.get(), matmul_nbits_.get()), "cannot add the MatMulNBits operator");
}

CpuOperators::~CpuOperators() = default;

void CpuOperators::AddTo(abi::SessionOptions* options) const {
  Check(Api().AddCustomOpDomain(options, microsoft_.get()), "cannot register liboga's operators");
}

}  // namespace oga::ort
