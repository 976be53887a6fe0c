#include "ort/io_binding.h"

#include "ort/make.h"

namespace oga::ort {

namespace {

// The message is only built on failure: these calls are part of every step.
void CheckNamed(abi::Status* status, const char* doing, const std::string& name) {
  if (status != nullptr) Check(status, Message(doing, name));
}

}  // namespace

Tensor::Tensor(const Session& session, DeviceAddress address, size_t bytes, std::span<const int64_t> dims,
               ElementType type)
    : value_(Make<abi::Value>(Api().CreateTensorWithDataAsOrtValue, "cannot describe a tensor to onnxruntime",
                              session.memory(), session.device().RuntimePointer(address), bytes, dims.data(),
                              dims.size(), type)) {}

IoBinding::IoBinding(const Session& session)
    : session_(session),
      binding_(Make<abi::IoBinding>(Api().CreateIoBinding, "cannot bind the model's tensors", session.handle())) {}

void IoBinding::BindInput(const std::string& name, const Tensor& tensor) {
  CheckNamed(Api().BindInput(binding_.get(), name.c_str(), tensor.handle()), "cannot bind input ", name);
}

void IoBinding::BindOutput(const std::string& name, const Tensor& tensor) {
  CheckNamed(Api().BindOutput(binding_.get(), name.c_str(), tensor.handle()), "cannot bind output ", name);
}

}  // namespace oga::ort
