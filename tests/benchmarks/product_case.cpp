#include "benchmarks/product_case.h"

#include <random>

namespace oga::benchmarks {

namespace {

// Numbers of every kind of bits: a product of zeros alone can be faster.
std::vector<float> RandomFloats(int64_t count) {
  std::minstd_rand random(7);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return values;
}

int64_t Blocks(const ProductShape& shape) { return (shape.k + kBlockSize - 1) / kBlockSize; }
int64_t CodeBytes(const ProductShape& shape) { return shape.n * Blocks(shape) * kBlockSize * shape.bits / 8; }

}  // namespace

int64_t SourceBytes(const ProductShape& shape) { return CodeBytes(shape) + shape.n * Blocks(shape) * 4; }

PackedCopies::PackedCopies(kernels::CpuIsa isa, const ProductShape& shape, int64_t copies) : shape_(shape) {
  std::minstd_rand random(3);
  std::vector<uint8_t> codes(static_cast<size_t>(CodeBytes(shape)));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
  const std::vector<float> scales(static_cast<size_t>(shape.n * Blocks(shape)), 0.02f);
  kernels::NBitsSource source;
  source.k = shape.k;
  source.n = shape.n;
  source.bits = shape.bits;
  source.block_size = kBlockSize;
  source.codes = codes.data();
  source.scales = scales.data();
  const auto serially = [](size_t count, const std::function<void(size_t)>& body) {
    for (size_t i = 0; i < count; ++i) body(i);
  };
  for (int64_t copy = 0; copy < copies; ++copy) weights_.emplace_back(isa, source, &arena_, serially);
}

void PackedCopies::Multiply(ThreadTeam* team, int64_t rows) {
  if (static_cast<int64_t>(activations_.size()) != rows * shape_.k) {
    activations_ = RandomFloats(rows * shape_.k);
    output_.resize(static_cast<size_t>(rows * shape_.n));
    scratch_.resize(kernels::PackedScratchBytes(weights_.front(), rows) / sizeof(uint64_t) + 8);
  }
  kernels::PackedMatMulArgs args;
  args.activations = activations_.data();
  args.rows = rows;
  args.output = output_.data();
  args.scratch = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64 / sizeof(uint64_t);
  const kernels::ParallelFor parallel_for = [team](size_t count, const std::function<void(size_t)>& body) {
    team->ForEach(count, body);
  };
  for (const kernels::PackedWeights& weights : weights_) kernels::PackedMatMul(weights, args, parallel_for);
}

ProductSession::ProductSession(const std::string& path, operators::CpuMatMul matmul, int threads) {
  session_ = std::make_unique<const ort::Session>(
      path, oga::operators::CpuSessionOptions({.intra_op_threads = threads, .matmul = matmul}));
  binding_ = std::make_unique<ort::IoBinding>(*session_);
}

void ProductSession::Bind(const ProductShape& shape, int64_t rows) {
  activations_ = RandomFloats(rows * shape.k);
  output_.resize(static_cast<size_t>(rows * shape.n));
  const auto bound = [&](std::vector<float>& values, int64_t width) {
    const int64_t dims[] = {rows, width};
    return ort::Tensor(*session_, AddressOf(values.data()), values.size() * sizeof(float), dims,
                       ort::ElementType::kFloat);
  };
  for (const auto& input : session_->inputs()) binding_->BindInput(input.name, bound(activations_, shape.k));
  for (const auto& output : session_->outputs()) binding_->BindOutput(output.name, bound(output_, shape.n));
}

}  // namespace oga::benchmarks
