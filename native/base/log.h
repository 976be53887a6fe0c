// The process-wide log sink. Nothing is written unless the host turned a channel on (OgaSetLogBool) or set a callback;
// warnings go to standard error by default.
//
// Any thread. The sink is, with the ONNX Runtime environment and the ledger of the CPU's memory, the only mutable global
// state of liboga.
#pragma once

#include <cstddef>
#include <string>

namespace oga::log {

enum class Level { kInfo, kWarning };

using Callback = void (*)(const char* text, size_t length);

// Replaces the sink; nullptr restores standard error.
void SetCallback(Callback callback) noexcept;

// Turns a level on or off. `info` is off and `warning` on at start.
void SetEnabled(Level level, bool enabled) noexcept;
bool IsEnabled(Level level) noexcept;

// Writes one line (no trailing newline in `text`). Never throws.
void Write(Level level, const std::string& text) noexcept;

inline void Info(const std::string& text) noexcept { Write(Level::kInfo, text); }
inline void Warning(const std::string& text) noexcept { Write(Level::kWarning, text); }

}  // namespace oga::log
