#include "operators/cpu/paged_attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "operators/cpu/kernel_context.h"
#include "operators/cpu/node_info.h"
#include "operators/cpu/paged_attention_op.h"

namespace oga::operators {

namespace {

constexpr int32_t kHeadSizeMultiple = 8;

template <typename... Parts>
[[noreturn]] void Refuse(const std::string& node, const Parts&... parts) {
  Throw(StatusCode::kUnsupported, node, ": ", parts...);
}

// Attributes of features that are not built may be set to the value that turns the feature off.
void RefuseOtherValues(const NodeInfo& info, const std::string& node) {
  const struct {
    const char* name;
    int64_t off;
  } integers[] = {{"is_causal", 1}, {"v_head_size", 0}};
  for (const auto& [name, off] : integers) {
    const int64_t found = info.Int(name).value_or(off);
    if (found != off) Refuse(node, "attribute ", name, " is ", found, "; liboga's CPU kernel supports only ", off);
  }
  const std::string layout = info.String("kv_cache_layout").value_or("SEPARATE");
  if (layout == "SEPARATE") return;
  Refuse(node, "attribute kv_cache_layout is ", layout, "; liboga's CPU kernel supports only SEPARATE");
}

void RequireType(const NodeInfo& info, const std::string& node, size_t input, ort::ElementType wanted) {
  if (!info.HasInput(input)) return;
  const ort::ElementType found = info.Input(input).type;
  if (found == wanted) return;
  Refuse(node, "input ", kPagedAttentionInputNames[input], " has element type ", ElementTypeName(found),
         "; liboga's CPU kernel supports only ", ElementTypeName(wanted), " here");
}

// All activations and what is applied to them share one type.
kernels::ActivationType ReadActivationType(const NodeInfo& info, const std::string& node) {
  const ort::ElementType type = info.Input(kQuery).type;
  if (type != ort::ElementType::kFloat && type != ort::ElementType::kFloat16 && type != ort::ElementType::kBfloat16) {
    Refuse(node, "input query has element type ", ElementTypeName(type),
           "; liboga's CPU kernel supports float, float16 and bfloat16 activations");
  }
  for (const size_t input : {kKey, kValue, kCosCache, kSinCache, kHeadSink, kQueryNorm, kKeyNorm}) {
    if (!info.HasInput(input) || info.Input(input).type == type) continue;
    Throw(StatusCode::kModelError, node, ": input ", kPagedAttentionInputNames[input], " has element type ",
          ElementTypeName(info.Input(input).type), " and query ", ElementTypeName(type), "; they must be equal");
  }
  if (type == ort::ElementType::kFloat16) return kernels::ActivationType::kFloat16;
  if (type == ort::ElementType::kBfloat16) return kernels::ActivationType::kBfloat16;
  return kernels::ActivationType::kFloat32;
}

void CheckOtherTypes(const NodeInfo& info, const std::string& node) {
  for (const size_t input : {kCumulativeLengths, kPastLengths, kBlockTable, kSlotMapping, kAttentionMetadata}) {
    RequireType(info, node, input, ort::ElementType::kInt32);
  }
  for (const size_t input : {kKeyScale, kValueScale}) RequireType(info, node, input, ort::ElementType::kFloat);
}

CacheType CacheTypeOf(ort::ElementType type, const std::string& node) {
  switch (type) {
    case ort::ElementType::kFloat: return CacheType::kFloat32;
    case ort::ElementType::kFloat16: return CacheType::kFloat16;
    case ort::ElementType::kBfloat16: return CacheType::kBfloat16;
    case ort::ElementType::kInt8: return CacheType::kInt8;
    default:
      Refuse(node, "input key_cache has element type ", ElementTypeName(type),
             "; liboga's CPU kernel supports float, float16, bfloat16 and int8 caches");
  }
}

CacheType ReadCacheType(const NodeInfo& info, const std::string& node) {
  const ort::ElementType keys = info.Input(kKeyCache).type;
  const ort::ElementType values = info.Input(kValueCache).type;
  if (keys != values) {
    Throw(StatusCode::kModelError, node, ": key_cache has element type ", ElementTypeName(keys), " and value_cache ",
          ElementTypeName(values), "; they must be equal");
  }
  const CacheType type = CacheTypeOf(keys, node);
  for (const char* name : {"k_cache_dtype", "v_cache_dtype"}) {
    const std::string logical = info.String(name).value_or("");
    if (!logical.empty() && logical != ElementTypeName(keys)) {
      Refuse(node, "attribute ", name, " is ", logical, " for a ", ElementTypeName(keys),
             " cache; liboga's CPU kernel stores the cache's own type only");
    }
  }
  return type;
}

// Whether a cache's scale is one per channel. The attribute, the cache's type and the input must agree.
bool ReadScaling(const NodeInfo& info, const std::string& node, CacheType cache, const char* attribute, size_t input) {
  const std::string found = info.String(attribute).value_or("NONE");
  const bool quantized = cache == CacheType::kInt8;
  if (found != "NONE" && found != "PER_TENSOR" && found != "PER_CHANNEL") {
    Throw(StatusCode::kModelError, node, ": attribute ", attribute, " is ", found,
          "; it must be NONE, PER_TENSOR or PER_CHANNEL");
  }
  if ((found != "NONE") != quantized) {
    Throw(StatusCode::kModelError, node, ": attribute ", attribute, " is ", found, " for a cache of ",
          ElementTypeName(info.Input(kKeyCache).type), "; ",
          quantized ? "an int8 cache needs PER_TENSOR or PER_CHANNEL" : "only an int8 cache is quantized");
  }
  if (info.HasInput(input) != quantized) {
    Throw(StatusCode::kModelError, node, ": input ", kPagedAttentionInputNames[input],
          quantized ? " is missing; an int8 cache needs its scale" : " is given; only an int8 cache has a scale");
  }
  return found == "PER_CHANNEL";
}

int32_t ReadHeads(const NodeInfo& info, const std::string& node, const char* name) {
  const auto heads = info.Int(name);
  if (!heads) Throw(StatusCode::kModelError, node, ": the required attribute ", name, " is missing");
  if (*heads < 1 || *heads > std::numeric_limits<int32_t>::max()) {
    Throw(StatusCode::kModelError, node, ": attribute ", name, " is ", *heads, "; it must be positive");
  }
  return static_cast<int32_t>(*heads);
}

void ReadNorm(const NodeInfo& info, const std::string& node, kernels::PagedAttentionParams* params) {
  if (info.HasInput(kQueryNorm) != info.HasInput(kKeyNorm)) {
    Throw(StatusCode::kModelError, node, ": the inputs q_norm_weight and k_norm_weight must both be given, or neither");
  }
  params->norm_epsilon = info.Float("qk_norm_epsilon").value_or(params->norm_epsilon);
  if (params->norm_epsilon >= 0.0f && std::isfinite(params->norm_epsilon)) return;
  Throw(StatusCode::kModelError, node, ": attribute qk_norm_epsilon is ", params->norm_epsilon,
        "; it must be 0 or a positive number");
}

void ReadRotation(const NodeInfo& info, const std::string& node, kernels::PagedAttentionParams* params) {
  params->rotary = info.Int("do_rotary").value_or(0) != 0;
  params->rotary_interleaved = info.Int("rotary_interleaved").value_or(0) != 0;
  const int64_t offset = info.Int("rotary_offset").value_or(0);
  if (offset < 0 || offset % kHeadSizeMultiple != 0 || offset >= kernels::kMaxHeadSize) {
    Throw(StatusCode::kModelError, node, ": attribute rotary_offset is ", offset, "; it must be a multiple of ",
          kHeadSizeMultiple, " within the head");
  }
  params->rotary_offset = static_cast<int32_t>(offset);
  if (params->rotary && !(info.HasInput(kCosCache) && info.HasInput(kSinCache))) {
    Throw(StatusCode::kModelError, node, ": attribute do_rotary is set, so the inputs cos_cache and sin_cache must be ",
          "given");
  }
}

kernels::PagedAttentionParams ReadParams(const NodeInfo& info, const std::string& node) {
  kernels::PagedAttentionParams params;
  params.scale = info.Float("scale").value_or(0.0f);
  if (!std::isfinite(params.scale)) {
    Throw(StatusCode::kModelError, node, ": attribute scale is ", params.scale, "; it must be a finite number");
  }
  const int64_t window = info.Int("local_window_size").value_or(-1);
  if (window != -1 && (window < 1 || window > std::numeric_limits<int32_t>::max())) {
    Throw(StatusCode::kModelError, node, ": attribute local_window_size is ", window,
          "; it must be -1 (no window) or the number of keys a query sees, itself included");
  }
  params.window = static_cast<int32_t>(window);
  params.softcap = info.Float("softcap").value_or(0.0f);
  if (!(params.softcap >= 0.0f && std::isfinite(params.softcap))) {
    Throw(StatusCode::kModelError, node, ": attribute softcap is ", params.softcap,
          "; it must be a positive number, or 0 for none");
  }
  ReadNorm(info, node, &params);
  ReadRotation(info, node, &params);
  return params;
}

int32_t Narrow(int64_t size, const char* what) {
  if (size <= std::numeric_limits<int32_t>::max()) return static_cast<int32_t>(size);
  Throw(StatusCode::kInvalidArgument, what, " is ", size, "; liboga's CPU kernel counts in 32 bits");
}

void CheckHeadSize(int64_t head_size, const std::string& node) {
  if (head_size >= 1 && head_size <= kernels::kMaxHeadSize && head_size % kHeadSizeMultiple == 0) return;
  Refuse(node, "the head size is ", head_size, "; liboga's CPU kernel supports multiples of ", kHeadSizeMultiple,
         " up to ", kernels::kMaxHeadSize);
}

// Known at load for every export with fixed head sizes; an open one is checked at each execution.
void CheckFixedHeadSize(const NodeInfo& info, const std::string& node) {
  const std::vector<ort::Dimension> cache = info.Input(kKeyCache).dims;
  if (cache.size() == 4 && cache[3].is_fixed()) CheckHeadSize(cache[3].size, node);
}

}  // namespace

PagedAttentionKernel::PagedAttentionKernel(const ort::abi::KernelInfo* kernel_info, int session_threads)
    : session_threads_(session_threads) {
  const NodeInfo info(kernel_info);
  node_ = Message("PagedAttention node ", info.name());
  RefuseOtherValues(info, node_);
  activation_type_ = ReadActivationType(info, node_);
  CheckOtherTypes(info, node_);
  cache_type_ = ReadCacheType(info, node_);
  key_channels_ = ReadScaling(info, node_, cache_type_, "k_quant_type", kKeyScale);
  value_channels_ = ReadScaling(info, node_, cache_type_, "v_quant_type", kValueScale);
  normed_ = info.HasInput(kQueryNorm);
  sinks_ = info.HasInput(kHeadSink);
  mapped_ = info.HasInput(kSlotMapping);
  CheckFixedHeadSize(info, node_);
  num_heads_ = ReadHeads(info, node_, "num_heads");
  num_kv_heads_ = ReadHeads(info, node_, "kv_num_heads");
  if (num_heads_ % num_kv_heads_ != 0) {
    Throw(StatusCode::kModelError, node_, ": num_heads is ", num_heads_, ", which is no multiple of kv_num_heads ",
          num_kv_heads_);
  }
  params_ = ReadParams(info, node_);
  packed_ = !info.HasInput(kKey);
  if (packed_ == info.HasInput(kValue)) {
    Throw(StatusCode::kModelError, node_, ": the inputs key and value must both be given, or neither (packed)");
  }
}

void PagedAttentionKernel::RequireShape(const KernelTensor& tensor, size_t index,
                                        std::initializer_list<int64_t> shape) const {
  if (tensor.HasShape(shape)) return;
  KernelTensor wanted;
  wanted.rank = shape.size();
  std::copy(shape.begin(), shape.end(), wanted.dims);
  Throw(StatusCode::kInvalidArgument, node_, ": input ", kPagedAttentionInputNames[index], " has shape ",
        tensor.ShapeText(), "; ", wanted.ShapeText(), " is wanted");
}

// Sets the cache's part of the shape first: everything else is measured against it.
kernels::PagedAttentionArgs PagedAttentionKernel::ReadArgs(const KernelContext& context) const {
  kernels::PagedAttentionArgs args;
  args.params = params_;
  args.cache_type = cache_type_;
  args.activation_type = activation_type_;
  const KernelTensor keys = context.Input(kKeyCache);
  const KernelTensor values = context.Input(kValueCache);
  RequireShape(keys, kKeyCache, {keys.dims[0], keys.dims[1], num_kv_heads_, keys.dims[3]});
  RequireShape(values, kValueCache, {keys.dims[0], keys.dims[1], num_kv_heads_, keys.dims[3]});
  CheckHeadSize(keys.dims[3], node_);
  args.key_cache = keys.data;
  args.value_cache = values.data;
  args.shape.num_blocks = Narrow(keys.dims[0], "num_blocks");
  args.shape.block_size = Narrow(keys.dims[1], "block_size");
  args.shape.num_heads = num_heads_;
  args.shape.num_kv_heads = num_kv_heads_;
  args.shape.head_size = static_cast<int32_t>(keys.dims[3]);
  ReadActivations(context, &args);
  ReadTables(context, &args);
  if (params_.rotary) ReadRotary(context, &args);
  ReadOptions(context, &args);
  return args;
}

void PagedAttentionKernel::ReadActivations(const KernelContext& context, kernels::PagedAttentionArgs* args) const {
  const int64_t query_width = int64_t{num_heads_} * args->shape.head_size;
  const int64_t kv_width = int64_t{num_kv_heads_} * args->shape.head_size;
  const KernelTensor query = context.Input(kQuery);
  const int64_t row_width = packed_ ? query_width + 2 * kv_width : query_width;
  RequireShape(query, kQuery, {query.dims[0], row_width});
  args->shape.num_tokens = Narrow(query.dims[0], "num_tokens");
  args->query = query.data;
  args->query_stride = row_width;
  if (packed_) {
    const int32_t bytes = kernels::ActivationBytes(activation_type_);
    args->key = static_cast<const char*>(query.data) + query_width * bytes;
    args->value = static_cast<const char*>(args->key) + kv_width * bytes;
    args->key_stride = args->value_stride = row_width;
    return;
  }
  const KernelTensor key = context.Input(kKey);
  const KernelTensor value = context.Input(kValue);
  RequireShape(key, kKey, {query.dims[0], kv_width});
  RequireShape(value, kValue, {query.dims[0], kv_width});
  args->key = key.data;
  args->value = value.data;
  args->key_stride = args->value_stride = kv_width;
}

void PagedAttentionKernel::ReadTables(const KernelContext& context, kernels::PagedAttentionArgs* args) const {
  const KernelTensor past = context.Input(kPastLengths);
  const KernelTensor cumulative = context.Input(kCumulativeLengths);
  const KernelTensor table = context.Input(kBlockTable);
  RequireShape(past, kPastLengths, {past.dims[0]});
  RequireShape(cumulative, kCumulativeLengths, {past.dims[0] + 1});
  RequireShape(table, kBlockTable, {past.dims[0], table.dims[1]});
  args->shape.num_rows = Narrow(past.dims[0], "rows");
  args->shape.table_columns = Narrow(table.dims[1], "block table columns");
  args->past_lengths = static_cast<const int32_t*>(past.data);
  args->cumulative_lengths = static_cast<const int32_t*>(cumulative.data);
  args->block_table = static_cast<const int32_t*>(table.data);
}

void PagedAttentionKernel::ReadRotary(const KernelContext& context, kernels::PagedAttentionArgs* args) const {
  const KernelTensor cosine = context.Input(kCosCache);
  const KernelTensor sine = context.Input(kSinCache);
  RequireShape(cosine, kCosCache, {cosine.dims[0], cosine.dims[1]});
  RequireShape(sine, kSinCache, {cosine.dims[0], cosine.dims[1]});
  const int32_t most = (args->shape.head_size - params_.rotary_offset) / 2;
  if (cosine.dims[1] < 1 || cosine.dims[1] > most) {
    Throw(StatusCode::kInvalidArgument, node_, ": input cos_cache has ", cosine.dims[1], " columns; a head of size ",
          args->shape.head_size, " rotated from ", params_.rotary_offset, " on takes 1 to ", most);
  }
  args->params.rotary_positions = Narrow(cosine.dims[0], "rotary positions");
  args->params.rotary_dim = static_cast<int32_t>(2 * cosine.dims[1]);
  args->cos_cache = cosine.data;
  args->sin_cache = sine.data;
}

kernels::CacheScale PagedAttentionKernel::ReadScale(const KernelContext& context, size_t input, bool per_channel,
                                                    int32_t head_size) const {
  const KernelTensor scale = context.Input(input);
  per_channel ? RequireShape(scale, input, {num_kv_heads_, 1, head_size}) : RequireShape(scale, input, {1});
  return {static_cast<const float*>(scale.data), per_channel};
}

void PagedAttentionKernel::ReadOptions(const KernelContext& context, kernels::PagedAttentionArgs* args) const {
  const int32_t head_size = args->shape.head_size;
  const auto read = [&](size_t input, int64_t size) {
    const KernelTensor tensor = context.Input(input);
    RequireShape(tensor, input, {size});
    return tensor.data;
  };
  if (normed_) {
    args->query_norm = read(kQueryNorm, head_size);
    args->key_norm = read(kKeyNorm, head_size);
  }
  if (sinks_) args->head_sink = read(kHeadSink, num_heads_);
  if (mapped_) args->slot_mapping = static_cast<const int32_t*>(read(kSlotMapping, args->shape.num_tokens));
  if (cache_type_ != CacheType::kInt8) return;
  args->key_scale = ReadScale(context, kKeyScale, key_channels_, head_size);
  args->value_scale = ReadScale(context, kValueScale, value_channels_, head_size);
}

// The kernel writes into the input caches. Outputs elsewhere would be left unwritten, so they must be the same memory.
void PagedAttentionKernel::RequireUpdateInPlace(const KernelContext& context,
                                                const kernels::PagedAttentionArgs& args) const {
  const int64_t dims[] = {args.shape.num_blocks, args.shape.block_size, args.shape.num_kv_heads, args.shape.head_size};
  const void* const caches[] = {args.key_cache, args.value_cache};
  for (size_t i = 0; i < std::size(caches); ++i) {
    const void* const updated = context.Output(i + 1, dims);
    if (updated == nullptr || updated == caches[i]) continue;
    Throw(StatusCode::kInvalidArgument, node_, ": the output of ", kPagedAttentionInputNames[kKeyCache + i],
          " is not bound to the memory of the input; the cache is updated in place");
  }
}

void PagedAttentionKernel::Compute(ort::abi::KernelContext* raw_context) const {
  const KernelContext context(raw_context);
  kernels::PagedAttentionArgs args = ReadArgs(context);
  RequireUpdateInPlace(context, args);
  const int64_t dims[] = {args.shape.num_tokens, int64_t{num_heads_} * args.shape.head_size};
  args.output = context.Output(0, dims);
  args.num_threads = session_threads_;
  const std::string problem = kernels::ValidatePagedAttention(args);
  if (!problem.empty()) Throw(StatusCode::kInvalidArgument, node_, ": ", problem);
  const kernels::ParallelFor parallel_for = [&context](size_t count, const std::function<void(size_t)>& body) {
    context.ParallelFor(count, body);
  };
  kernels::PagedAttention(args, parallel_for);
}

}  // namespace oga::operators
