// Where a session reads its inputs and writes its outputs: named tensors over memory of the session's
// device that the caller owns.
//
// Owned and used by one executor on its engine's thread. Does not keep the session or the memory alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "device/device.h"
#include "ort/handles.h"
#include "ort/session.h"

namespace oga::ort {

// A tensor over the caller's memory on the device of `session`; nothing is copied and nothing is freed.
class Tensor {
 public:
  Tensor(const Session& session, DeviceAddress address, size_t bytes, std::span<const int64_t> dims, ElementType type);

  const abi::Value* handle() const { return value_.get(); }

 private:
  Owned<abi::Value> value_;
};

class IoBinding {
 public:
  explicit IoBinding(const Session& session);

  const Session& session() const { return session_; }

  // Binds or rebinds one name. The binding shares the tensor, so the Tensor itself may go; its memory may not.
  void BindInput(const std::string& name, const Tensor& tensor);
  void BindOutput(const std::string& name, const Tensor& tensor);

  const abi::IoBinding* handle() const { return binding_.get(); }

 private:
  const Session& session_;
  Owned<abi::IoBinding> binding_;
};

}  // namespace oga::ort
