#include "base/log.h"

#include "base/printable_text.h"
#include "capi/boundary.h"

using oga::capi::Guard;
using oga::capi::Require;
using oga::log::Level;

OgaResult* OGA_API_CALL OgaSetLogBool(const char* name, bool value) {
  return Guard([&] {
    const std::string_view channel = &Require(name, "name");
    const bool everything = channel == "enabled";
    if (!everything && channel != "warning" && channel != "info") {
      oga::Throw(oga::StatusCode::kInvalidArgument, oga::Field{"name"}, "there is no log channel ",
                 oga::Quoted(channel), "; the channels are 'enabled' (all of them), 'warning' and 'info'");
    }
    if (everything || channel == "warning") oga::log::SetEnabled(Level::kWarning, value);
    if (everything || channel == "info") oga::log::SetEnabled(Level::kInfo, value);
  });
}

OgaResult* OGA_API_CALL OgaSetLogCallback(void (*callback)(const char* string, size_t length)) {
  oga::log::SetCallback(callback);
  return nullptr;
}
