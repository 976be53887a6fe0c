#include "ort/matmul_nbits_kernel.h"

#include <array>
#include <limits>
#include <optional>

#include "base/error.h"
#include "kernels/packed_matmul.h"
#include "ort/mapped_pages.h"
#include "ort/matmul_nbits_op.h"

namespace oga::ort {

namespace {

constexpr const char* kWayOut = "; set OGA_CPU_MATMUL=runtime to use the runtime's own kernel";

template <typename... Parts>
[[noreturn]] void Refuse(const std::string& node, const Parts&... parts) {
  Throw(StatusCode::kUnsupported, node, ": ", parts..., kWayOut);
}

int64_t ReadSize(const NodeInfo& info, const std::string& node, const char* name) {
  const auto size = info.Int(name);
  if (!size) Throw(StatusCode::kModelError, node, ": the required attribute ", name, " is missing");
  if (*size < 1 || *size > std::numeric_limits<int32_t>::max()) {
    Throw(StatusCode::kModelError, node, ": attribute ", name, " is ", *size, "; it must be positive");
  }
  return *size;
}

void CheckTypes(const NodeInfo& info, const std::string& node) {
  const struct {
    MatMulNBitsInput input;
    ElementType wanted;
  } rules[] = {{kActivations, ElementType::kFloat},
               {kCodes, ElementType::kUint8},
               {kScales, ElementType::kFloat},
               {kBias, ElementType::kFloat}};
  for (const auto& [input, wanted] : rules) {
    if (!info.HasInput(input)) continue;
    const ElementType found = info.Input(input).type;
    if (found == wanted) continue;
    Refuse(node, "input ", kMatMulNBitsInputNames[input], " has element type ", ElementTypeName(found),
           "; liboga's CPU kernel supports only ", ElementTypeName(wanted), " here");
  }
  if (!info.HasInput(kZeroPoints)) return;
  const ElementType zeros = info.Input(kZeroPoints).type;
  if (zeros == ElementType::kUint8 || zeros == ElementType::kFloat) return;
  Refuse(node, "input zero_points has element type ", ElementTypeName(zeros),
         "; liboga's CPU kernel supports uint8 and float here");
}

kernels::NBitsSource ReadAttributes(const NodeInfo& info, const std::string& node) {
  kernels::NBitsSource source;
  source.k = ReadSize(info, node, "K");
  source.n = ReadSize(info, node, "N");
  const int64_t bits = info.Int("bits").value_or(4);
  if (bits != 4 && bits != 8) {
    Refuse(node, "attribute bits is ", bits, "; liboga's CPU kernel supports 4 and 8");
  }
  const int64_t block_size = ReadSize(info, node, "block_size");
  if (block_size < 16 || block_size > 256 || (block_size & (block_size - 1)) != 0) {
    Refuse(node, "attribute block_size is ", block_size, "; liboga's CPU kernel supports 16, 32, 64, 128 and 256");
  }
  if (const int64_t packed = info.Int("weight_prepacked").value_or(0); packed != 0) {
    Refuse(node, "attribute weight_prepacked is ", packed, "; liboga's CPU kernel supports only 0 (the ONNX layout)");
  }
  source.bits = static_cast<int32_t>(bits);
  source.block_size = static_cast<int32_t>(block_size);
  return source;
}

}  // namespace

MatMulNBitsKernel::MatMulNBitsKernel(const abi::KernelInfo* raw_info, ProductMemory* memory) : memory_(memory) {
  const NodeInfo info(raw_info);
  node_ = Message("MatMulNBits node ", info.name());
  if (info.HasInput(kGroupIndex)) {
    Refuse(node_, "input g_idx is given; liboga's CPU kernel does not support it, the input must be absent");
  }
  CheckTypes(info, node_);
  attributes_ = ReadAttributes(info, node_);
  has_zero_points_ = info.HasInput(kZeroPoints);
  has_bias_ = info.HasInput(kBias);
  PackConstants(info);
}

void MatMulNBitsKernel::PackConstants(const NodeInfo& info) {
  std::array<std::optional<KernelTensor>, kMatMulNBitsInputs> constants;
  std::array<const KernelTensor*, kMatMulNBitsInputs> inputs = {};
  for (const MatMulNBitsInput input : {kCodes, kScales, kZeroPoints}) {
    if (!info.HasInput(input)) continue;
    constants[input] = info.Constant(input);
    if (!constants[input]) return;
    inputs[input] = &*constants[input];
  }
  weights_ = std::make_unique<const kernels::PackedWeights>(kernels::SelectedCpuIsa(), ReadWeights(inputs.data()),
                                                            &memory_->weights, memory_->on_load_threads);
  for (const auto& constant : constants) {
    if (!constant) continue;
    const size_t element_bytes = constant->type == ElementType::kFloat ? sizeof(float) : 1;
    DropMappedPages(constant->data, static_cast<size_t>(constant->Elements()) * element_bytes);
  }
}

kernels::NBitsSource MatMulNBitsKernel::ReadWeights(const KernelTensor* const* inputs) const {
  kernels::NBitsSource source = attributes_;
  const int64_t blocks = (source.k + source.block_size - 1) / source.block_size;
  const int64_t zero_bytes = (blocks * source.bits + 7) / 8;
  const KernelTensor* const zeros = inputs[kZeroPoints];
  const bool float_zeros = zeros != nullptr && zeros->type == ElementType::kFloat;
  const struct {
    MatMulNBitsInput input;
    int64_t elements;
  } rules[] = {{kCodes, source.n * blocks * source.block_size * source.bits / 8},
               {kScales, source.n * blocks},
               {kZeroPoints, source.n * (float_zeros ? blocks : zero_bytes)}};
  for (const auto& [input, elements] : rules) {
    if (inputs[input] == nullptr || inputs[input]->Elements() == elements) continue;
    Throw(StatusCode::kModelError, node_, ": input ", kMatMulNBitsInputNames[input], " has shape ",
          inputs[input]->ShapeText(), "; K ", source.k, ", N ", source.n, ", ", source.bits, " bits and blocks of ",
          source.block_size, " need ", elements, " elements");
  }
  source.codes = static_cast<const uint8_t*>(inputs[kCodes]->data);
  source.scales = static_cast<const float*>(inputs[kScales]->data);
  if (float_zeros) {
    source.float_zeros = static_cast<const float*>(zeros->data);
  } else if (zeros != nullptr) {
    source.packed_zeros = static_cast<const uint8_t*>(zeros->data);
  }
  return source;
}

const float* MatMulNBitsKernel::ReadBias(const KernelContext& context) const {
  if (!has_bias_) return nullptr;
  const KernelTensor bias = context.Input(kBias);
  if (bias.Elements() == attributes_.n) return static_cast<const float*>(bias.data);
  Throw(StatusCode::kInvalidArgument, node_, ": input bias has shape ", bias.ShapeText(), "; [", attributes_.n,
        "] is wanted");
}

void MatMulNBitsKernel::Compute(abi::KernelContext* raw_context) const {
  const KernelContext context(raw_context);
  const KernelTensor activations = context.Input(kActivations);
  constexpr size_t kMostDims = std::size(KernelTensor{}.dims);
  if (activations.rank < 1 || activations.rank > kMostDims || activations.dims[activations.rank - 1] != attributes_.k) {
    Throw(StatusCode::kInvalidArgument, node_, ": input A has shape ", activations.ShapeText(), "; at most ", kMostDims,
          " dimensions are wanted, the last one ", attributes_.k);
  }
  int64_t dims[kMostDims];
  std::copy_n(activations.dims, activations.rank, dims);
  dims[activations.rank - 1] = attributes_.n;
  kernels::PackedMatMulArgs args;
  args.activations = static_cast<const float*>(activations.data);
  args.rows = activations.Elements() / attributes_.k;
  args.bias = ReadBias(context);
  args.output = static_cast<float*>(context.Output(0, std::span(dims, activations.rank)));

  const kernels::ParallelFor parallel_for = [&context](size_t count, const std::function<void(size_t)>& body) {
    context.ParallelFor(count, body);
  };
  kernels::WeightArena computed_arena;
  std::optional<kernels::PackedWeights> computed;
  if (!weights_) {
    const KernelTensor inputs[] = {context.Input(kCodes), context.Input(kScales),
                                   has_zero_points_ ? context.Input(kZeroPoints) : KernelTensor{}};
    const KernelTensor* const by_index[] = {nullptr, &inputs[0], &inputs[1], has_zero_points_ ? &inputs[2] : nullptr};
    computed.emplace(kernels::SelectedCpuIsa(), ReadWeights(by_index), &computed_arena, parallel_for);
  }
  const kernels::PackedWeights& weights = weights_ ? *weights_ : *computed;
  const kernels::ScratchPool::Loan scratch(&memory_->scratch, kernels::PackedScratchBytes(weights, args.rows));
  args.scratch = scratch.data();
  kernels::PackedMatMul(weights, args, parallel_for);
}

}  // namespace oga::ort
