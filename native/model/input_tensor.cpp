#include "model/input_tensor.h"

namespace oga {

void* InputTensor::Prepare(std::initializer_list<int64_t> dims) {
  tensor_.Shape(dims);
  if (void* const memory = tensor_.memory().host()) return memory;
  if (staging_ == nullptr || staging_->bytes() < tensor_.bytes()) {
    staging_ = device_.AllocateStaging(GrownBytes(tensor_.bytes(), staging_.get()));
  }
  return staging_->host();
}

void InputTensor::Send() {
  if (tensor_.memory().host() != nullptr) return;  // written in place
  stream_.CopyToDevice(tensor_.memory().address(), staging_->host(), tensor_.bytes());
}

}  // namespace oga
