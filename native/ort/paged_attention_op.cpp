#include "ort/paged_attention_op.h"

#include <limits>
#include <memory>

#include "ort/make.h"
#include "ort/paged_attention_kernel.h"
#include "ort/shape.h"

namespace oga::ort {

namespace {

enum Output : size_t { kOutput, kKeyCacheOut, kValueCacheOut, kOutputs };

bool IsRequired(size_t input) {
  return input == kQuery || input == kKeyCache || input == kValueCache || input == kCumulativeLengths ||
         input == kPastLengths || input == kBlockTable;
}

abi::Status* CreateKernel(const abi::CustomOp* self, const void* const*, const abi::KernelInfo* info,
                          void** kernel) noexcept {
  const int threads = static_cast<const PagedAttentionOp*>(self)->session_threads;
  return Guarded([&] { *kernel = std::make_unique<PagedAttentionKernel>(info, threads).release(); });
}

abi::Status* Compute(void* kernel, abi::KernelContext* context) noexcept {
  return Guarded([&] { static_cast<const PagedAttentionKernel*>(kernel)->Compute(context); });
}

void Destroy(void* kernel) noexcept { delete static_cast<PagedAttentionKernel*>(kernel); }

// The runtime owns the infos it hands out here. nullptr for an input behind the last one that is given; one that is
// absent before it has an undefined type.
const abi::ShapeInfo* InputInfo(const abi::ShapeInferContext* context, size_t input) {
  abi::ShapeInfo* info = nullptr;
  if (!Succeeded(Api().ShapeInferContext_GetInputTypeShape(context, input, &info))) return nullptr;
  ElementType type = ElementType::kUndefined;
  Check(Api().GetTensorElementType(info, &type), "cannot read a tensor's type");
  return type == ElementType::kUndefined ? nullptr : info;
}

void PromiseOutput(const abi::ShapeInferContext* context, size_t output, const abi::ShapeInfo* info) {
  Check(Api().ShapeInferContext_SetOutputTypeShape(context, output, info), "cannot infer PagedAttention's shapes");
}

// With packed query, key and value the output is narrower than the input: by both kinds of kv heads, whose number and
// size the cache tells. -1 when they are symbolic.
int64_t PackedOutputWidth(const TensorInfo& packed, const TensorInfo& cache) {
  if (packed.dims.size() != 2 || cache.dims.size() != 4) return -1;
  const Dimension& width = packed.dims[1];
  if (!width.is_fixed() || !cache.dims[2].is_fixed() || !cache.dims[3].is_fixed()) return -1;
  return width.size - 2 * cache.dims[2].size * cache.dims[3].size;
}

void PromisePackedOutput(const abi::ShapeInferContext* context, const abi::ShapeInfo* query,
                         const abi::ShapeInfo* cache) {
  constexpr const char* kDoing = "cannot infer PagedAttention's shapes";
  const TensorInfo packed = ReadShapeInfo(query);
  if (packed.dims.size() != 2) return;  // a wrong rank is the kernel's to refuse, with a better message
  const int64_t width = cache == nullptr ? -1 : PackedOutputWidth(packed, ReadShapeInfo(cache));
  const int64_t dims[2] = {packed.dims[0].size, width};
  const char* symbols[2] = {packed.dims[0].symbol.c_str(), ""};
  const auto info = Make<abi::ShapeInfo>(Api().CreateTensorTypeAndShapeInfo, kDoing);
  Check(Api().SetTensorElementType(info.get(), packed.type), kDoing);
  Check(Api().SetDimensions(info.get(), dims, 2), kDoing);
  Check(Api().SetSymbolicDimensions(info.get(), symbols, 2), kDoing);
  PromiseOutput(context, kOutput, info.get());
}

abi::Status* InferShapes(const abi::CustomOp*, abi::ShapeInferContext* context) noexcept {
  return Guarded([&] {
    const abi::ShapeInfo* const query = InputInfo(context, kQuery);
    const abi::ShapeInfo* const cache = InputInfo(context, kKeyCache);
    if (query != nullptr && InputInfo(context, kKey) == nullptr) {
      PromisePackedOutput(context, query, cache);
    } else if (query != nullptr) {
      PromiseOutput(context, kOutput, query);
    }
    if (cache != nullptr) PromiseOutput(context, kKeyCacheOut, cache);
    if (const abi::ShapeInfo* const values = InputInfo(context, kValueCache)) {
      PromiseOutput(context, kValueCacheOut, values);
    }
  });
}

// Release 1.23 crashes when an operator that infers shapes has an absent input before its last one.
bool RuntimeInfersShapes() { return LoadedLibrary().IsAtLeast(1, 24); }

// Without inference the runtime gives an open output the type of the last input whose type is open: value_cache, which
// is right for the updated caches as long as nothing behind it is open.
ElementType TypeWithoutInference(size_t input) {
  switch (input) {
    case kQuery:
    case kKey:
    case kValue:
    case kKeyCache:
    case kValueCache: return ElementType::kUndefined;
    case kCumulativeLengths:
    case kPastLengths:
    case kBlockTable:
    case kSlotMapping:
    case kAttentionMetadata: return ElementType::kInt32;
    default: return ElementType::kFloat;
  }
}

abi::CustomOp DeclareOp() noexcept {
  abi::CustomOp op;
  op.GetName = [](const abi::CustomOp*) noexcept { return "PagedAttention"; };
  op.GetExecutionProviderType = [](const abi::CustomOp*) noexcept { return "CPUExecutionProvider"; };
  op.GetInputTypeCount = [](const abi::CustomOp*) noexcept { return static_cast<size_t>(kPagedAttentionInputs); };
  op.GetOutputTypeCount = [](const abi::CustomOp*) noexcept { return static_cast<size_t>(kOutputs); };
  op.GetInputCharacteristic = [](const abi::CustomOp*, size_t input) noexcept {
    return IsRequired(input) ? abi::Characteristic::kRequired : abi::Characteristic::kOptional;
  };
  op.GetInputMemoryType = [](const abi::CustomOp*, size_t) noexcept { return abi::MemoryType::kDefault; };
  op.GetVariadicInputMinArity = [](const abi::CustomOp*) noexcept { return 1; };
  op.GetVariadicInputHomogeneity = [](const abi::CustomOp*) noexcept { return 1; };
  op.GetVariadicOutputMinArity = [](const abi::CustomOp*) noexcept { return 1; };
  op.GetVariadicOutputHomogeneity = [](const abi::CustomOp*) noexcept { return 1; };
  op.CreateKernelV2 = CreateKernel;
  op.KernelComputeV2 = Compute;
  op.KernelDestroy = Destroy;
  op.GetStartVersion = [](const abi::CustomOp*) noexcept { return 1; };
  op.GetEndVersion = [](const abi::CustomOp*) noexcept { return std::numeric_limits<int>::max(); };
  return op;
}

// The runtime does not tell how many outputs a node has, and promising a shape for one that is absent reads behind the
// end of its list. So the updated caches, which every paged decoder returns, are required.
abi::CustomOp WithInference(abi::CustomOp op) noexcept {
  op.GetInputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kUndefined; };
  op.GetOutputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kUndefined; };
  op.GetOutputCharacteristic = [](const abi::CustomOp*, size_t) noexcept { return abi::Characteristic::kRequired; };
  op.InferOutputShape = InferShapes;
  return op;
}

abi::CustomOp WithoutInference(abi::CustomOp op) noexcept {
  op.GetInputType = [](const abi::CustomOp*, size_t input) noexcept { return TypeWithoutInference(input); };
  op.GetOutputType = [](const abi::CustomOp*, size_t output) noexcept {
    return output == kOutput ? ElementType::kFloat : ElementType::kUndefined;
  };
  // The runtime takes one open type for a required output at most.
  op.GetOutputCharacteristic = [](const abi::CustomOp*, size_t output) noexcept {
    return output == kOutput ? abi::Characteristic::kRequired : abi::Characteristic::kOptional;
  };
  return op;
}

}  // namespace

PagedAttentionOp::PagedAttentionOp(int session_threads)
    : abi::CustomOp(RuntimeInfersShapes() ? WithInference(DeclareOp()) : WithoutInference(DeclareOp())),
      session_threads(session_threads) {}

}  // namespace oga::ort
