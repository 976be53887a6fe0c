#include <algorithm>
#include <cstring>

#include "capi/boundary.h"

// One block: the texts follow the struct. Nothing here may throw, since it reports what was thrown.
struct OgaResult {
  oga::StatusCode code;
  const char* field;
  const char* message;
};

namespace oga::capi {

namespace {

constinit OgaResult g_out_of_memory{StatusCode::kOutOfMemory, "",
                                    "out of memory; free some, or ask for smaller limits or buffers"};

constexpr bool Same(StatusCode code, OgaStatusCode constant) { return static_cast<OgaStatusCode>(code) == constant; }
static_assert(Same(StatusCode::kOk, OgaStatusCode_Ok));
static_assert(Same(StatusCode::kInvalidArgument, OgaStatusCode_InvalidArgument));
static_assert(Same(StatusCode::kInvalidState, OgaStatusCode_InvalidState));
static_assert(Same(StatusCode::kNotFound, OgaStatusCode_NotFound));
static_assert(Same(StatusCode::kUnsupported, OgaStatusCode_Unsupported));
static_assert(Same(StatusCode::kResourceExhausted, OgaStatusCode_ResourceExhausted));
static_assert(Same(StatusCode::kIoError, OgaStatusCode_IoError));
static_assert(Same(StatusCode::kModelError, OgaStatusCode_ModelError));
static_assert(Same(StatusCode::kEngineUnhealthy, OgaStatusCode_EngineUnhealthy));
static_assert(Same(StatusCode::kOutOfMemory, OgaStatusCode_OutOfMemory));
static_assert(Same(StatusCode::kInternal, OgaStatusCode_Internal));

}  // namespace

OgaResult* OutOfMemoryResult() noexcept { return &g_out_of_memory; }

OgaResult* MakeResult(StatusCode code, std::string_view field, std::string_view message) noexcept {
  void* memory = ::operator new(sizeof(OgaResult) + field.size() + message.size() + 2, std::nothrow);
  if (memory == nullptr) return OutOfMemoryResult();
  char* next = static_cast<char*>(memory) + sizeof(OgaResult);
  const auto store = [&next](std::string_view text) {
    char* const stored = next;
    next = std::copy(text.begin(), text.end(), stored);
    *next++ = '\0';
    return stored;
  };
  const char* const stored_field = store(field);
  return ::new (memory) OgaResult{code, stored_field, store(message)};
}

const char* NewString(std::string_view text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace oga::capi

const char* OGA_API_CALL OgaResultGetError(const OgaResult* result) { return result == nullptr ? "" : result->message; }

const char* OGA_API_CALL OgaResultGetField(const OgaResult* result) { return result == nullptr ? "" : result->field; }

OgaStatusCode OGA_API_CALL OgaResultGetCode(const OgaResult* result) {
  return result == nullptr ? OgaStatusCode_Ok : static_cast<OgaStatusCode>(result->code);
}

void OGA_API_CALL OgaDestroyResult(OgaResult* result) {
  if (result != oga::capi::OutOfMemoryResult()) ::operator delete(result);
}

void OGA_API_CALL OgaDestroyString(const char* string) { delete[] string; }
