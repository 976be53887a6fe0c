// The runtime's statuses as our errors, and our errors carried through the runtime.
//
// An Error thrown inside an operator becomes a status; the runtime wraps its text in its own and hands it back from the
// call that ran the operator. Code, field and sentence are marked in that text, so the caller sees our Error again.
#pragma once

#include <string>

#include "base/error.h"

namespace oga::ort {

namespace abi {
struct Status;
}

// Takes ownership of `status` and throws when it is a failure. `doing` begins the message: "cannot load /m/model.onnx".
// A failure that reads like memory running out is kResourceExhausted, whatever code the runtime gives it.
void Check(abi::Status* status, const std::string& doing);
void Check(abi::Status* status, const char* doing);

// The same of a call that is about one file, which becomes the error's field.
struct DoingWithFile {
  std::string doing;
  std::string path;
};
void Check(abi::Status* status, const DoingWithFile& call);

// Takes ownership of `status`; true when it is a success. For questions whose answer may be "there is none".
bool Succeeded(abi::Status* status) noexcept;

// The text under which `error` travels through the runtime.
std::string EncodeError(const Error& error);

// The Error that a runtime failure stands for: ours when one travelled inside `runtime_message`, else one that begins
// with `doing` and has `field`. `runtime_code` is the runtime's own number.
Error DecodeError(int runtime_code, const std::string& runtime_message, const std::string& doing, Field field = {});

// The status for the exception being handled; call it inside a catch block only.
abi::Status* StatusOfCurrentException() noexcept;

// Runs `body` and returns what it throws as a status: the frame of every callback that the runtime calls.
template <typename Body>
abi::Status* Guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return StatusOfCurrentException();
  }
}

}  // namespace oga::ort
