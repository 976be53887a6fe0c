// Creation of the runtime's objects with their failures as errors. Only native/ort and native/operators include this file.
#pragma once

#include "ort/abi.h"
#include "ort/handles.h"
#include "ort/library.h"
#include "ort/status.h"

namespace oga::ort {

// Calls a function of the runtime whose last parameter receives a new object. `doing` begins the error message:
//   Make<abi::RunOptions>(Api().CreateRunOptions, "cannot create run options")
template <typename T, typename Function, typename Doing, typename... Arguments>
Owned<T> Make(Function create, const Doing& doing, Arguments... arguments) {
  T* made = nullptr;
  Check(create(arguments..., &made), doing);
  return Owned<T>(made);
}

}  // namespace oga::ort
