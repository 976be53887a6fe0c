#include "base/shared_library.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/platform_library.h"

namespace oga {

namespace {

using platform::LibraryScope;

constexpr int kOldestPython = 9;
constexpr int kNewestPython = 20;

std::optional<int> NumberAfter(const std::string& text, std::string_view mark) {
  const size_t found = text.rfind(mark);
  int number = 0;
  if (found == std::string::npos) return std::nullopt;
  const char* const begin = text.data() + found + mark.size();
  if (std::from_chars(begin, text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

// The releases that can serve the module, the likeliest first.
std::vector<int> PythonsFor(const std::string& module) {
  if (const auto named = NumberAfter(module, ".cpython-3")) return {*named};  // "_x.cpython-311-x86_64-linux-gnu.so"
  std::vector<int> minors;
  if (const auto installed = NumberAfter(module, "/python3.")) minors.push_back(*installed);
  if (module.find(".abi3.") == std::string::npos) return minors;
  for (int minor = kNewestPython; minor >= kOldestPython; --minor) minors.push_back(minor);
  return minors;
}

std::string PythonName(int minor) { return Message("libpython3.", minor, ".so.1.0"); }

bool OpenAnyOf(const std::vector<int>& pythons) {
  return std::any_of(pythons.begin(), pythons.end(), [](int minor) {
    return platform::OpenLibrary(PythonName(minor), LibraryScope::kGlobal, nullptr) != nullptr;
  });
}

// By the loader's own words, which programs have no other form of.
bool LacksPython(const std::string& reason) {
  const auto says = [&](const char* words) { return reason.find(words) != std::string::npos; };
  return says("undefined symbol: Py") || says("undefined symbol: _Py") || says("libpython3");
}

void* Open(const std::string& path, LibraryScope scope, std::string* reason) {
  void* const handle = platform::OpenLibrary(path, scope, reason);
  if (handle == nullptr) *reason = Printable(*reason);
  return handle;
}

}  // namespace

SharedLibrary SharedLibrary::Open(const std::string& path, std::string* reason) {
  return SharedLibrary(oga::Open(path, LibraryScope::kLocal, reason));
}

SharedLibrary SharedLibrary::FindLoaded(const std::string& path, std::string* reason) {
  return SharedLibrary(oga::Open(path, LibraryScope::kLoadedOnly, reason));
}

SharedLibrary SharedLibrary::OpenExtensionModule(const std::string& path, std::string* reason) {
  const SharedLibrary library = Open(path, reason);
  if (library || !LacksPython(*reason)) return library;
  const std::vector<int> pythons = PythonsFor(path);
  if (OpenAnyOf(pythons)) return Open(path, reason);
  *reason +=
      Message("; outside Python it needs ", pythons.empty() ? "a libpython3 shared library" : PythonName(pythons[0]),
              pythons.size() > 1 ? " or another release's" : "",
              ", which this system does not have (often the package libpython3-dev or python3-libs)");
  return library;
}

void* SharedLibrary::Find(const char* name) const { return platform::FindSymbol(handle_, name); }

std::string PathOfSymbol(void* symbol, const std::string& fallback) {
  const std::string path = platform::FileOfSymbol(symbol);
  return path.empty() ? fallback : AbsolutePath(path);
}

std::string AbsolutePath(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::canonical(path, failed);
  return failed ? path : absolute.string();
}

}  // namespace oga
