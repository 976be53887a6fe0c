#include "capi/boundary.h"

using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

OgaResult* OGA_API_CALL OgaCreateStringArray(OgaStringArray** out) {
  return Guard([&] {
    RequireOut<OgaStringArray*>(out, nullptr);
    *out = new OgaStringArray;
  });
}

OgaResult* OGA_API_CALL OgaCreateStringArrayFromStrings(const char* const* strs, size_t count, OgaStringArray** out) {
  return Guard([&] {
    RequireOut<OgaStringArray*>(out, nullptr);
    if (count > 0) Require(strs, "strs");
    auto array = std::make_unique<OgaStringArray>();
    array->strings.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      if (strs[i] == nullptr) {
        oga::Throw(oga::StatusCode::kInvalidArgument, oga::Field{"strs"}, "strs[", i, "] must not be null.");
      }
      array->strings.emplace_back(strs[i]);
    }
    *out = array.release();
  });
}

void OGA_API_CALL OgaDestroyStringArray(OgaStringArray* string_array) { delete string_array; }

OgaResult* OGA_API_CALL OgaStringArrayAddString(OgaStringArray* string_array, const char* str) {
  return Guard([&] {
    auto& strings = Require(string_array, "string_array").strings;
    strings.emplace_back(&Require(str, "str"));
  });
}

OgaResult* OGA_API_CALL OgaStringArrayGetCount(const OgaStringArray* string_array, size_t* out) {
  return Guard([&] {
    RequireOut<size_t>(out, 0);
    *out = Require(string_array, "string_array").strings.size();
  });
}

OgaResult* OGA_API_CALL OgaStringArrayGetString(const OgaStringArray* string_array, size_t index, const char** out) {
  return Guard([&] {
    RequireOut<const char*>(out, nullptr);
    const auto& strings = Require(string_array, "string_array").strings;
    if (index >= strings.size()) {
      oga::Throw(oga::StatusCode::kInvalidArgument, oga::Field{"index"}, "index is ", index, "; the list has ",
                 strings.size(), " strings");
    }
    *out = strings[index].c_str();
  });
}
