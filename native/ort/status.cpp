#include "ort/status.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "base/printable_text.h"
#include "ort/abi.h"
#include "ort/library.h"

namespace oga::ort {

namespace {

constexpr const char* kOpenMark = "{oga:";
constexpr const char* kCloseMark = "{/oga}";

bool ReadsLikeOutOfMemory(const std::string& message) {
  for (const char* sign : {"bad_alloc", "Failed to allocate", "BFCArena", "out of memory"}) {
    if (message.find(sign) != std::string::npos) return true;
  }
  return false;
}

// The runtime breaks some of its messages into lines and ends some with one.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

StatusCode CodeOf(abi::ErrorCode code, const std::string& message) {
  if (ReadsLikeOutOfMemory(message)) return StatusCode::kResourceExhausted;
  switch (code) {
    case abi::ErrorCode::kInvalidArgument: return StatusCode::kInvalidArgument;
    case abi::ErrorCode::kNoSuchFile: return StatusCode::kNotFound;
    case abi::ErrorCode::kNotImplemented: return StatusCode::kUnsupported;
    case abi::ErrorCode::kEngineError: return StatusCode::kInternal;
    default: return StatusCode::kModelError;
  }
}

// Splits "... {oga:4} sentence {/oga} ..." into code and sentence; false when there is no whole mark.
bool FindMarkedError(const std::string& message, StatusCode* code, std::string* sentence) {
  const size_t open = message.find(kOpenMark);
  if (open == std::string::npos) return false;
  const size_t digits = open + std::char_traits<char>::length(kOpenMark);
  const size_t close = message.find(kCloseMark, digits);
  if (close == std::string::npos) return false;
  uint32_t number = 0;
  const auto parsed = std::from_chars(message.data() + digits, message.data() + close, number);
  if (parsed.ec != std::errc() || parsed.ptr == message.data() + close || *parsed.ptr != '}') return false;
  *code = static_cast<StatusCode>(number);
  sentence->assign(parsed.ptr + 1, message.data() + close);
  return true;
}

[[noreturn]] void ThrowStatus(abi::Status* status, const std::string& doing) {
  const abi::ErrorCode code = Api().GetErrorCode(status);
  const std::string message = Api().GetErrorMessage(status);
  Api().ReleaseStatus(status);
  throw DecodeError(static_cast<int>(code), message, doing);
}

abi::Status* StatusOf(const Error& error) {
  const bool bad_argument = error.code() == StatusCode::kInvalidArgument;
  return Api().CreateStatus(bad_argument ? abi::ErrorCode::kInvalidArgument : abi::ErrorCode::kFail,
                            EncodeError(error).c_str());
}

}  // namespace

void Check(abi::Status* status, const std::string& doing) {
  if (status != nullptr) ThrowStatus(status, doing);
}

void Check(abi::Status* status, const char* doing) {
  if (status != nullptr) ThrowStatus(status, doing);
}

bool Succeeded(abi::Status* status) noexcept {
  if (status == nullptr) return true;
  Api().ReleaseStatus(status);
  return false;
}

std::string EncodeError(const Error& error) {
  return Message(kOpenMark, static_cast<uint32_t>(error.code()), '}', error.message(), kCloseMark);
}

Error DecodeError(int runtime_code, const std::string& runtime_message, const std::string& doing) {
  StatusCode code = StatusCode::kInternal;
  std::string sentence;
  if (FindMarkedError(runtime_message, &code, &sentence)) return Error(code, std::move(sentence));
  return Error(CodeOf(static_cast<abi::ErrorCode>(runtime_code), runtime_message),
               Message(doing, ": onnxruntime says: ", Printable(OneLine(runtime_message))));
}

abi::Status* StatusOfCurrentException() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return StatusOf(error);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return StatusOf(Error(StatusCode::kInternal, error.what()));
    } catch (...) {
      return StatusOf(Error(StatusCode::kInternal, "an exception of an unknown type was thrown"));
    }
  } catch (...) {
    return Api().CreateStatus(abi::ErrorCode::kFail, "std::bad_alloc");
  }
}

}  // namespace oga::ort
