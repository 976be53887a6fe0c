// The file genai_config.json of a model folder: from a path a person typed to its bytes.
#pragma once

#include <string>

namespace oga {

inline constexpr const char* kConfigFileName = "genai_config.json";

// `folder` made absolute, so that a later change of the working folder does not move it, and without trailing slashes.
// "..", "." and links stay: resolving them here would change what the person reads in messages. Throws
// Error{kInvalidArgument} when it is empty or holds a NUL.
std::string AbsoluteFolder(const std::string& folder);

// The bytes of `folder`/genai_config.json. Throws Error{kNotFound} when the folder or the file does not exist and
// Error{kIoError} when it cannot be read or is no regular file; both name the full path and the reason.
std::string ReadConfigFile(const std::string& folder);

}  // namespace oga
