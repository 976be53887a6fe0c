#include "ort/paged_attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ort/kernel_context.h"
#include "ort/node_info.h"
#include "ort/paged_attention_op.h"

namespace oga::ort {

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
  } integers[] = {{"is_causal", 1}, {"rotary_offset", 0}, {"v_head_size", 0}};
  for (const auto& [name, off] : integers) {
    const int64_t found = info.Int(name).value_or(off);
    if (found != off) Refuse(node, "attribute ", name, " is ", found, "; liboga's CPU kernel supports only ", off);
  }
  if (const float softcap = info.Float("softcap").value_or(0.0f); softcap != 0.0f) {
    Refuse(node, "attribute softcap is ", softcap, "; liboga's CPU kernel supports only 0 (none)");
  }
  const struct {
    const char* name;
    const char* off;
  } texts[] = {{"kv_cache_layout", "SEPARATE"}, {"k_quant_type", "NONE"}, {"v_quant_type", "NONE"}};
  for (const auto& [name, off] : texts) {
    const std::string found = info.String(name).value_or(off);
    if (found != off) Refuse(node, "attribute ", name, " is ", found, "; liboga's CPU kernel supports only ", off);
  }
}

void RefuseOtherInputs(const NodeInfo& info, const std::string& node) {
  for (const size_t input : {kSlotMapping, kHeadSink, kQueryNorm, kKeyNorm, kKeyScale, kValueScale}) {
    if (!info.HasInput(input)) continue;
    Refuse(node, "input ", kPagedAttentionInputNames[input],
           " is given; liboga's CPU kernel does not support it, the input must be absent");
  }
}

void RequireType(const NodeInfo& info, const std::string& node, size_t input, ElementType wanted) {
  if (!info.HasInput(input)) return;
  const ElementType found = info.Input(input).type;
  if (found == wanted) return;
  Refuse(node, "input ", kPagedAttentionInputNames[input], " has element type ", ElementTypeName(found),
         "; liboga's CPU kernel supports only ", ElementTypeName(wanted), " here");
}

void CheckTypes(const NodeInfo& info, const std::string& node) {
  for (const size_t input : {kQuery, kKey, kValue, kCosCache, kSinCache}) {
    RequireType(info, node, input, ElementType::kFloat);
  }
  for (const size_t input : {kCumulativeLengths, kPastLengths, kBlockTable, kAttentionMetadata}) {
    RequireType(info, node, input, ElementType::kInt32);
  }
}

kernels::CacheType ReadCacheType(const NodeInfo& info, const std::string& node) {
  const ElementType keys = info.Input(kKeyCache).type;
  const ElementType values = info.Input(kValueCache).type;
  if (keys != values) {
    Throw(StatusCode::kModelError, node, ": key_cache has element type ", ElementTypeName(keys), " and value_cache ",
          ElementTypeName(values), "; they must be equal");
  }
  if (keys != ElementType::kFloat && keys != ElementType::kFloat16) {
    Refuse(node, "input key_cache has element type ", ElementTypeName(keys),
           "; liboga's CPU kernel supports float and float16 caches");
  }
  for (const char* name : {"k_cache_dtype", "v_cache_dtype"}) {
    const std::string logical = info.String(name).value_or("");
    if (!logical.empty() && logical != ElementTypeName(keys)) {
      Refuse(node, "attribute ", name, " is ", logical, " for a ", ElementTypeName(keys),
             " cache; liboga's CPU kernel stores the cache's own type only");
    }
  }
  return keys == ElementType::kFloat ? kernels::CacheType::kFloat32 : kernels::CacheType::kFloat16;
}

int32_t ReadHeads(const NodeInfo& info, const std::string& node, const char* name) {
  const auto heads = info.Int(name);
  if (!heads) Throw(StatusCode::kModelError, node, ": the required attribute ", name, " is missing");
  if (*heads < 1 || *heads > std::numeric_limits<int32_t>::max()) {
    Throw(StatusCode::kModelError, node, ": attribute ", name, " is ", *heads, "; it must be positive");
  }
  return static_cast<int32_t>(*heads);
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
  params.rotary = info.Int("do_rotary").value_or(0) != 0;
  params.rotary_interleaved = info.Int("rotary_interleaved").value_or(0) != 0;
  if (params.rotary && !(info.HasInput(kCosCache) && info.HasInput(kSinCache))) {
    Throw(StatusCode::kModelError, node, ": attribute do_rotary is set, so the inputs cos_cache and sin_cache must be ",
          "given");
  }
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
  const std::vector<Dimension> cache = info.Input(kKeyCache).dims;
  if (cache.size() == 4 && cache[3].is_fixed()) CheckHeadSize(cache[3].size, node);
}

}  // namespace

PagedAttentionKernel::PagedAttentionKernel(const abi::KernelInfo* kernel_info) {
  const NodeInfo info(kernel_info);
  node_ = Message("PagedAttention node ", info.name());
  RefuseOtherValues(info, node_);
  RefuseOtherInputs(info, node_);
  CheckTypes(info, node_);
  cache_type_ = ReadCacheType(info, node_);
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
  return args;
}

void PagedAttentionKernel::ReadActivations(const KernelContext& context, kernels::PagedAttentionArgs* args) const {
  const int64_t query_width = int64_t{num_heads_} * args->shape.head_size;
  const int64_t kv_width = int64_t{num_kv_heads_} * args->shape.head_size;
  const KernelTensor query = context.Input(kQuery);
  const int64_t row_width = packed_ ? query_width + 2 * kv_width : query_width;
  RequireShape(query, kQuery, {query.dims[0], row_width});
  args->shape.num_tokens = Narrow(query.dims[0], "num_tokens");
  args->query = static_cast<const float*>(query.data);
  args->query_stride = row_width;
  if (packed_) {
    args->key = args->query + query_width;
    args->value = args->key + kv_width;
    args->key_stride = args->value_stride = row_width;
    return;
  }
  const KernelTensor key = context.Input(kKey);
  const KernelTensor value = context.Input(kValue);
  RequireShape(key, kKey, {query.dims[0], kv_width});
  RequireShape(value, kValue, {query.dims[0], kv_width});
  args->key = static_cast<const float*>(key.data);
  args->value = static_cast<const float*>(value.data);
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
  if (cosine.dims[1] < 1 || 2 * cosine.dims[1] > args->shape.head_size) {
    Throw(StatusCode::kInvalidArgument, node_, ": input cos_cache has ", cosine.dims[1], " columns; a head of size ",
          args->shape.head_size, " takes 1 to ", args->shape.head_size / 2);
  }
  args->params.rotary_positions = Narrow(cosine.dims[0], "rotary positions");
  args->params.rotary_dim = static_cast<int32_t>(2 * cosine.dims[1]);
  args->cos_cache = static_cast<const float*>(cosine.data);
  args->sin_cache = static_cast<const float*>(sine.data);
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

void PagedAttentionKernel::Compute(abi::KernelContext* raw_context) const {
  const KernelContext context(raw_context);
  kernels::PagedAttentionArgs args = ReadArgs(context);
  RequireUpdateInPlace(context, args);
  const int64_t dims[] = {args.shape.num_tokens, int64_t{num_heads_} * args.shape.head_size};
  args.output = static_cast<float*>(context.Output(0, dims));
  const std::string problem = kernels::ValidatePagedAttention(args);
  if (!problem.empty()) Throw(StatusCode::kInvalidArgument, node_, ": ", problem);
  const kernels::ParallelFor parallel_for = [&context](size_t count, const std::function<void(size_t)>& body) {
    context.ParallelFor(count, body);
  };
  kernels::PagedAttention(args, parallel_for);
}

}  // namespace oga::ort
