#include "config/config_notes.h"

#include "base/error.h"
#include "base/log.h"

namespace oga {

namespace {

void WriteLine(const std::string& what, const std::vector<std::string>& items) {
  if (items.empty()) return;
  std::string line = what;
  for (size_t i = 0; i < items.size(); ++i) line += (i == 0 ? " " : ", ") + items[i];
  log::Info(line);
}

}  // namespace

void ConfigNotes::AddUnknownKey(const JsonValue& value, const std::string& path) {
  if (value.source == news_) unknown_keys_.push_back(Message(path, " (line ", value.line, ")"));
}

void ConfigNotes::AddOff(const JsonValue& value, const std::string& path, const std::string& reason) {
  if (value.source == news_) off_.push_back(Message(path, " (", reason, ")"));
}

void ConfigNotes::WriteToLog() const {
  if (news_ == nullptr) return;
  WriteLine(Message(*news_, ": ignored unknown keys:"), unknown_keys_);
  WriteLine(Message(*news_, ": off in this build:"), off_);
}

}  // namespace oga
