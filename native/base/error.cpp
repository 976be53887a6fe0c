#include "base/error.h"

#include <charconv>

namespace oga::internal {

namespace {
// std::to_chars never consults the locale; std::to_string of a float does.
template <typename Float>
void AppendFloat(std::string& out, Float value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  out.append(digits, end.ptr);
}
}  // namespace

void AppendPart(std::string& out, float part) { AppendFloat(out, part); }
void AppendPart(std::string& out, double part) { AppendFloat(out, part); }

}  // namespace oga::internal
