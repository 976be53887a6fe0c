// A loaded graph on a device, with the operators it is given in place of the runtime's.
//
// Immutable after construction. Run is called from any number of threads at once, each with its own IoBinding; whoever
// holds a binding keeps its session alive. A child forked since cannot run it, and leaks it instead of releasing it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/platform_process.h"
#include "device/devices.h"
#include "ort/custom_operators.h"
#include "ort/environment.h"
#include "ort/handles.h"
#include "ort/shape.h"

namespace oga::ort {

class IoBinding;

struct SessionOptions {
  int threads = 1;                                   // of the intra-op pool, the caller's among them
  std::unique_ptr<const CustomOperators> operators;  // null: the runtime's own alone
  std::shared_ptr<const Device> device = MakeDevice();
};

// What the arena does with its free memory at the end of a run.
enum class ArenaAfterRun { kKeep, kShrink };

class Session {
 public:
  // Loads the graph at `model_path`. Throws Error: kNotFound, kModelError for what the runtime cannot load,
  // kUnsupported for an operator, attribute or input that is not built.
  Session(const std::string& model_path, SessionOptions options);
  ~Session();

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  const Device& device() const { return *device_; }

  // Describes the device's memory to the runtime.
  const abi::MemoryInfo* memory() const { return memory_.get(); }

  // Throws Error{kInvalidState} in a process forked since: a run there would wait for threads that do not exist.
  void CheckProcess() const;

  // Reads what `binding` bound as inputs and writes its outputs. Throws Error{kResourceExhausted} when memory ran out,
  // an operator's own Error, kModelError for other failures of the graph.
  void Run(const IoBinding& binding, ArenaAfterRun arena = ArenaAfterRun::kKeep) const;

  abi::Session* handle() const { return session_.get(); }

 private:
  void ReadMetadata(const std::string& model_path);

  const platform::ProcessId process_;
  std::shared_ptr<const Environment> environment_;
  std::unique_ptr<const CustomOperators> operators_;  // the session calls into it until it is released
  std::shared_ptr<const Device> device_;
  Owned<abi::MemoryInfo> memory_;
  Owned<abi::Session> session_;
  Owned<abi::RunOptions> keep_arena_;
  Owned<abi::RunOptions> shrink_arena_;
  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
};

}  // namespace oga::ort
