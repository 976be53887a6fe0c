#include "operators/cpu/matmul_nbits_kernel.h"

#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "kernels/product/packed_matmul.h"

namespace oga::operators {

namespace {

int64_t ReadSize(const NodeInfo& info, const std::string& node, const char* name) {
  const auto size = info.Int(name);
  if (!size) Throw(StatusCode::kModelError, node, ": the required attribute ", name, " is missing");
  if (*size < 1 || *size > std::numeric_limits<int32_t>::max()) {
    Throw(StatusCode::kModelError, node, ": attribute ", name, " is ", *size, "; it must be positive");
  }
  return *size;
}

}  // namespace

template <typename... Parts>
void MatMulNBitsKernel::Refuse(const Parts&... parts) const {
  const bool has_other = &operator_ == &OperatorOf(NBitsForm::kPlain);
  Throw(StatusCode::kUnsupported, node_, ": ", parts...,
        has_other ? "; set OGA_CPU_MATMUL=runtime to use the runtime's own kernel" : "");
}

MatMulNBitsKernel::MatMulNBitsKernel(NBitsForm form, const ort::abi::KernelInfo* raw_info, ProductMemory* memory)
    : operator_(OperatorOf(form)), memory_(memory) {
  const NodeInfo info(raw_info);
  node_ = Message(operator_.name, " node ", info.name());
  if (operator_.group_index && info.HasInput(*operator_.group_index)) {
    Refuse("input g_idx is given; liboga's CPU kernel does not support it, the input must be absent");
  }
  CheckTypes(info);
  ReadAttributes(info);
  has_zero_points_ = info.HasInput(operator_.matrices[0].zero_points);
  has_bias_ = operator_.bias && info.HasInput(*operator_.bias);
  PackConstants(info);
}

void MatMulNBitsKernel::CheckType(const NodeInfo& info, size_t input, ort::ElementType wanted) const {
  const ort::ElementType found = info.Input(input).type;
  if (found == wanted) return;
  Refuse("input ", operator_.inputs[input], " has element type ", ElementTypeName(found),
         "; liboga's CPU kernel supports only ", ElementTypeName(wanted), " here");
}

void MatMulNBitsKernel::CheckTypes(const NodeInfo& info) const {
  CheckType(info, 0, ort::ElementType::kFloat);
  if (operator_.bias && info.HasInput(*operator_.bias)) CheckType(info, *operator_.bias, ort::ElementType::kFloat);
  const NBitsMatrixInputs& first = operator_.matrices[0];
  for (const NBitsMatrixInputs& matrix : operator_.matrices) {
    CheckType(info, matrix.codes, ort::ElementType::kUint8);
    CheckType(info, matrix.scales, ort::ElementType::kFloat);
    const bool has_zeros = info.HasInput(matrix.zero_points);
    const ort::ElementType zeros = has_zeros ? info.Input(matrix.zero_points).type : ort::ElementType::kUint8;
    if (zeros != ort::ElementType::kUint8 && zeros != ort::ElementType::kFloat) {
      Refuse("input ", operator_.inputs[matrix.zero_points], " has element type ", ElementTypeName(zeros),
             "; liboga's CPU kernel supports uint8 and float here");
    }
    if (has_zeros == info.HasInput(first.zero_points) && (!has_zeros || zeros == info.Input(first.zero_points).type)) {
      continue;
    }
    Throw(StatusCode::kModelError, node_, ": the inputs ", operator_.inputs[first.zero_points], " and ",
          operator_.inputs[matrix.zero_points], " must both be given, of one type, or both be absent");
  }
}

void MatMulNBitsKernel::ReadAttributes(const NodeInfo& info) {
  attributes_.k = ReadSize(info, node_, "K");
  attributes_.n = ReadSize(info, node_, "N");
  const int64_t bits = info.Int("bits").value_or(4);
  if (bits != 4 && bits != 8) Refuse("attribute bits is ", bits, "; liboga's CPU kernel supports 4 and 8");
  const int64_t block_size = ReadSize(info, node_, "block_size");
  if (block_size < 16 || block_size > 256 || (block_size & (block_size - 1)) != 0) {
    Refuse("attribute block_size is ", block_size, "; liboga's CPU kernel supports 16, 32, 64, 128 and 256");
  }
  if (const int64_t packed = info.Int("weight_prepacked").value_or(0); packed != 0) {
    Refuse("attribute weight_prepacked is ", packed, "; liboga's CPU kernel supports only 0 (the ONNX layout)");
  }
  attributes_.bits = static_cast<int32_t>(bits);
  attributes_.block_size = static_cast<int32_t>(block_size);
}

void MatMulNBitsKernel::PackConstants(const NodeInfo& info) {
  std::array<std::optional<KernelTensor>, std::tuple_size_v<Inputs>> constants;
  Inputs inputs = {};
  for (const NBitsMatrixInputs& matrix : operator_.matrices) {
    for (const size_t input : {matrix.codes, matrix.scales, matrix.zero_points}) {
      if (!info.HasInput(input)) continue;
      constants[input] = info.Constant(input);
      if (!constants[input]) return;
      inputs[input] = &*constants[input];
    }
  }
  weights_ = std::make_unique<const kernels::PackedWeights>(Pack(inputs, &memory_->weights, memory_->on_load_threads));
  for (const auto& constant : constants) {
    if (!constant) continue;
    const size_t element_bytes = constant->type == ort::ElementType::kFloat ? sizeof(float) : 1;
    DropPacked(memory_, constant->data, static_cast<size_t>(constant->Elements()) * element_bytes);
  }
}

kernels::PackedWeights MatMulNBitsKernel::Pack(const Inputs& inputs, kernels::WeightArena* arena,
                                               const kernels::ParallelFor& parallel_for) const {
  const kernels::NBitsSource source = ReadMatrix(operator_.matrices[0], inputs);
  std::optional<kernels::NBitsSource> up;
  if (operator_.matrices.size() == 2) up = ReadMatrix(operator_.matrices[1], inputs);
  return kernels::PackedWeights(kernels::SelectedCpuIsa(), source, arena, parallel_for, up ? &*up : nullptr);
}

kernels::NBitsSource MatMulNBitsKernel::ReadMatrix(const NBitsMatrixInputs& matrix, const Inputs& inputs) const {
  kernels::NBitsSource source = attributes_;
  const int64_t blocks = (source.k + source.block_size - 1) / source.block_size;
  const int64_t zero_bytes = (blocks * source.bits + 7) / 8;
  const KernelTensor* const zeros = inputs[matrix.zero_points];
  const bool float_zeros = zeros != nullptr && zeros->type == ort::ElementType::kFloat;
  const struct {
    size_t input;
    int64_t elements;
  } rules[] = {{matrix.codes, source.n * blocks * source.block_size * source.bits / 8},
               {matrix.scales, source.n * blocks},
               {matrix.zero_points, source.n * (float_zeros ? blocks : zero_bytes)}};
  for (const auto& [input, elements] : rules) {
    if (inputs[input] == nullptr || inputs[input]->Elements() == elements) continue;
    Throw(StatusCode::kModelError, node_, ": input ", operator_.inputs[input], " has shape ",
          inputs[input]->ShapeText(), "; K ", source.k, ", N ", source.n, ", ", source.bits, " bits and blocks of ",
          source.block_size, " need ", elements, " elements");
  }
  source.codes = static_cast<const uint8_t*>(inputs[matrix.codes]->data);
  source.scales = static_cast<const float*>(inputs[matrix.scales]->data);
  if (float_zeros) {
    source.float_zeros = static_cast<const float*>(zeros->data);
  } else if (zeros != nullptr) {
    source.packed_zeros = static_cast<const uint8_t*>(zeros->data);
  }
  return source;
}

kernels::PackedWeights MatMulNBitsKernel::PackComputed(const KernelContext& context, kernels::WeightArena* arena,
                                                       const kernels::ParallelFor& parallel_for) const {
  std::array<KernelTensor, std::tuple_size_v<Inputs>> tensors;
  Inputs inputs = {};
  for (const NBitsMatrixInputs& matrix : operator_.matrices) {
    for (const size_t input : {matrix.codes, matrix.scales, matrix.zero_points}) {
      if (input == matrix.zero_points && !has_zero_points_) continue;
      tensors[input] = context.Input(input);
      inputs[input] = &tensors[input];
    }
  }
  return Pack(inputs, arena, parallel_for);
}

const float* MatMulNBitsKernel::ReadBias(const KernelContext& context) const {
  if (!has_bias_) return nullptr;
  const KernelTensor bias = context.Input(*operator_.bias);
  if (bias.Elements() == attributes_.n) return static_cast<const float*>(bias.data);
  Throw(StatusCode::kInvalidArgument, node_, ": input bias has shape ", bias.ShapeText(), "; [", attributes_.n,
        "] is wanted");
}

void MatMulNBitsKernel::Compute(ort::abi::KernelContext* raw_context) const {
  const KernelContext context(raw_context);
  const KernelTensor activations = context.Input(0);
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
  kernels::WeightArena computed_arena(&memory_->workspace_account);
  std::optional<kernels::PackedWeights> computed;
  if (!weights_) computed.emplace(PackComputed(context, &computed_arena, parallel_for));
  const kernels::PackedWeights& weights = weights_ ? *weights_ : *computed;
  const kernels::ScratchPool::Loan scratch(&memory_->scratch, kernels::PackedScratchBytes(weights, args.rows));
  args.scratch = scratch.data();
  kernels::PackedMatMul(weights, args, parallel_for);
}

}  // namespace oga::operators
