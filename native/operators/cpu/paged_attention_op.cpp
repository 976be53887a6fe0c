#include "operators/cpu/paged_attention_op.h"

#include <limits>
#include <memory>

#include "operators/cpu/paged_attention_kernel.h"
#include "ort/make.h"
#include "ort/shape.h"

namespace oga::operators {

namespace {

enum Output : size_t { kOutput, kKeyCacheOut, kValueCacheOut, kOutputs };

bool IsRequired(size_t input) {
  return input == kQuery || input == kKeyCache || input == kValueCache || input == kCumulativeLengths ||
         input == kPastLengths || input == kBlockTable;
}

ort::abi::Status* CreateKernel(const ort::abi::CustomOp* self, const void* const*, const ort::abi::KernelInfo* info,
                               void** kernel) noexcept {
  const int threads = static_cast<const PagedAttentionOp*>(self)->session_threads;
  return ort::Guarded([&] { *kernel = std::make_unique<PagedAttentionKernel>(info, threads).release(); });
}

ort::abi::Status* Compute(void* kernel, ort::abi::KernelContext* context) noexcept {
  return ort::Guarded([&] { static_cast<const PagedAttentionKernel*>(kernel)->Compute(context); });
}

void Destroy(void* kernel) noexcept { delete static_cast<PagedAttentionKernel*>(kernel); }

// The runtime owns the infos it hands out here. nullptr for an input behind the last one that is given; one that is
// absent before it has an undefined type.
const ort::abi::ShapeInfo* InputInfo(const ort::abi::ShapeInferContext* context, size_t input) {
  ort::abi::ShapeInfo* info = nullptr;
  if (!ort::Succeeded(ort::Api().ShapeInferContext_GetInputTypeShape(context, input, &info))) return nullptr;
  ort::ElementType type = ort::ElementType::kUndefined;
  ort::Check(ort::Api().GetTensorElementType(info, &type), "cannot read a tensor's type");
  return type == ort::ElementType::kUndefined ? nullptr : info;
}

void PromiseOutput(const ort::abi::ShapeInferContext* context, size_t output, const ort::abi::ShapeInfo* info) {
  ort::Check(ort::Api().ShapeInferContext_SetOutputTypeShape(context, output, info),
             "cannot infer PagedAttention's shapes");
}

// With packed query, key and value the output is narrower than the input: by both kinds of kv heads, whose number and
// size the cache tells. -1 when they are symbolic.
int64_t PackedOutputWidth(const ort::TensorInfo& packed, const ort::TensorInfo& cache) {
  if (packed.dims.size() != 2 || cache.dims.size() != 4) return -1;
  const ort::Dimension& width = packed.dims[1];
  if (!width.is_fixed() || !cache.dims[2].is_fixed() || !cache.dims[3].is_fixed()) return -1;
  return width.size - 2 * cache.dims[2].size * cache.dims[3].size;
}

void PromisePackedOutput(const ort::abi::ShapeInferContext* context, const ort::abi::ShapeInfo* query,
                         const ort::abi::ShapeInfo* cache) {
  constexpr const char* kDoing = "cannot infer PagedAttention's shapes";
  const ort::TensorInfo packed = ort::ReadShapeInfo(query);
  if (packed.dims.size() != 2) return;  // a wrong rank is the kernel's to refuse, with a better message
  const int64_t width = cache == nullptr ? -1 : PackedOutputWidth(packed, ort::ReadShapeInfo(cache));
  const int64_t dims[2] = {packed.dims[0].size, width};
  const char* symbols[2] = {packed.dims[0].symbol.c_str(), ""};
  const auto info = ort::Make<ort::abi::ShapeInfo>(ort::Api().CreateTensorTypeAndShapeInfo, kDoing);
  ort::Check(ort::Api().SetTensorElementType(info.get(), packed.type), kDoing);
  ort::Check(ort::Api().SetDimensions(info.get(), dims, 2), kDoing);
  ort::Check(ort::Api().SetSymbolicDimensions(info.get(), symbols, 2), kDoing);
  PromiseOutput(context, kOutput, info.get());
}

ort::abi::Status* InferShapes(const ort::abi::CustomOp*, ort::abi::ShapeInferContext* context) noexcept {
  return ort::Guarded([&] {
    const ort::abi::ShapeInfo* const query = InputInfo(context, kQuery);
    const ort::abi::ShapeInfo* const cache = InputInfo(context, kKeyCache);
    if (query != nullptr && InputInfo(context, kKey) == nullptr) {
      PromisePackedOutput(context, query, cache);
    } else if (query != nullptr) {
      PromiseOutput(context, kOutput, query);
    }
    if (cache != nullptr) PromiseOutput(context, kKeyCacheOut, cache);
    if (const ort::abi::ShapeInfo* const values = InputInfo(context, kValueCache)) {
      PromiseOutput(context, kValueCacheOut, values);
    }
  });
}

// Release 1.23 crashes when an operator that infers shapes has an absent input before its last one.
bool RuntimeInfersShapes() { return ort::LoadedLibrary().IsAtLeast(1, 24); }

// Without inference the runtime gives an open output the type of the last input whose type is open: value_cache, which
// is right for the updated caches as long as nothing behind it is open.
ort::ElementType TypeWithoutInference(size_t input) {
  switch (input) {
    case kQuery:
    case kKey:
    case kValue:
    case kKeyCache:
    case kValueCache: return ort::ElementType::kUndefined;
    case kCumulativeLengths:
    case kPastLengths:
    case kBlockTable:
    case kSlotMapping:
    case kAttentionMetadata: return ort::ElementType::kInt32;
    default: return ort::ElementType::kFloat;
  }
}

ort::abi::CustomOp DeclareOp() noexcept {
  ort::abi::CustomOp op;
  op.GetName = [](const ort::abi::CustomOp*) noexcept { return "PagedAttention"; };
  op.GetExecutionProviderType = [](const ort::abi::CustomOp*) noexcept { return "CPUExecutionProvider"; };
  op.GetInputTypeCount = [](const ort::abi::CustomOp*) noexcept { return static_cast<size_t>(kPagedAttentionInputs); };
  op.GetOutputTypeCount = [](const ort::abi::CustomOp*) noexcept { return static_cast<size_t>(kOutputs); };
  op.GetInputCharacteristic = [](const ort::abi::CustomOp*, size_t input) noexcept {
    return IsRequired(input) ? ort::abi::Characteristic::kRequired : ort::abi::Characteristic::kOptional;
  };
  op.GetInputMemoryType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::abi::MemoryType::kDefault; };
  op.GetVariadicInputMinArity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  op.GetVariadicInputHomogeneity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  op.GetVariadicOutputMinArity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  op.GetVariadicOutputHomogeneity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  op.CreateKernelV2 = CreateKernel;
  op.KernelComputeV2 = Compute;
  op.KernelDestroy = Destroy;
  op.GetStartVersion = [](const ort::abi::CustomOp*) noexcept { return 1; };
  op.GetEndVersion = [](const ort::abi::CustomOp*) noexcept { return std::numeric_limits<int>::max(); };
  return op;
}

// The runtime does not tell how many outputs a node has, and promising a shape for one that is absent reads behind the
// end of its list. So the updated caches, which every paged decoder returns, are required.
ort::abi::CustomOp WithInference(ort::abi::CustomOp op) noexcept {
  op.GetInputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
  op.GetOutputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
  op.GetOutputCharacteristic = [](const ort::abi::CustomOp*, size_t) noexcept {
    return ort::abi::Characteristic::kRequired;
  };
  op.InferOutputShape = InferShapes;
  return op;
}

ort::abi::CustomOp WithoutInference(ort::abi::CustomOp op) noexcept {
  op.GetInputType = [](const ort::abi::CustomOp*, size_t input) noexcept { return TypeWithoutInference(input); };
  op.GetOutputType = [](const ort::abi::CustomOp*, size_t output) noexcept {
    return output == kOutput ? ort::ElementType::kFloat : ort::ElementType::kUndefined;
  };
  // The runtime takes one open type for a required output at most.
  op.GetOutputCharacteristic = [](const ort::abi::CustomOp*, size_t output) noexcept {
    return output == kOutput ? ort::abi::Characteristic::kRequired : ort::abi::Characteristic::kOptional;
  };
  return op;
}

}  // namespace

PagedAttentionOp::PagedAttentionOp(int session_threads)
    : ort::abi::CustomOp(RuntimeInfersShapes() ? WithInference(DeclareOp()) : WithoutInference(DeclareOp())),
      session_threads(session_threads) {}

}  // namespace oga::operators
