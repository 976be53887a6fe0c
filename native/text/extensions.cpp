#include "text/extensions.h"

#include <climits>
#include <cstdint>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"
#include "base/shared_library.h"

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
void LookUp(const SharedLibrary& library, const char* name, const std::string& path, Function& function) {
  function = reinterpret_cast<Function>(library.Find(name));
  if (function != nullptr) return;
  Throw(StatusCode::kUnsupported, Field{path}, Printable(path),
        " is not a usable onnxruntime-extensions: it has no function ", name, "; ", kRemedy);
}

Functions LookUpAll(const SharedLibrary& library, const std::string& path) {
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

struct Extensions {
  Functions functions;
  std::string path;
  std::string name = "onnxruntime-extensions";
};

Extensions Load(const std::string& path) {
  if (path.empty()) {
    Throw(StatusCode::kUnsupported, "chat templates need onnxruntime-extensions, which is not known here: ", kRemedy);
  }
  std::string reason;
  const SharedLibrary library = SharedLibrary::OpenExtensionModule(path, &reason);
  if (!library) {
    Throw(StatusCode::kUnsupported, Field{path}, "chat templates need onnxruntime-extensions, and ", Printable(path),
          " cannot be loaded: ", reason, "; ", kRemedy);
  }
  Extensions extensions{LookUpAll(library, path), path};
  log::Info(Message("using onnxruntime-extensions from ", Printable(path)));
  return extensions;
}

// Leaked on purpose, as the library is: another thread may be inside it while static objects are being destroyed.
ChosenLibrary<Extensions>& Choice() {
  static auto* const choice = new ChosenLibrary<Extensions>("OGA_ORTX_LIBRARY", "the first chat template");
  return *choice;
}

const Functions& Loaded() {
  const auto load = [](const std::string& environment_path, const std::string& host_path) {
    return Load(environment_path.empty() ? host_path : environment_path);
  };
  return Choice().Get(load).functions;
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

void SetExtensionsPath(const std::string& path) { Choice().Choose(path); }

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
