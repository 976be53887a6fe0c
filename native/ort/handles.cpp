#include "ort/handles.h"

#include "ort/abi.h"
#include "ort/library.h"

namespace oga::ort {

void Releaser::operator()(abi::Env* env) const noexcept { Api().ReleaseEnv(env); }
void Releaser::operator()(abi::MemoryInfo* memory) const noexcept { Api().ReleaseMemoryInfo(memory); }
void Releaser::operator()(abi::Session* session) const noexcept { Api().ReleaseSession(session); }
void Releaser::operator()(abi::SessionOptions* options) const noexcept { Api().ReleaseSessionOptions(options); }
void Releaser::operator()(abi::RunOptions* options) const noexcept { Api().ReleaseRunOptions(options); }
void Releaser::operator()(abi::IoBinding* binding) const noexcept { Api().ReleaseIoBinding(binding); }
void Releaser::operator()(abi::Value* value) const noexcept { Api().ReleaseValue(value); }
void Releaser::operator()(abi::TypeInfo* type) const noexcept { Api().ReleaseTypeInfo(type); }
void Releaser::operator()(abi::ShapeInfo* info) const noexcept { Api().ReleaseTensorTypeAndShapeInfo(info); }
void Releaser::operator()(abi::CustomOpDomain* domain) const noexcept { Api().ReleaseCustomOpDomain(domain); }
void Releaser::operator()(abi::Op* op) const noexcept { Api().ReleaseOp(op); }
void Releaser::operator()(abi::OpAttr* attribute) const noexcept { Api().ReleaseOpAttr(attribute); }

}  // namespace oga::ort
