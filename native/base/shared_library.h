// Libraries of others that liboga calls: looked up when they are first needed, never linked, and never unloaded, since
// another thread may be inside one while static objects are being destroyed. Any thread.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

class SharedLibrary {
 public:
  // Opens the file at `path`, or finds a bare name where the system looks for libraries. A failure is an empty library,
  // with the loader's words, printable, in `reason`.
  static SharedLibrary Open(const std::string& path, std::string* reason);

  // The library if the process has loaded it; nothing is loaded.
  static SharedLibrary FindLoaded(const std::string& path, std::string* reason);

  // Opens the extension module of a Python package. It refers to libpython: inside Python the symbols are there; in
  // another host a libpython is opened globally before it. A module of the stable interface (abi3) takes any release,
  // the one whose folder it lies in first; any other takes the release that its name or folder tells.
  static SharedLibrary OpenExtensionModule(const std::string& path, std::string* reason);

  explicit operator bool() const { return handle_ != nullptr; }

  // The address of a symbol, or null.
  void* Find(const char* name) const;

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}

  void* handle_;
};

// The file that defines the symbol at this address, absolute; `fallback` when the loader does not know.
std::string PathOfSymbol(void* symbol, const std::string& fallback);

// The same file's path without links and relative parts; `path` itself when there is no such file.
std::string AbsolutePath(const std::string& path);

// The one copy of a library that this process uses, named by an environment variable or else by the host. Once it is
// loaded the choice is final; a search that failed is repeated by the next call.
//
// `Contents` is what its user keeps of it, with `path` and `name` ("onnxruntime 1.23.0").
template <typename Contents>
class ChosenLibrary {
 public:
  // `before` says in the refusal of a late choice until when it could be made: "the first grammar".
  ChosenLibrary(const char* environment_variable, const char* before)
      : environment_variable_(environment_variable), before_(before) {}

  // Takes the host's choice; "" forgets it. Throws Error{kInvalidState} when the library is in use from another file.
  void Choose(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (contents_ && !path.empty() && AbsolutePath(path) != AbsolutePath(contents_->path)) {
      Throw(StatusCode::kInvalidState, Field{path}, contents_->name, " is already in use from ",
            Printable(contents_->path), ", so ", Printable(path),
            " cannot be used in this process; set the path before ", before_);
    }
    host_path_ = path;
  }

  // What load(environment's path, host's path) returned; a path that was not given is empty.
  template <typename Load>
  const Contents& Get(const Load& load) {
    const std::lock_guard lock(mutex_);
    if (!contents_) {
      const char* const environment_path = std::getenv(environment_variable_);
      contents_ = std::make_unique<const Contents>(
          load(std::string(environment_path == nullptr ? "" : environment_path), host_path_));
    }
    return *contents_;
  }

 private:
  const char* const environment_variable_;
  const char* const before_;
  std::mutex mutex_;
  std::string host_path_;
  std::unique_ptr<const Contents> contents_;
};

}  // namespace oga
