#include "native/operators/cpu/probe_operator.h"

#include "ort/make.h"

namespace oga::operators {

namespace {

struct ProbeOp : ProductOp {
  ProbeOp(Probe* probe, ProductMemory* memory);

  Probe* const probe;
};

Probe& ProbeOf(const ort::abi::CustomOp* op) { return *static_cast<const ProbeOp*>(op)->probe; }

class ProbeKernel {
 public:
  ProbeKernel(Probe* probe, const ort::abi::KernelInfo* info) : probe_(*probe) {
    probe_.on_load(NodeInfo(info));
    ++probe_.kernels;
  }
  ~ProbeKernel() { --probe_.kernels; }
  void Compute(ort::abi::KernelContext* context) const { probe_.on_run(KernelContext(context)); }

 private:
  Probe& probe_;
};

ProbeKernel* MakeKernel(const ort::abi::CustomOp* op, const ort::abi::KernelInfo* info) {
  return new ProbeKernel(&ProbeOf(op), info);
}

ProbeOp::ProbeOp(Probe* probe, ProductMemory* memory) : ProductOp(memory), probe(probe) {
  GetName = [](const ort::abi::CustomOp* op) noexcept { return ProbeOf(op).name.c_str(); };
  GetInputTypeCount = [](const ort::abi::CustomOp* op) noexcept { return ProbeOf(op).inputs; };
  GetInputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
  GetInputCharacteristic = [](const ort::abi::CustomOp*, size_t) noexcept {
    return ort::abi::Characteristic::kOptional;
  };
  GetOutputTypeCount = [](const ort::abi::CustomOp* op) noexcept { return ProbeOf(op).outputs.size(); };
  GetOutputType = [](const ort::abi::CustomOp* op, size_t output) noexcept { return ProbeOf(op).outputs[output]; };
  if (probe->on_inference) {
    InferOutputShape = [](const ort::abi::CustomOp* op, ort::abi::ShapeInferContext* context) noexcept {
      return ort::Guarded([&] { ProbeOf(op).on_inference(context); });
    };
  }
  SetKernel<ProbeKernel, MakeKernel>(this);
}

class ProbeOperators final : public ort::CustomOperators {
 public:
  explicit ProbeOperators(Probe* probe)
      : op_(probe, &memory_),
        domain_(ort::Make<ort::abi::CustomOpDomain>(ort::Api().CreateCustomOpDomain, "cannot create a domain",
                                                    probe->domain.c_str())) {
    ort::Check(ort::Api().CustomOpDomain_Add(domain_.get(), &op_), "cannot add the probe");
  }

  void AddTo(ort::abi::SessionOptions* options) const override {
    ort::Check(ort::Api().AddCustomOpDomain(options, domain_.get()), "cannot register the probe");
  }

 private:
  ProductMemory memory_{nullptr, nullptr};
  const ProbeOp op_;
  const ort::Owned<ort::abi::CustomOpDomain> domain_;
};

}  // namespace

std::unique_ptr<const ort::Session> LoadWithProbe(const std::string& path, Probe* probe, int threads) {
  ort::SessionOptions options;
  options.threads = threads;
  options.operators = std::make_unique<const ProbeOperators>(probe);
  return std::make_unique<const ort::Session>(path, std::move(options));
}

}  // namespace oga::operators
