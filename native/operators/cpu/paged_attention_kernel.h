// One PagedAttention node of a loaded graph: its attributes and inputs checked at load, and its computation.
//
// Owned by the session. Compute is const and runs on any number of threads at once, one per execution.
#pragma once

#include <initializer_list>
#include <string>

#include "kernels/attention/paged_attention.h"
#include "operators/cpu/kernel_context.h"

namespace oga::operators {

class PagedAttentionKernel {
 public:
  // Throws Error: kUnsupported for a feature of the operator that is not built, naming the node, the attribute or
  // input, what was found and what is supported; kModelError for a node that contradicts itself.
  PagedAttentionKernel(const ort::abi::KernelInfo* info, int session_threads);

  // Throws Error{kInvalidArgument} for shapes that do not fit together and for malformed tables; then nothing was read
  // through the tables and the caches are as they were.
  void Compute(ort::abi::KernelContext* context) const;

 private:
  kernels::PagedAttentionArgs ReadArgs(const KernelContext& context) const;
  void ReadActivations(const KernelContext& context, kernels::PagedAttentionArgs* args) const;
  void ReadTables(const KernelContext& context, kernels::PagedAttentionArgs* args) const;
  void ReadRotary(const KernelContext& context, kernels::PagedAttentionArgs* args) const;
  void ReadOptions(const KernelContext& context, kernels::PagedAttentionArgs* args) const;
  kernels::CacheScale ReadScale(const KernelContext& context, size_t input, bool per_channel, int32_t head_size) const;
  void RequireUpdateInPlace(const KernelContext& context, const kernels::PagedAttentionArgs& args) const;

  // Throws unless `tensor`, the input at `index`, has `shape`.
  void RequireShape(const KernelTensor& tensor, size_t index, std::initializer_list<int64_t> shape) const;

  const int session_threads_;
  std::string node_;  // "PagedAttention node /layers.3/attn"
  CacheType cache_type_ = CacheType::kFloat32;
  kernels::ActivationType activation_type_ = kernels::ActivationType::kFloat32;
  kernels::PagedAttentionParams params_;
  int32_t num_heads_ = 0;
  int32_t num_kv_heads_ = 0;
  bool packed_ = false;        // query, key and value share one input
  bool key_channels_ = false;  // an int8 cache of keys has a scale per channel
  bool value_channels_ = false;
  bool normed_ = false;
  bool sinks_ = false;
  bool mapped_ = false;
};

}  // namespace oga::operators
