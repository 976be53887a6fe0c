// What reading a config has to tell besides errors: keys that mean nothing to oga and features that stay off.
//
// Lives for one reading. Only values of the text just read are told, so an overlay does not repeat what the file said.
#pragma once

#include <string>
#include <vector>

#include "config/json_value.h"

namespace oga {

class ConfigNotes {
 public:
  // `news` is the text just read; null tells nothing.
  explicit ConfigNotes(JsonValue::Source news) : news_(std::move(news)) {}

  void AddUnknownKey(const JsonValue& value, const std::string& path);
  // `reason` completes the sentence "PATH (REASON)".
  void AddOff(const JsonValue& value, const std::string& path, const std::string& reason);

  // Writes at most one info line of each kind.
  void WriteToLog() const;

 private:
  JsonValue::Source news_;
  std::vector<std::string> unknown_keys_;
  std::vector<std::string> off_;
};

}  // namespace oga
