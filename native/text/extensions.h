// Chat templates, through the C functions that an installed onnxruntime-extensions exports.
//
// Any thread. base/shared_library.h says how the extension module of a Python package is found and opened.
#pragma once

#include <string>

namespace oga {

// Remembers the path that OgaSetOrtExtensionsLibrary gives; "" forgets it. The environment variable OGA_ORTX_LIBRARY
// wins over it. Throws Error{kInvalidState} when a library is in use from another path.
void SetExtensionsPath(const std::string& path);

struct ChatRendering {
  std::string chat_template;
  std::string messages;  // JSON: a list of objects whose values are strings
  std::string settings;  // JSON: an object with bos_token and eos_token
  bool add_generation_prompt = true;
};

// The text of a conversation. The caller has checked that the JSON is what it must be: the library ends the process
// otherwise. Throws Error: kUnsupported when no usable library is found, naming what to install and what to set,
// kInvalidArgument with the library's message when the template refuses or is no template.
std::string RenderChat(const ChatRendering& rendering);

}  // namespace oga
