#include "ort/status.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable_text.h"
#include "ort/abi.h"
#include "ort/library.h"

namespace oga::ort {

namespace {

constexpr std::string_view kOpenMark = "{oga:";
constexpr std::string_view kCloseMark = "{/oga}";

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

// Reads a number that `stop` follows, and returns what is behind that; nothing when it is not so.
template <typename Number>
std::optional<std::string_view> ReadUpTo(std::string_view text, char stop, Number* number) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *number);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != stop) return std::nullopt;
  return text.substr(static_cast<size_t>(parsed.ptr + 1 - text.data()));
}

// The error of "... {oga:CODE,BYTES}FIELD sentence{/oga} ...", whose field has so many bytes; nothing when there is no whole
// mark.
std::optional<Error> FindMarkedError(std::string_view message) {
  const size_t open = message.find(kOpenMark);
  if (open == std::string_view::npos) return std::nullopt;
  uint32_t code = 0;
  size_t field_bytes = 0;
  auto rest = ReadUpTo(message.substr(open + kOpenMark.size()), ',', &code);
  if (rest) rest = ReadUpTo(*rest, '}', &field_bytes);
  if (!rest || rest->size() <= field_bytes || (*rest)[field_bytes] != ' ') return std::nullopt;
  const std::string_view sentence = rest->substr(field_bytes + 1);
  const size_t close = sentence.find(kCloseMark);
  if (close == std::string_view::npos) return std::nullopt;
  return Error(static_cast<StatusCode>(code), Field{std::string(rest->substr(0, field_bytes))},
               std::string(sentence.substr(0, close)));
}

[[noreturn]] void ThrowStatus(abi::Status* status, const std::string& doing, Field field = {}) {
  const abi::ErrorCode code = Api().GetErrorCode(status);
  const std::string message = Api().GetErrorMessage(status);
  Api().ReleaseStatus(status);
  throw DecodeError(static_cast<int>(code), message, doing, std::move(field));
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

void Check(abi::Status* status, const DoingWithFile& call) {
  if (status != nullptr) ThrowStatus(status, call.doing, Field{call.path});
}

bool Succeeded(abi::Status* status) noexcept {
  if (status == nullptr) return true;
  Api().ReleaseStatus(status);
  return false;
}

std::string EncodeError(const Error& error) {
  return Message(std::string(kOpenMark), static_cast<uint32_t>(error.code()), ',', error.field().size(), '}',
                 error.field(), ' ', error.message(), std::string(kCloseMark));
}

Error DecodeError(int runtime_code, const std::string& runtime_message, const std::string& doing, Field field) {
  if (std::optional<Error> ours = FindMarkedError(runtime_message)) return *std::move(ours);
  return Error(CodeOf(static_cast<abi::ErrorCode>(runtime_code), runtime_message), std::move(field),
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
