// A value that a config must refuse, and what its refusal must say.
#pragma once

#include "native/config/config_samples.h"

namespace oga::testing {

struct WrongValue {
  const char* overlay;
  const char* path;
  const char* found;
  const char* wanted;
};

// The row is tried as a file and as an overlay: each refusal must name where, the JSON path, what was found and what
// was wanted, and leave the old config as it was.
inline void ExpectRefused(const WrongValue& row) {
  SCOPED_TRACE(row.overlay);
  const auto expect_named = [&](const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(error.field(), row.path);
    EXPECT_CONTAINS(error.message(), std::string(": ") + row.path + " ");
    EXPECT_CONTAINS(error.message(), row.found);
    EXPECT_CONTAINS(error.message(), row.wanted);
  };
  JsonValue as_file = ParseJson(kSmallConfig);
  MergeOver(as_file, ParseJson(row.overlay));
  const Error from_file = ErrorOf([&] { GenaiConfig::FromText(WriteJson(as_file), "/models/small"); });
  expect_named(from_file);
  EXPECT_CONTAINS(from_file.message(), "/models/small/genai_config.json, line ");

  const GenaiConfig config = SmallConfig();
  const std::string before = Fingerprint(config);
  const Error from_overlay = ErrorOf([&] { config.WithOverlay(row.overlay); });
  expect_named(from_overlay);
  EXPECT_CONTAINS(from_overlay.message(), "the overlay is refused and the config stays as it was: ");
  EXPECT_EQ(Fingerprint(config), before);
}

}  // namespace oga::testing
