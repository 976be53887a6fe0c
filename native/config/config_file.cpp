#include "config/config_file.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/printable_text.h"
#include "config/read_file.h"

namespace oga {

namespace {

// Real ones have a few kilobytes; the bound keeps a wrong path from filling the memory.
constexpr FileKind kConfigKind{
    .max_bytes = size_t{16} << 20, .noun = "config", .remedy = "`oga convert` makes a model folder with one"};

constexpr const char* kParameter = "config_path";  // what the public headers call the folder

}  // namespace

std::string AbsoluteFolder(const std::string& folder) {
  if (folder.empty()) {
    Throw(StatusCode::kInvalidArgument, Field{kParameter}, "the model folder is an empty path; give the folder's path");
  }
  if (folder.find('\0') != std::string::npos) {
    Throw(StatusCode::kInvalidArgument, Field{kParameter}, "the model folder ", Quoted(folder),
          " holds a NUL; give the folder's path");
  }
  std::error_code error;
  std::string absolute = std::filesystem::absolute(folder, error).native();
  // Only possible when the working folder itself is gone; the path as given is then the best there is.
  if (error) absolute = folder;
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

std::string ReadConfigFile(const std::string& folder) {
  CheckFolder(folder, kConfigFileName);
  return ReadFile(folder + "/" + kConfigFileName, kConfigKind);
}

}  // namespace oga
