#include "ort/cpu_operators.h"

#include "ort/make.h"
#include "ort/paged_attention_op.h"

namespace oga::ort {

CpuOperators::CpuOperators()
    : microsoft_(
          Make<abi::CustomOpDomain>(Api().CreateCustomOpDomain, "cannot create an operator domain", "com.microsoft")) {
  Check(Api().CustomOpDomain_Add(microsoft_.get(), PagedAttentionOp()), "cannot add the PagedAttention operator");
}

CpuOperators::~CpuOperators() = default;

void CpuOperators::AddTo(abi::SessionOptions* options) const {
  Check(Api().AddCustomOpDomain(options, microsoft_.get()), "cannot register liboga's operators");
}

}  // namespace oga::ort
