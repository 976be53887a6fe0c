// Numbers of fields of the ONNX format, as they stand in a model file.
#pragma once

#include <cstdint>

namespace oga::onnx_fields {

inline constexpr uint32_t kModelGraph = 7;

inline constexpr uint32_t kGraphNode = 1;
inline constexpr uint32_t kGraphInitializer = 5;

inline constexpr uint32_t kTensorDataType = 2;
inline constexpr uint32_t kTensorName = 8;
inline constexpr uint32_t kTensorExternalData = 13;

inline constexpr uint32_t kEntryKey = 1;
inline constexpr uint32_t kEntryValue = 2;

inline constexpr uint32_t kNodeInput = 1;
inline constexpr uint32_t kNodeOperator = 4;
inline constexpr uint32_t kNodeDomain = 7;

}  // namespace oga::onnx_fields
