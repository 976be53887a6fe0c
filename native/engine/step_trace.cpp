#include "engine/step_trace.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

StepTrace::StepTrace(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    Throw(StatusCode::kIoError, Field{path}, "the trace file ", Quoted(path),
          " cannot be written: ", static_cast<const char*>(std::strerror(errno)));
  }
}

bool StepTrace::Write(const std::string& line) noexcept {
  // Flushed by line: a trace is read while the engine runs, and after a crash.
  return std::fputs(line.c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0;
}

}  // namespace oga
