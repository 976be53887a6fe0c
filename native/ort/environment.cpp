#include "ort/environment.h"

#include <cstdlib>
#include <mutex>

#include "base/log.h"
#include "base/platform_process.h"
#include "ort/make.h"

namespace oga::ort {

namespace {

// Failures come back as statuses and become our errors, so the runtime's own lines are for who asked for detail.
void ForwardLog(void*, abi::LogSeverity severity, const char* category, const char*, const char*,
                const char* message) noexcept {
  const log::Level level = severity == abi::LogSeverity::kFatal ? log::Level::kWarning : log::Level::kInfo;
  if (!log::IsEnabled(level)) return;
  try {
    log::Write(level,
               Message("onnxruntime: ", category == nullptr ? "" : category, ": ", message == nullptr ? "" : message));
  } catch (...) {
    // A lost log line must not become a failure of the call that logged.
  }
}

// The runtime starts a telemetry thread with its first environment; DisableTelemetryEvents only silences it, and exit()
// in a forked child then waits for that thread without end. Whoever set the variable has decided for themselves.
void KeepTelemetryFromStarting() noexcept { platform::SetEnvironmentDefault("ORT_DISABLE_TELEMETRY", "1"); }

Owned<abi::Env> MakeEnv() {
  KeepTelemetryFromStarting();
  return Make<abi::Env>(Api().CreateEnvWithCustomLogger, "cannot create the onnxruntime environment", &ForwardLog,
                        nullptr, abi::LogSeverity::kWarning, "oga");
}

struct Shared {
  std::mutex mutex;
  std::shared_ptr<const Environment> environment;
};

// Leaked on purpose: a session of a static object may be released after our own static objects are gone.
Shared& GetShared() {
  static Shared* const shared = new Shared;
  return *shared;
}

}  // namespace

Environment::Environment() : env_(MakeEnv()) {
  Check(Api().DisableTelemetryEvents(env_.get()), "cannot turn off onnxruntime's telemetry");
}

std::shared_ptr<const Environment> Environment::Get() {
  Shared& shared = GetShared();
  const std::lock_guard lock(shared.mutex);
  if (!shared.environment) shared.environment = std::shared_ptr<const Environment>(new Environment);
  return shared.environment;
}

void Shutdown() noexcept {
  Shared& shared = GetShared();
  std::shared_ptr<const Environment> released;
  const std::lock_guard lock(shared.mutex);
  released.swap(shared.environment);
}

}  // namespace oga::ort
