// What the classes of the C++17 headers stand on: Error, the owning Handle, and the call that makes a value. Hosts include
// oga.hpp, which states the rules.
#ifndef OGA_HANDLE_HPP_
#define OGA_HANDLE_HPP_

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "oga.h"

namespace oga {
inline namespace v0 {

// What a failed call throws. what() is the library's sentence, for people; code() and field() are for programs.
class Error : public std::runtime_error {
 public:
  Error(OgaStatusCode code, const char* message, std::string field = {})
      : std::runtime_error(message), code_(code), field_(std::move(field)) {}

  OgaStatusCode code() const noexcept { return code_; }
  // The option, config key, argument or file that the error is about; empty for none.
  const std::string& field() const noexcept { return field_; }

 private:
  OgaStatusCode code_;
  std::string field_;
};

// Throws Error for a failed result and frees it; does nothing for success. For functions this header does not wrap.
inline void Check(OgaResult* result) {
  if (result == nullptr) return;
  const std::unique_ptr<OgaResult, decltype(&OgaDestroyResult)> owned(result, &OgaDestroyResult);
  throw Error(OgaResultGetCode(result), OgaResultGetError(result), OgaResultGetField(result));
}

// Owns one handle: moves, never copies, and releases with the handle's Destroy function. A handle that was moved from
// is empty; using it is an Error that names the parameter, as everywhere in the C API.
template <typename Type, void(OGA_API_CALL* Destroy)(Type*)>
class Handle {
 public:
  Type* get() const noexcept { return pointer_.get(); }

  // Gives the handle up: the caller owns it from here on.
  Type* release() noexcept { return pointer_.release(); }

 protected:
  explicit Handle(Type* pointer) noexcept : pointer_(pointer) {}

 private:
  struct Deleter {
    void operator()(Type* pointer) const noexcept { Destroy(pointer); }
  };
  std::unique_ptr<Type, Deleter> pointer_;
};

namespace internal {

// Calls a function whose last parameter is the out-pointer and returns what it stored.
template <typename Type, typename... Parameters, typename... Arguments>
Type Make(OgaResult*(OGA_API_CALL* function)(Parameters...), Arguments... arguments) {
  Type out{};
  Check(function(arguments..., &out));
  return out;
}

// The text for a C parameter. A NUL inside would silently cut it there.
inline const char* Text(const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    throw Error(OgaStatusCode_InvalidArgument, "a string with a NUL character inside cannot be passed to oga");
  }
  return text.c_str();
}

inline std::string TakeString(const char* owned) {
  const std::unique_ptr<const char, decltype(&OgaDestroyString)> string(owned, &OgaDestroyString);
  return string.get();
}

}  // namespace internal

}  // namespace v0
}  // namespace oga

#endif  // OGA_HANDLE_HPP_
