// Our own view of the ONNX Runtime C ABI: opaque handles, the enums we pass, the one vtable we implement, and the slots
// of the function table that we call. The runtime's headers are not needed: its table is append-only, so a slot keeps
// its index and its signature for good. All slots here belong to API version 18.
//
// Only native/ort and native/operators include this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ort/element_type.h"

namespace oga::ort::abi {

inline constexpr uint32_t kApiVersion = 18;

struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct IoBinding;
struct Value;
struct MemoryInfo;
struct Allocator;
struct TypeInfo;
struct ShapeInfo;  // OrtTensorTypeAndShapeInfo
struct CustomOpDomain;
struct KernelInfo;
struct KernelContext;
struct ShapeInferContext;
struct CustomOp;
struct Op;      // an operator of the runtime that another one runs
struct OpAttr;  // an attribute for it

enum class ErrorCode : int {
  kOk = 0,
  kFail = 1,
  kInvalidArgument = 2,
  kNoSuchFile = 3,
  kNoModel = 4,
  kEngineError = 5,
  kRuntimeException = 6,
  kInvalidProtobuf = 7,
  kModelLoaded = 8,
  kNotImplemented = 9,
  kInvalidGraph = 10,
  kEpFail = 11,
};

enum class LogSeverity : int { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3, kFatal = 4 };
enum class OptimizationLevel : int { kNone = 0, kBasic = 1, kExtended = 2, kAll = 99 };
enum class AllocatorType : int { kDevice = 0, kArena = 1 };
enum class MemoryType : int { kDefault = 0 };
enum class OpAttrType : int { kInt = 1, kFloat = 3 };
enum class Characteristic : int { kRequired = 0, kOptional = 1, kVariadic = 2 };

using LogFunction = void (*)(void* state, LogSeverity severity, const char* category, const char* log_id,
                             const char* code_location, const char* message);
using LoopBody = void (*)(void* state, size_t index);

// X(slot, result, name, parameters). Not formatted by the tool, which takes the parameters for multiplications.
// clang-format off
#define OGA_ORT_SLOTS(X)                                                                                             \
  X(0, Status*, CreateStatus, (ErrorCode code, const char* message))                                                 \
  X(1, ErrorCode, GetErrorCode, (const Status* status))                                                              \
  X(2, const char*, GetErrorMessage, (const Status* status))                                                         \
  X(4, Status*, CreateEnvWithCustomLogger,                                                                           \
    (LogFunction log, void* state, LogSeverity severity, const char* log_id, Env** out))                             \
  X(6, Status*, DisableTelemetryEvents, (const Env* env))                                                            \
  X(7, Status*, CreateSession, (const Env* env, const char* path, const SessionOptions* options, Session** out))     \
  X(10, Status*, CreateSessionOptions, (SessionOptions** out))                                                       \
  X(17, Status*, DisableMemPattern, (SessionOptions* options))                                                       \
  X(18, Status*, EnableCpuMemArena, (SessionOptions* options))                                                       \
  X(22, Status*, SetSessionLogSeverityLevel, (SessionOptions* options, int severity))                                \
  X(23, Status*, SetSessionGraphOptimizationLevel, (SessionOptions* options, OptimizationLevel level))               \
  X(24, Status*, SetIntraOpNumThreads, (SessionOptions* options, int threads))                                       \
  X(25, Status*, SetInterOpNumThreads, (SessionOptions* options, int threads))                                       \
  X(26, Status*, CreateCustomOpDomain, (const char* domain, CustomOpDomain** out))                                   \
  X(27, Status*, CustomOpDomain_Add, (CustomOpDomain* domain, const CustomOp* op))                                   \
  X(28, Status*, AddCustomOpDomain, (SessionOptions* options, CustomOpDomain* domain))                               \
  X(30, Status*, SessionGetInputCount, (const Session* session, size_t* out))                                        \
  X(31, Status*, SessionGetOutputCount, (const Session* session, size_t* out))                                       \
  X(33, Status*, SessionGetInputTypeInfo, (const Session* session, size_t index, TypeInfo** out))                    \
  X(34, Status*, SessionGetOutputTypeInfo, (const Session* session, size_t index, TypeInfo** out))                   \
  X(36, Status*, SessionGetInputName, (const Session* session, size_t index, Allocator* allocator, char** out))      \
  X(37, Status*, SessionGetOutputName, (const Session* session, size_t index, Allocator* allocator, char** out))     \
  X(39, Status*, CreateRunOptions, (RunOptions** out))                                                               \
  X(49, Status*, CreateTensorWithDataAsOrtValue,                                                                     \
    (const MemoryInfo* memory, void* data, size_t bytes, const int64_t* dims, size_t rank, ElementType type,         \
     Value** out))                                                                                                   \
  X(51, Status*, GetTensorMutableData, (Value* value, void** out))                                                   \
  X(55, Status*, CastTypeInfoToTensorInfo, (const TypeInfo* type, const ShapeInfo** out))                            \
  X(57, Status*, CreateTensorTypeAndShapeInfo, (ShapeInfo** out))                                                    \
  X(58, Status*, SetTensorElementType, (ShapeInfo* info, ElementType type))                                          \
  X(59, Status*, SetDimensions, (ShapeInfo* info, const int64_t* dims, size_t rank))                                 \
  X(60, Status*, GetTensorElementType, (const ShapeInfo* info, ElementType* out))                                    \
  X(61, Status*, GetDimensionsCount, (const ShapeInfo* info, size_t* out))                                           \
  X(62, Status*, GetDimensions, (const ShapeInfo* info, int64_t* dims, size_t rank))                                 \
  X(63, Status*, GetSymbolicDimensions, (const ShapeInfo* info, const char** names, size_t rank))                    \
  X(65, Status*, GetTensorTypeAndShape, (const Value* value, ShapeInfo** out))                                       \
  X(68, Status*, CreateMemoryInfo,                                                                                   \
    (const char* name, AllocatorType allocator, int id, MemoryType memory, MemoryInfo** out))                        \
  X(76, Status*, AllocatorFree, (Allocator* allocator, void* memory))                                                \
  X(78, Status*, GetAllocatorWithDefaultOptions, (Allocator** out))                                                  \
  X(85, Status*, KernelInfoGetAttribute_float, (const KernelInfo* info, const char* name, float* out))               \
  X(86, Status*, KernelInfoGetAttribute_int64, (const KernelInfo* info, const char* name, int64_t* out))             \
  X(87, Status*, KernelInfoGetAttribute_string,                                                                      \
    (const KernelInfo* info, const char* name, char* out, size_t* size))                                             \
  X(89, Status*, KernelContext_GetOutputCount, (const KernelContext* context, size_t* out))                          \
  X(90, Status*, KernelContext_GetInput, (const KernelContext* context, size_t index, const Value** out))            \
  X(91, Status*, KernelContext_GetOutput,                                                                            \
    (KernelContext* context, size_t index, const int64_t* dims, size_t rank, Value** out))                           \
  X(92, void, ReleaseEnv, (Env* env))                                                                                \
  X(93, void, ReleaseStatus, (Status* status))                                                                       \
  X(94, void, ReleaseMemoryInfo, (MemoryInfo* memory))                                                               \
  X(95, void, ReleaseSession, (Session* session))                                                                    \
  X(96, void, ReleaseValue, (Value* value))                                                                          \
  X(97, void, ReleaseRunOptions, (RunOptions* options))                                                              \
  X(98, void, ReleaseTypeInfo, (TypeInfo* type))                                                                     \
  X(99, void, ReleaseTensorTypeAndShapeInfo, (ShapeInfo* info))                                                      \
  X(100, void, ReleaseSessionOptions, (SessionOptions* options))                                                     \
  X(101, void, ReleaseCustomOpDomain, (CustomOpDomain* domain))                                                      \
  X(133, Status*, RunWithBinding, (Session* session, const RunOptions* options, const IoBinding* binding))           \
  X(134, Status*, CreateIoBinding, (Session* session, IoBinding** out))                                              \
  X(135, void, ReleaseIoBinding, (IoBinding* binding))                                                               \
  X(136, Status*, BindInput, (IoBinding* binding, const char* name, const Value* value))                             \
  X(137, Status*, BindOutput, (IoBinding* binding, const char* name, const Value* value))                            \
  X(165, Status*, AddRunConfigEntry, (RunOptions* options, const char* key, const char* value))                      \
  X(211, Status*, CreateOpAttr,                                                                                      \
    (const char* name, const void* data, int length, OpAttrType type, OpAttr** out))                                 \
  X(212, void, ReleaseOpAttr, (OpAttr* attribute))                                                                   \
  X(213, Status*, CreateOp,                                                                                          \
    (const KernelInfo* info, const char* name, const char* domain, int version, const char** type_names,             \
     const ElementType* types, int type_count, const OpAttr* const* attributes, int attribute_count,                 \
     int input_count, int output_count, Op** out))                                                                   \
  X(214, Status*, InvokeOp,                                                                                          \
    (const KernelContext* context, const Op* op, const Value* const* inputs, int input_count,                        \
     Value* const* outputs, int output_count))                                                                       \
  X(215, void, ReleaseOp, (Op* op))                                                                                  \
  X(230, Status*, KernelInfo_GetInputCount, (const KernelInfo* info, size_t* out))                                   \
  X(232, Status*, KernelInfo_GetInputName, (const KernelInfo* info, size_t index, char* out, size_t* size))          \
  X(234, Status*, KernelInfo_GetInputTypeInfo, (const KernelInfo* info, size_t index, TypeInfo** out))               \
  X(244, Status*, KernelInfo_GetNodeName, (const KernelInfo* info, char* out, size_t* size))                         \
  X(249, Status*, KernelInfoGetConstantInput_tensor,                                                                 \
    (const KernelInfo* info, size_t index, int* is_constant, const Value** out))                                     \
  X(268, Status*, ShapeInferContext_GetInputTypeShape,                                                               \
    (const ShapeInferContext* context, size_t index, ShapeInfo** out))                                               \
  X(269, Status*, ShapeInferContext_GetAttribute,                                                                    \
    (const ShapeInferContext* context, const char* name, const OpAttr** out))                                        \
  X(270, Status*, ShapeInferContext_SetOutputTypeShape,                                                              \
    (const ShapeInferContext* context, size_t index, const ShapeInfo* info))                                         \
  X(271, Status*, SetSymbolicDimensions, (ShapeInfo* info, const char** names, size_t rank))                         \
  X(272, Status*, ReadOpAttr,                                                                                        \
    (const OpAttr* attribute, OpAttrType type, void* data, size_t bytes, size_t* out))                               \
  X(274, Status*, KernelContext_ParallelFor,                                                                         \
    (const KernelContext* context, LoopBody body, size_t count, size_t batches, void* state))
// clang-format on

// The slots as typed function pointers.
struct Api {
#define OGA_ORT_DECLARE(slot, Result, Name, Parameters) Result(*Name) Parameters noexcept = nullptr;
  OGA_ORT_SLOTS(OGA_ORT_DECLARE)
#undef OGA_ORT_DECLARE
};

// What the only exported symbol, OrtGetApiBase, returns.
struct ApiBase {
  const void* const* (*GetApi)(uint32_t version) noexcept;
  const char* (*GetVersionString)() noexcept;
};
using GetApiBase = const ApiBase* (*)() noexcept;

// The vtable of a custom operator, as of API version 18. Every entry is noexcept: nothing may be thrown into the
// runtime.
struct CustomOp {
  uint32_t version = kApiVersion;
  void* (*CreateKernel)(const CustomOp*, const void* const*, const KernelInfo*) noexcept = nullptr;
  const char* (*GetName)(const CustomOp*) noexcept = nullptr;
  const char* (*GetExecutionProviderType)(const CustomOp*) noexcept = nullptr;
  ElementType (*GetInputType)(const CustomOp*, size_t index) noexcept = nullptr;
  size_t (*GetInputTypeCount)(const CustomOp*) noexcept = nullptr;
  ElementType (*GetOutputType)(const CustomOp*, size_t index) noexcept = nullptr;
  size_t (*GetOutputTypeCount)(const CustomOp*) noexcept = nullptr;
  void (*KernelCompute)(void* kernel, KernelContext*) noexcept = nullptr;
  void (*KernelDestroy)(void* kernel) noexcept = nullptr;
  Characteristic (*GetInputCharacteristic)(const CustomOp*, size_t index) noexcept = nullptr;
  Characteristic (*GetOutputCharacteristic)(const CustomOp*, size_t index) noexcept = nullptr;
  MemoryType (*GetInputMemoryType)(const CustomOp*, size_t index) noexcept = nullptr;
  int (*GetVariadicInputMinArity)(const CustomOp*) noexcept = nullptr;
  int (*GetVariadicInputHomogeneity)(const CustomOp*) noexcept = nullptr;
  int (*GetVariadicOutputMinArity)(const CustomOp*) noexcept = nullptr;
  int (*GetVariadicOutputHomogeneity)(const CustomOp*) noexcept = nullptr;
  Status* (*CreateKernelV2)(const CustomOp*, const void* const*, const KernelInfo*, void** kernel) noexcept = nullptr;
  Status* (*KernelComputeV2)(void* kernel, KernelContext*) noexcept = nullptr;
  Status* (*InferOutputShape)(const CustomOp*, ShapeInferContext*) noexcept = nullptr;
  int (*GetStartVersion)(const CustomOp*) noexcept = nullptr;
  int (*GetEndVersion)(const CustomOp*) noexcept = nullptr;
  size_t (*GetMayInplace)(int** inputs, int** outputs) noexcept = nullptr;
  void (*ReleaseMayInplace)(int* inputs, int* outputs) noexcept = nullptr;
  size_t (*GetAliasMap)(int** inputs, int** outputs) noexcept = nullptr;
  void (*ReleaseAliasMap)(int* inputs, int* outputs) noexcept = nullptr;
};
static_assert(sizeof(CustomOp) == 26 * sizeof(void*), "the runtime reads this struct by offset");

}  // namespace oga::ort::abi
