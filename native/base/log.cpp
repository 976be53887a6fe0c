#include "base/log.h"

#include <atomic>
#include <cstdio>

namespace oga::log {

namespace {
std::atomic<Callback> g_callback{nullptr};
std::atomic<bool> g_enabled[2] = {false, true};

std::atomic<bool>& Flag(Level level) { return g_enabled[level == Level::kInfo ? 0 : 1]; }
}  // namespace

void SetCallback(Callback callback) noexcept { g_callback.store(callback); }
void SetEnabled(Level level, bool enabled) noexcept { Flag(level).store(enabled); }
bool IsEnabled(Level level) noexcept { return Flag(level).load(); }

void Write(Level level, const std::string& text) noexcept {
  if (!IsEnabled(level)) return;
  if (const Callback callback = g_callback.load()) {
    callback(text.c_str(), text.size());
    return;
  }
  std::fprintf(stderr, "oga: %s%s\n", level == Level::kWarning ? "warning: " : "", text.c_str());
}

}  // namespace oga::log
