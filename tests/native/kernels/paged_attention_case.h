// Builds paged attention calls for the tests and computes what they must give, in double precision and plain loops.
//
// Every slot of a cache that no row has written is NaN, in owned and in unowned blocks, and so are the slots before a
// row's window; table columns that the call has no business with hold -1 or an id far outside the cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu_isa.h"
#include "kernels/paged_attention.h"

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
  int32_t window = -1;
  float scale = 0.0f;
  bool rotary = true;
  bool rotary_interleaved = false;
  int32_t rotary_dim = 0;  // 0 is the whole head
  bool packed = false;     // query, key and value of a token in one row of one buffer
  uint32_t seed = 1;

  std::string Describe() const;
};

std::vector<CpuIsa> AvailableIsas();

// Runs items one after another; in reverse order; on four threads.
void Serially(size_t count, const std::function<void(size_t)>& body);
void Reversed(size_t count, const std::function<void(size_t)>& body);
void OnFourThreads(size_t count, const std::function<void(size_t)>& body);

// The memory of one call. Copies are independent calls over equal memory.
class PagedAttentionCase {
 public:
  explicit PagedAttentionCase(const CaseSpec& spec);

  // Pointers into this object.
  PagedAttentionArgs Args();
  // Validates, runs, and expects both to succeed.
  void Run(CpuIsa isa, const ParallelFor& parallel_for = Serially);
  // The same tokens as several calls: each row's new tokens in chunks of `chunk_tokens`, other rows left out of a call
  // when they have none left.
  void RunInChunks(CpuIsa isa, int32_t chunk_tokens);
  // Each row by a call of its own.
  void RunRowByRow(CpuIsa isa);

  // [num_tokens, num_heads, head_size], from the cache as the call left it.
  std::vector<double> ExpectedOutput() const;
  // Fails the test where a new cache slot is not the rotated key, or the value, in the cache's rounding; and where
  // anything else in the caches has changed.
  void ExpectCacheWritten() const;
  void ExpectOutputNear(const std::vector<double>& expected) const;

  const CaseSpec spec;
  int32_t num_tokens = 0;
  int32_t num_blocks = 0;
  int32_t table_columns = 0;
  std::vector<float> query, key, value, packed;
  std::vector<float> output;
  std::vector<uint8_t> key_cache, value_cache;
  std::vector<int32_t> cumulative_lengths, past_lengths, block_table;
  std::vector<float> cosines, sines;

 private:
  void MapBlocks();
  void FillCaches();
  void RunTokens(CpuIsa isa, const std::vector<int32_t>& done, const std::vector<int32_t>& count);
  int32_t RotaryDim() const { return spec.rotary_dim == 0 ? spec.head_size : spec.rotary_dim; }
  int64_t CacheIndex(int32_t row, int32_t position, int32_t head) const;
  double CacheValue(const std::vector<uint8_t>& cache, int64_t index) const;
  std::vector<double> Rotated(const float* head, int32_t position) const;
  void ExpectSlot(const std::vector<uint8_t>& cache, int64_t index, double wanted, double slack) const;

  std::vector<uint8_t> initial_key_cache_, initial_value_cache_;
};

}  // namespace oga::kernels
