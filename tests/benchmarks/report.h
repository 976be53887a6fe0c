// What the program prints: one JSON object, in which a measurement is amounts of work and medians of seconds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "benchmarks/contest.h"

namespace oga::benchmarks {

using Json = nlohmann::ordered_json;

inline Json Seconds(const Contest& contest) {
  Json seconds = Json::object();
  for (const auto& [name, median] : contest.Results()) seconds[name] = median;
  return seconds;
}

// Samples of each measurement, and how long one is.
inline constexpr int kSamples = 5;
inline constexpr double kSampleSeconds = 0.02;

Json MeasureLimits(int threads);
Json MeasureProducts(const std::string& folder, const struct ProductShape& shape, int threads);
Json MeasureAttention(int threads);
Json MeasureVariants(int threads);

}  // namespace oga::benchmarks
