// The chat template of a model folder, and conversations made into text with it.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace oga {

// chat_template.jinja of the folder, or else the chat_template in tokenizer_config.json; of several there the one named
// "default". Throws Error{kNotFound} when there is none.
std::string ReadChatTemplate(const Tokenizer& tokenizer);

// The conversation `messages` (JSON: a list of {"role": ..., "content": ...}, all values strings) as text, by
// onnxruntime-extensions. Throws Error: kInvalidArgument for anything else than such a list, and when the template
// refuses; kUnsupported when a message holds more than text, and when the library is not there.
std::string RenderConversation(const Tokenizer& tokenizer, const std::string& chat_template,
                               const std::string& messages, bool add_generation_prompt);

}  // namespace oga
