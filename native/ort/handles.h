// Owning pointers to the runtime's objects, opaque to everything outside native/ort.
#pragma once

#include <memory>

namespace oga::ort {

namespace abi {
struct Env;
struct MemoryInfo;
struct Session;
struct SessionOptions;
struct RunOptions;
struct IoBinding;
struct Value;
struct TypeInfo;
struct ShapeInfo;
struct CustomOpDomain;
struct Op;
struct OpAttr;
}  // namespace abi

struct Releaser {
  void operator()(abi::Env* env) const noexcept;
  void operator()(abi::MemoryInfo* memory) const noexcept;
  void operator()(abi::Session* session) const noexcept;
  void operator()(abi::SessionOptions* options) const noexcept;
  void operator()(abi::RunOptions* options) const noexcept;
  void operator()(abi::IoBinding* binding) const noexcept;
  void operator()(abi::Value* value) const noexcept;
  void operator()(abi::TypeInfo* type) const noexcept;
  void operator()(abi::ShapeInfo* info) const noexcept;
  void operator()(abi::CustomOpDomain* domain) const noexcept;
  void operator()(abi::Op* op) const noexcept;
  void operator()(abi::OpAttr* attribute) const noexcept;
};

template <typename T>
using Owned = std::unique_ptr<T, Releaser>;

}  // namespace oga::ort
