#include "text/extensions.h"

#include <dlfcn.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"

namespace oga {

namespace {

constexpr const char* kRemedy =
    "pip install onnxruntime-extensions, and let OGA_ORTX_LIBRARY or OgaSetOrtExtensionsLibrary name the file "
    "_extensions_pydll*.so of that package; or render the conversation in Python with oga.ChatTemplate";

// --- Our view of the library's C API, version 1 -----------------------------------------------------------------------

constexpr int kApiVersion = 1;

struct Object;  // every handle of the library
using Code = int;

struct TokenizerBlob {
  const char* config = nullptr;
  const char* vocabulary = nullptr;
  const char* module = nullptr;
  const char* raw_model = nullptr;
  const char* reserved = nullptr;
  size_t config_length = 0;
  size_t vocabulary_length = 0;
  size_t module_length = 0;
  size_t raw_model_length = 0;
  size_t reserved_length = 0;
};

struct Functions {
  int (*OrtxGetAPIVersion)();
  const char* (*OrtxGetLastErrorMessage)();
  Code (*OrtxDispose)(Object** object);
  Code (*OrtxCreateTokenizerFromBlob)(Object** tokenizer, const TokenizerBlob* blob);
  // Came in the release in which OrtxApplyChatTemplate has the parameters below; its absence tells an older one.
  Code (*OrtxUpdateTokenizerOptions)(Object* tokenizer, const char* keys[], const char* values[], size_t count);
  Code (*OrtxApplyChatTemplate)(const Object* tokenizer, const char* chat_template, const char* messages,
                                const char* tools, Object** result, bool add_generation_prompt, bool tokenize);
  Code (*OrtxTensorResultGetAt)(const Object* result, size_t index, Object** tensor);
  Code (*OrtxGetTensorData)(const Object* tensor, const void** data, const int64_t** shape, size_t* dimensions);
};

// --- Finding it -------------------------------------------------------------------------------------------------------

template <typename Function>
void LookUp(void* library, const char* name, const std::string& path, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return;
  Throw(StatusCode::kUnsupported, Field{path}, Printable(path),
        " is not a usable onnxruntime-extensions: it has no function ", name, "; ", kRemedy);
}

Functions LookUpAll(void* library, const std::string& path) {
  Functions functions;
#define OGA_ORTX_LOOK_UP(name) LookUp(library, #name, path, functions.name)
  OGA_ORTX_LOOK_UP(OrtxGetAPIVersion);
  OGA_ORTX_LOOK_UP(OrtxGetLastErrorMessage);
  OGA_ORTX_LOOK_UP(OrtxDispose);
  OGA_ORTX_LOOK_UP(OrtxCreateTokenizerFromBlob);
  OGA_ORTX_LOOK_UP(OrtxUpdateTokenizerOptions);
  OGA_ORTX_LOOK_UP(OrtxApplyChatTemplate);
  OGA_ORTX_LOOK_UP(OrtxTensorResultGetAt);
  OGA_ORTX_LOOK_UP(OrtxGetTensorData);
#undef OGA_ORTX_LOOK_UP
  const int version = functions.OrtxGetAPIVersion();
  if (version != kApiVersion) {
    Throw(StatusCode::kUnsupported, Field{path}, Printable(path), " has API version ", version, "; oga knows version ",
          kApiVersion, "; ", kRemedy);
  }
  return functions;
}

// "libpython3.11.so.1.0" for ".../_extensions_pydll.cpython-311-x86_64-linux-gnu.so"; empty when the name tells none.
std::string PythonOf(const std::string& path) {
  constexpr std::string_view kMark = ".cpython-3";
  const size_t mark = path.rfind(kMark);
  if (mark == std::string::npos) return {};
  const size_t begin = mark + kMark.size();
  const size_t end = path.find_first_not_of("0123456789", begin);
  return Message("libpython3.", path.substr(begin, end - begin), ".so.1.0");
}

std::string TakeLoaderError() {
  const char* reason = dlerror();
  return reason == nullptr ? "unknown reason" : Printable(reason);
}

void* Open(const std::string& path) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  std::string reason = TakeLoaderError();
  const std::string python = PythonOf(path);
  if (!python.empty()) {
    if (dlopen(python.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      reason += "; " + TakeLoaderError();
    } else if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return library;
    } else {
      reason = TakeLoaderError();
    }
  }
  Throw(StatusCode::kUnsupported, Field{path}, "chat templates need onnxruntime-extensions, and ", Printable(path),
        " cannot be loaded: ", reason, ". Outside Python it needs the libpython it was built for; ", kRemedy);
}

// Leaked on purpose, as the library is: another thread may be inside it while static objects are being destroyed.
struct Selection {
  std::mutex mutex;
  std::string api_path;
  std::string loaded_path;
  std::optional<Functions> functions;
};

Selection& GetSelection() {
  static Selection* const selection = new Selection;
  return *selection;
}

const Functions& Loaded() {
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  if (!selection.functions) {
    const char* environment = std::getenv("OGA_ORTX_LIBRARY");
    const bool is_set = environment != nullptr && *environment != '\0';
    const std::string path = is_set ? environment : selection.api_path;
    if (path.empty()) {
      Throw(StatusCode::kUnsupported, "chat templates need onnxruntime-extensions, which is not known here: ", kRemedy);
    }
    selection.functions = LookUpAll(Open(path), path);
    selection.loaded_path = path;
    log::Info(Message("using onnxruntime-extensions from ", Printable(path)));
  }
  return *selection.functions;
}

// --- Using it ---------------------------------------------------------------------------------------------------------

// A tokenizer is needed for bos_token and eos_token only, so that templates work for tokenizers of every kind.
constexpr std::string_view kSmallestVocabulary =
    R"({"added_tokens": [], "normalizer": null, "post_processor": null, "decoder": {"type": "ByteLevel"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";

void Check(const Functions& library, Code code, const char* what) {
  if (code == 0) return;
  const char* message = library.OrtxGetLastErrorMessage();
  Throw(StatusCode::kInvalidArgument, what, ": ", Printable(message == nullptr ? "unknown reason" : message));
}

struct Disposer {
  const Functions* library;
  void operator()(Object* object) const { library->OrtxDispose(&object); }
};
using Owned = std::unique_ptr<Object, Disposer>;

std::string Render(const Functions& library, const ChatRendering& rendering) {
  TokenizerBlob blob;
  blob.config = rendering.settings.data();
  blob.config_length = rendering.settings.size();
  blob.vocabulary = kSmallestVocabulary.data();
  blob.vocabulary_length = kSmallestVocabulary.size();
  Object* out = nullptr;
  Check(library, library.OrtxCreateTokenizerFromBlob(&out, &blob), "onnxruntime-extensions refused the settings");
  const Owned tokenizer(out, {&library});
  out = nullptr;
  Check(library,
        library.OrtxApplyChatTemplate(tokenizer.get(), rendering.chat_template.c_str(), rendering.messages.c_str(),
                                      nullptr, &out, rendering.add_generation_prompt, false),
        "the chat template refused the conversation");
  const Owned result(out, {&library});
  out = nullptr;
  Check(library, library.OrtxTensorResultGetAt(result.get(), 0, &out), "the chat template gave no text");
  const Owned tensor(out, {&library});
  const void* text = nullptr;
  Check(library, library.OrtxGetTensorData(tensor.get(), &text, nullptr, nullptr), "the chat template gave no text");
  return text == nullptr ? "" : static_cast<const char*>(text);
}

}  // namespace

void SetExtensionsPath(const std::string& path) {
  Selection& selection = GetSelection();
  const std::lock_guard lock(selection.mutex);
  if (selection.functions && !path.empty() && path != selection.loaded_path) {
    Throw(StatusCode::kInvalidState, Field{"path"}, "onnxruntime-extensions is already in use from ",
          Printable(selection.loaded_path), ", so ", Printable(path),
          " cannot be used in this process; set the path before the first chat template");
  }
  selection.api_path = path;
}

std::string RenderChat(const ChatRendering& rendering) {
  const Functions& library = Loaded();
  try {
    return Render(library, rendering);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {  // the library is written in C++ and does not promise to keep its exceptions
    Throw(StatusCode::kInvalidArgument, "the chat template made onnxruntime-extensions fail");
  }
}

}  // namespace oga
