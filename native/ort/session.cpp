#include "ort/session.h"

#include "base/error.h"
#include "base/printable_text.h"
#include "ort/io_binding.h"
#include "ort/make.h"
#include "ort/runtime_call.h"

namespace oga::ort {

namespace {

Owned<abi::SessionOptions> MakeOptions(const SessionOptions& options) {
  constexpr const char* kDoing = "cannot set up an onnxruntime session";
  const abi::Api& api = Api();
  auto made = Make<abi::SessionOptions>(api.CreateSessionOptions, kDoing);
  Check(api.SetSessionGraphOptimizationLevel(made.get(), abi::OptimizationLevel::kAll), kDoing);
  // Patterns are remembered per input shape, and the packed shapes of a batch hardly ever repeat.
  Check(api.DisableMemPattern(made.get()), kDoing);
  Check(api.EnableCpuMemArena(made.get()), kDoing);
  Check(api.SetIntraOpNumThreads(made.get(), options.threads), kDoing);
  Check(api.SetInterOpNumThreads(made.get(), 1), kDoing);
  Check(api.SetSessionLogSeverityLevel(made.get(), static_cast<int>(abi::LogSeverity::kWarning)), kDoing);
  if (options.operators) options.operators->AddTo(made.get());
  return made;
}

using GetTypeInfo = abi::Status* (*)(const abi::Session*, size_t, abi::TypeInfo**) noexcept;
using GetName = abi::Status* (*)(const abi::Session*, size_t, abi::Allocator*, char**) noexcept;

TensorInfo ReadTensor(const abi::Session* session, size_t index, GetTypeInfo get_type, GetName get_name,
                      const std::string& doing) {
  const auto type = Make<abi::TypeInfo>(get_type, doing, session, index);
  const abi::ShapeInfo* shape = nullptr;  // null for a sequence or map
  Check(Api().CastTypeInfoToTensorInfo(type.get(), &shape), doing);
  TensorInfo tensor = shape == nullptr ? TensorInfo{} : ReadShapeInfo(shape);

  abi::Allocator* allocator = nullptr;
  char* name = nullptr;
  Check(Api().GetAllocatorWithDefaultOptions(&allocator), doing);
  Check(get_name(session, index, allocator, &name), doing);
  try {
    tensor.name = name;
  } catch (...) {
    Succeeded(Api().AllocatorFree(allocator, name));
    throw;
  }
  Check(Api().AllocatorFree(allocator, name), doing);
  return tensor;
}

}  // namespace

Session::Session(const std::string& model_path, SessionOptions options)
    : process_(platform::CurrentProcess()), environment_(Environment::Get()), device_(options.device) {
  const RuntimeMemory named = device_->runtime_memory();
  memory_ = Make<abi::MemoryInfo>(Api().CreateMemoryInfo, "cannot describe the device's memory to onnxruntime",
                                  named.name, abi::AllocatorType::kDevice, named.id, abi::MemoryType::kDefault);
  const auto session_options = MakeOptions(options);
  operators_ = std::move(options.operators);
  const RuntimeCall call;
  session_ =
      Make<abi::Session>(Api().CreateSession, DoingWithFile{Message("cannot load ", Printable(model_path)), model_path},
                         environment_->handle(), model_path.c_str(), session_options.get());
  keep_arena_ = Make<abi::RunOptions>(Api().CreateRunOptions, "cannot create run options");
  shrink_arena_ = Make<abi::RunOptions>(Api().CreateRunOptions, "cannot create run options");
  Check(Api().AddRunConfigEntry(shrink_arena_.get(), "memory.enable_memory_arena_shrinkage", named.arena),
        "cannot ask for arena shrinkage");
  ReadMetadata(model_path);
}

Session::~Session() {
  // In a forked child the session's threads do not exist, and its release would wait for them without end; and while the
  // process exits the runtime may be gone. The memory goes with the process.
  if (platform::CurrentProcess() == process_) {
    try {
      const RuntimeCall call;
      session_.reset();
      return;
    } catch (const Error&) {
    }
  }
  static_cast<void>(session_.release());
  static_cast<void>(operators_.release());
}

void Session::CheckProcess() const {
  if (platform::CurrentProcess() == process_) return;
  Throw(StatusCode::kInvalidState, "the model was loaded by the parent process; a forked child must load its own");
}

void Session::ReadMetadata(const std::string& model_path) {
  const std::string doing = Message("cannot read the inputs and outputs of ", Printable(model_path));
  const abi::Api& api = Api();
  size_t count = 0;
  Check(api.SessionGetInputCount(handle(), &count), doing);
  for (size_t i = 0; i < count; ++i) {
    inputs_.push_back(ReadTensor(handle(), i, api.SessionGetInputTypeInfo, api.SessionGetInputName, doing));
  }
  Check(api.SessionGetOutputCount(handle(), &count), doing);
  for (size_t i = 0; i < count; ++i) {
    outputs_.push_back(ReadTensor(handle(), i, api.SessionGetOutputTypeInfo, api.SessionGetOutputName, doing));
  }
}

void Session::Run(const IoBinding& binding, ArenaAfterRun arena) const {
  const RuntimeCall call;
  const bool shrink = arena == ArenaAfterRun::kShrink;
  const abi::RunOptions* const options = shrink ? shrink_arena_.get() : keep_arena_.get();
  Check(Api().RunWithBinding(handle(), options, binding.handle()), "the model failed to run");
}

}  // namespace oga::ort
