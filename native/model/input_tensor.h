// An input of a step that the host writes: into the device's memory where the host reaches it, else beside it, from
// where the stream copies it.
//
// Owned by one executor, used on its engine's thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "device/device.h"
#include "model/bound_tensor.h"

namespace oga {

class InputTensor {
 public:
  // The references must outlive the tensor.
  InputTensor(ort::IoBinding& binding, DeviceStream& stream, std::string name, ort::ElementType type, Ledger& ledger)
      : stream_(stream),
        device_(binding.session().device()),
        tensor_(binding, BindingSide::kInput, std::move(name), type, ledger) {}

  // Gives the tensor a shape, has `fill` write all its elements from the pointer it is given, and sends them on their
  // way. The stream must have been synchronised since the last Write.
  template <typename Element, typename Fill>
  void Write(std::initializer_list<int64_t> dims, const Fill& fill) {
    fill(static_cast<Element*>(Prepare(dims)));
    Send();
  }

 private:
  void* Prepare(std::initializer_list<int64_t> dims);
  void Send();

  DeviceStream& stream_;
  const Device& device_;
  BoundTensor tensor_;
  std::unique_ptr<DeviceMemory> staging_;  // null where the host writes in place
};

}  // namespace oga
