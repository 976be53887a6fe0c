// Weights of one shape for matrix products, many times over, so that going through them is reading memory, and what
// multiplies them: our kernel called directly, and a session with a node for each copy.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/thread_team.h"
#include "kernels/product/packed_matmul.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"
#include "ort/session.h"

namespace oga::benchmarks {

struct ProductShape {
  int64_t k = 0;
  int64_t n = 0;
  int32_t bits = 4;
};

inline constexpr int32_t kBlockSize = 32;

// Bytes of the weights as the operator has them, the scales in floats.
int64_t SourceBytes(const ProductShape& shape);

// `copies` times the same numbers, each packed by itself for `isa`.
class PackedCopies {
 public:
  PackedCopies(kernels::CpuIsa isa, const ProductShape& shape, int64_t copies);

  int64_t count() const { return static_cast<int64_t>(weights_.size()); }
  size_t bytes() const { return arena_.used_bytes(); }  // of all of them

  // Multiplies `rows` rows with every copy.
  void Multiply(ThreadTeam* team, int64_t rows);

 private:
  const ProductShape shape_;
  kernels::WeightArena arena_;
  std::deque<kernels::PackedWeights> weights_;
  std::vector<float> activations_, output_;
  std::vector<uint64_t> scratch_;
};

// A graph of independent nodes x<i> -> y<i>, by our kernel or by the runtime's.
class ProductSession {
 public:
  ProductSession(const std::string& path, operators::CpuMatMul matmul, int threads);

  int64_t nodes() const { return static_cast<int64_t>(session_->inputs().size()); }

  // Binds `rows` rows to every node, all from the same memory and all into the same.
  void Bind(const ProductShape& shape, int64_t rows);
  void Run() const { session_->Run(*binding_); }

 private:
  std::unique_ptr<const ort::Session> session_;
  std::unique_ptr<ort::IoBinding> binding_;
  std::vector<float> activations_, output_;
};

}  // namespace oga::benchmarks
