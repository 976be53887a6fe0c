// Builds paged attention calls for the tests and computes what they must give, in double precision and plain loops.
//
// Every slot of a cache that no row has written is NaN (in an int8 cache -1), in owned and in unowned blocks, and so
// are the slots before a row's window; table columns that the call has no business with hold -1 or an id far outside
// the cache.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/paged_attention.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/simd/cpu_isa.h"

namespace oga::kernels {

struct RowSpec {
  int32_t past = 0;
  int32_t num_new = 1;
};

struct CaseSpec {
  int32_t num_heads = 4;
  int32_t num_kv_heads = 2;
  int32_t head_size = 64;
  int32_t block_size = 16;
  std::vector<RowSpec> rows;
  CacheType cache_type = CacheType::kFloat32;
  ActivationType activation_type = ActivationType::kFloat32;
  bool channel_scales = false;  // of an int8 cache; else one scale
  int32_t window = -1;
  float scale = 0.0f;
  float softcap = 0.0f;
  bool sinks = false;
  bool norm = false;
  float norm_epsilon = 1e-6f;
  bool rotary = true;
  bool rotary_interleaved = false;
  int32_t rotary_offset = 0;
  int32_t rotary_dim = 0;  // 0 is the whole head
  bool packed = false;     // query, key and value of a token in one row of one buffer
  bool mapped = false;     // by a slot mapping that says what the table does
  uint32_t seed = 1;

  std::string Describe() const;
  // Whether AVX512_BF16 and AMX multiply in bfloat16 over such a cache.
  bool HoldsPairs() const { return cache_type == CacheType::kBfloat16 || cache_type == CacheType::kInt8; }
};

std::vector<CpuIsa> AvailableIsas();

// A way to compute a call: by the variant for an instruction set, or by that with other products of bfloat16.
struct AttentionWay {
  AttentionWay(CpuIsa isa) : name(CpuIsaName(isa)), isa(isa) {}
  AttentionWay(std::string name, CpuIsa isa, const PairAttentionVariant* pairs)
      : name(std::move(name)), isa(isa), pairs(pairs) {}
  void Compute(const PagedAttentionArgs& args, const ParallelFor& parallel_for) const;

  std::string name;
  CpuIsa isa;
  const PairAttentionVariant* pairs = nullptr;  // null are those of `isa`
};

// What AMX computes, over tiles in plain arithmetic: with instructions of AVX512_BF16 around them where the CPU has
// these, and without on every CPU. None for caches over which AMX does not multiply in bfloat16.
std::vector<AttentionWay> EmulatedAttention(const CaseSpec& spec);
// These, and every variant this machine runs.
std::vector<AttentionWay> AttentionWays(const CaseSpec& spec);

// Runs items one after another; in reverse order; on so many threads.
void Serially(size_t count, const std::function<void(size_t)>& body);
void Reversed(size_t count, const std::function<void(size_t)>& body);
template <int num_threads>
void OnThreads(size_t count, const std::function<void(size_t)>& body);
void OnFourThreads(size_t count, const std::function<void(size_t)>& body);

// The memory of one call. Copies are independent calls over equal memory.
class PagedAttentionCase {
 public:
  explicit PagedAttentionCase(const CaseSpec& spec);

  // Pointers into this object, which holds whatever it points to until it is called again. The output of a call over
  // narrow activations is read by FetchOutput.
  PagedAttentionArgs Args();
  void FetchOutput();
  // Validates, runs, and expects both to succeed. Output and stack begin as NaNs, as in the calls below.
  void Run(const AttentionWay& way, const ParallelFor& parallel_for = Serially);
  // The same tokens as several calls: each row's new tokens in chunks of `chunk_tokens`, other rows left out of a call
  // when they have none left.
  void RunInChunks(const AttentionWay& way, int32_t chunk_tokens);
  // Each row by a call of its own.
  void RunRowByRow(const AttentionWay& way);

  // [num_tokens, num_heads, head_size], from the cache as the call left it.
  std::vector<double> ExpectedOutput() const;
  // Fails the test where a new cache slot is not the rotated key, or the value, in the cache's rounding; and where
  // anything else in the caches has changed.
  void ExpectCacheWritten() const;
  // `units` of the last place of a narrow output come on top of what single precision takes: half a one for rounding, a
  // whole one where `expected` was rounded too. Where the last run multiplied in bfloat16, queries and weights of the
  // softmax were rounded to 8 bits: values of the size of 1 may be off by 2^-6, and by 2^-9 in the root of the mean
  // square.
  void ExpectOutputNear(const std::vector<double>& expected, double units = 0.5) const;

  // Every activation is a number that the activation type holds. They are widened here, and narrowed for a call.
  const CaseSpec spec;
  int32_t num_tokens = 0;
  int32_t num_blocks = 0;
  int32_t table_columns = 0;
  std::vector<float> query, key, value;
  std::vector<float> output;
  std::vector<uint8_t> key_cache, value_cache;
  std::vector<int32_t> cumulative_lengths, past_lengths, block_table;
  std::vector<float> cosines, sines, query_norm, key_norm, sinks;
  std::vector<float> key_scale, value_scale;
  int32_t num_threads = 1;  // that a call is told to divide its work by

 private:
  using Bytes = std::vector<uint8_t>;
  void DrawOptions();
  void MapBlocks();
  void FillCaches();
  void FillElement(int64_t index, float x, uint8_t* cache) const;
  void PointToActivations(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
                          PagedAttentionArgs* args);
  void MapSlots(PagedAttentionArgs* args);
  void RunTokens(const AttentionWay& way, const std::vector<int32_t>& done, const std::vector<int32_t>& count);
  void Compute(const AttentionWay& way, const PagedAttentionArgs& args, const ParallelFor& parallel_for);
  int32_t RotaryDim() const { return spec.rotary_dim == 0 ? spec.head_size - spec.rotary_offset : spec.rotary_dim; }
  int64_t CacheIndex(int32_t row, int32_t position, int32_t head) const;
  // The scale of the element at `index`; 1 for a cache of floats.
  double ScaleAt(bool is_key, int64_t index) const;
  double CacheValue(bool is_key, int64_t index) const;
  std::vector<double> Prepared(const float* head, const std::vector<float>& gains, int32_t position) const;
  void ExpectSlot(bool is_key, int64_t index, double wanted, double slack) const;
  const void* Narrow(const std::vector<float>& values, Bytes* memory) const;
  void Widen(const Bytes& memory, std::vector<float>* values) const;

  Bytes initial_key_cache_, initial_value_cache_;
  // What a call reads and writes when activations are narrow, and the packed ones.
  Bytes query_memory_, key_memory_, value_memory_, cos_memory_, sin_memory_, query_norm_memory_, key_norm_memory_,
      sink_memory_, output_memory_;
  std::vector<float> packed_;
  std::vector<int32_t> slot_mapping_;
  bool in_pairs_ = false;
};

}  // namespace oga::kernels
