#include "grammar/grammar_library.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"
#include "base/shared_library.h"
#include "grammar/grammar_errors.h"

namespace oga::grammar {

namespace {

constexpr const char* kRemedy =
    "pip install 'llguidance>=1.8,<2', and outside Python let OGA_LLGUIDANCE_LIBRARY name the file _lib*.so of that "
    "package";
constexpr unsigned kMajor = 1;
constexpr unsigned kLowestMinor = 8;  // since then a pattern for whitespace bounds it

template <typename Function>
void LookUp(const SharedLibrary& library, const char* name, const std::string& path, Function& function) {
  function = reinterpret_cast<Function>(library.Find(name));
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

LlgFunctions LookUpAll(const SharedLibrary& library, const std::string& path) {
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

struct Llguidance {
  LlgFunctions functions;
  std::string version;
  std::string path;
  std::string name;
};

Llguidance Load(const std::string& path) {
  if (path.empty()) {
    Throw(StatusCode::kUnsupported, Field{kGuidanceField},
          "grammars need llguidance, which is not known here: ", kRemedy);
  }
  std::string reason;
  const SharedLibrary library = SharedLibrary::OpenExtensionModule(path, &reason);
  if (!library) {
    Throw(StatusCode::kUnsupported, Field{kGuidanceField}, "grammars need llguidance, and ", Printable(path),
          " cannot be loaded: ", reason, "; ", kRemedy);
  }
  const LlgFunctions functions = LookUpAll(library, path);
  const std::string version = VersionOf(functions);
  CheckVersion(version, path);
  CheckLayout(functions, path);
  Llguidance loaded{functions, version, path, Message("llguidance ", Printable(version))};
  log::Info(Message("using ", loaded.name, " from ", Printable(path)));
  return loaded;
}

// Leaked on purpose, as the library is: another thread may be inside it while static objects are being destroyed.
ChosenLibrary<Llguidance>& Choice() {
  static auto* const choice = new ChosenLibrary<Llguidance>("OGA_LLGUIDANCE_LIBRARY", "the first grammar");
  return *choice;
}

const Llguidance& Loaded() {
  return Choice().Get([](const std::string& environment_path, const std::string& host_path) {
    return Load(environment_path.empty() ? host_path : environment_path);
  });
}

}  // namespace

void SetLibraryPath(const std::string& path) { Choice().Choose(path); }

const LlgFunctions& Library() { return Loaded().functions; }

std::string LibraryVersion() { return Message(Printable(Loaded().version), " (", Printable(Loaded().path), ")"); }

}  // namespace oga::grammar
