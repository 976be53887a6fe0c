#include "grammar/grammar_library.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"
#include "grammar/grammar_errors.h"

namespace oga::grammar {

namespace {

constexpr const char* kRemedy =
    "pip install 'llguidance>=1.8,<2', and outside Python let OGA_LLGUIDANCE_LIBRARY name the file _lib*.so of that "
    "package";
constexpr unsigned kMajor = 1;
constexpr unsigned kLowestMinor = 8;  // since then a pattern for whitespace bounds it

template <typename Function>
void LookUp(void* library, const char* name, const std::string& path, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return;
  Throw(StatusCode::kUnsupported, Field{path}, Printable(path), " is not a usable llguidance: it has no function ",
        name, "; ", kRemedy);
}

// "1.9.1" of "llguidance@1.9.1 derivre@0.3.13".
std::string VersionOf(const LlgFunctions& functions) {
  const char* text = functions.llg_get_version();
  std::string_view version = text == nullptr ? "" : text;
  version = version.substr(0, version.find(' '));
  const size_t at = version.find('@');
  return std::string(at == std::string_view::npos ? version : version.substr(at + 1));
}

void CheckVersion(const std::string& version, const std::string& path) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  const bool is_read = first.ec == std::errc() && first.ptr != end && *first.ptr == '.' &&
                       std::from_chars(first.ptr + 1, end, minor).ec == std::errc();
  if (is_read && major == kMajor && minor >= kLowestMinor) return;
  Throw(StatusCode::kUnsupported, Field{path}, Printable(path), " is llguidance ", Quoted(version, 40),
        "; oga works with ", kMajor, ".", kLowestMinor, " and later releases of ", kMajor, "; ", kRemedy);
}

// The structure has no size field: whether it grew is seen from what the library itself writes into a larger one.
void CheckLayout(const LlgFunctions& functions, const std::string& path) {
  constexpr unsigned char kUntouched = 0xA5;
  constexpr size_t kRoom = 512;
  alignas(LlgConstraintInit) unsigned char bytes[kRoom];
  std::memset(bytes, kUntouched, sizeof bytes);
  const auto* const tokenizer = reinterpret_cast<const LlgTokenizer*>(&functions);
  auto* const init = reinterpret_cast<LlgConstraintInit*>(bytes);
  functions.llg_constraint_init_set_defaults(init, tokenizer);
  bool is_as_declared = init->tokenizer == tokenizer && bytes[offsetof(LlgConstraintInit, ff_tokens_ok)] <= 1 &&
                        bytes[offsetof(LlgConstraintInit, backtrack_ok)] <= 1 &&
                        bytes[offsetof(LlgConstraintInit, limits.precompute_large_lexemes)] <= 1 &&
                        bytes[offsetof(LlgConstraintInit, limits.verbose_errors)] <= 1;
  constexpr size_t kLargestLimit = size_t{1} << 40;
  const LlgParserLimits& limits = init->limits;
  for (const size_t limit : {limits.max_items_in_row, size_t{limits.initial_lexer_fuel}, size_t{limits.step_lexer_fuel},
                             limits.step_max_items, limits.max_lexer_states, limits.max_grammar_size}) {
    is_as_declared = is_as_declared && limit > 0 && limit < kLargestLimit;
  }
  for (size_t i = sizeof(LlgConstraintInit); i < kRoom; ++i) is_as_declared = is_as_declared && bytes[i] == kUntouched;
  if (is_as_declared) return;
  Throw(StatusCode::kUnsupported, Field{path}, Printable(path),
        " lays out its settings in a way that this oga does not know; ", kRemedy);
}

LlgFunctions LookUpAll(void* library, const std::string& path) {
  LlgFunctions functions;
#define OGA_LLG_LOOK_UP(name) LookUp(library, #name, path, functions.name)
  OGA_LLG_LOOK_UP(llg_get_version);
  OGA_LLG_LOOK_UP(llg_new_tokenizer_v2);
  OGA_LLG_LOOK_UP(llg_free_tokenizer);
  OGA_LLG_LOOK_UP(llg_constraint_init_set_defaults);
  OGA_LLG_LOOK_UP(llg_new_matcher);
  OGA_LLG_LOOK_UP(llg_clone_matcher);
  OGA_LLG_LOOK_UP(llg_free_matcher);
  OGA_LLG_LOOK_UP(llg_matcher_get_error);
  OGA_LLG_LOOK_UP(llg_matcher_is_error);
  OGA_LLG_LOOK_UP(llg_matcher_get_mask_byte_size);
  OGA_LLG_LOOK_UP(llg_matcher_compute_mask_into);
  OGA_LLG_LOOK_UP(llg_matcher_validate_tokens);
  OGA_LLG_LOOK_UP(llg_matcher_consume_tokens);
  OGA_LLG_LOOK_UP(llg_matcher_rollback);
  OGA_LLG_LOOK_UP(llg_matcher_reset);
  OGA_LLG_LOOK_UP(llg_matcher_is_accepting);
  OGA_LLG_LOOK_UP(llg_matcher_is_stopped);
  OGA_LLG_LOOK_UP(llg_matcher_compute_ff_tokens);
#undef OGA_LLG_LOOK_UP
  return functions;
}

std::string TakeLoaderError() {
  const char* reason = dlerror();
  return reason == nullptr ? "unknown reason" : Printable(reason);
}

bool OpenPython(int minor) {
  return dlopen(Message("libpython3.", minor, ".so.1.0").c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
}

// The library uses Python's stable interface, so any release serves; the one it is installed for comes first.
bool OpenAnyPython(const std::string& path) {
  constexpr std::string_view kMark = "/python3.";
  constexpr int kOldest = 9;
  constexpr int kNewest = 20;
  const size_t mark = path.rfind(kMark);
  if (mark != std::string::npos) {
    int minor = 0;
    const char* const begin = path.data() + mark + kMark.size();
    if (std::from_chars(begin, path.data() + path.size(), minor).ec == std::errc() && OpenPython(minor)) return true;
  }
  for (int minor = kNewest; minor >= kOldest; --minor) {
    if (OpenPython(minor)) return true;
  }
  return false;
}

void* Open(const std::string& path) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  std::string reason = TakeLoaderError();
  const bool lacks_python = reason.find("undefined symbol: Py") != std::string::npos ||
                            reason.find("undefined symbol: _Py") != std::string::npos;
  if (lacks_python) {
    if (OpenAnyPython(path)) {
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      reason = TakeLoaderError();
    } else {
      reason +=
          "; outside Python it needs a libpython3 shared library, and this system has none (often the package "
          "libpython3-dev or python3-libs)";
    }
  }
  Throw(StatusCode::kUnsupported, Field{kGuidanceField}, "grammars need llguidance, and ", Printable(path),
        " cannot be loaded: ", reason, "; ", kRemedy);
}

// Leaked on purpose, as the library is: another thread may be inside it while static objects are being destroyed.
struct Selection {
  std::mutex mutex;
  std::string host_path;
  std::string loaded_path;
  std::string version;
  std::optional<LlgFunctions> functions;
};

Selection& GetSelection() {
  static Selection* const selection = new Selection;
  return *selection;
}

}  // namespace

void SetLibraryPath(const std::string& path) {
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  if (selection.functions && !path.empty() && path != selection.loaded_path) {
    Throw(StatusCode::kInvalidState, Field{"path"}, "llguidance is already in use from ",
          Printable(selection.loaded_path), ", so ", Printable(path),
          " cannot be used in this process; set the path before the first grammar");
  }
  selection.host_path = path;
}

const LlgFunctions& Library() {
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  if (!selection.functions) {
    const char* environment = std::getenv("OGA_LLGUIDANCE_LIBRARY");
    const bool is_set = environment != nullptr && *environment != '\0';
    const std::string path = is_set ? environment : selection.host_path;
    if (path.empty()) {
      Throw(StatusCode::kUnsupported, Field{kGuidanceField},
            "grammars need llguidance, which is not known here: ", kRemedy);
    }
    const LlgFunctions functions = LookUpAll(Open(path), path);
    selection.version = VersionOf(functions);
    CheckVersion(selection.version, path);
    CheckLayout(functions, path);
    selection.functions = functions;
    selection.loaded_path = path;
    log::Info(Message("using llguidance ", Printable(selection.version), " from ", Printable(path)));
  }
  return *selection.functions;
}

std::string LibraryVersion() {
  Library();
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  return Message(Printable(selection.version), " (", Printable(selection.loaded_path), ")");
}

}  // namespace oga::grammar
