// Where C++ ends: what stands behind each opaque handle, and the one place that turns exceptions into results.
//
// Every function of the C API is a few lines over this header: name the parameters that must not be null, call the
// engine, store what comes back. Guard is the only way in, so no exception ever reaches a host.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/genai_config.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "engine/event_buffer.h"
#include "engine/options.h"
#include "engine/request.h"
#include "engine/turn_options.h"
#include "model/model.h"
#include "oga/oga.h"
#include "text/text_stream.h"
#include "text/tokenizer.h"

// One holder per handle. OgaRequest, OgaEngineEvent and OgaTurnUsage have none; see AsInternal.
struct OgaConfig {
  oga::GenaiConfig config;
};
struct OgaModel {
  std::shared_ptr<const oga::Model> model;
};
struct OgaEngine {
  std::shared_ptr<oga::Engine> engine;
};
struct OgaEngineCapabilities {
  oga::EngineCapabilities capabilities;
};
struct OgaEngineStatistics {
  oga::EngineStatistics statistics;
};
struct OgaEngineEventBuffer {
  std::unique_ptr<oga::EventBuffer> buffer;
};
struct OgaRequestOptions {
  oga::RequestOptions options;
};
struct OgaTurnOptions {
  std::unique_ptr<oga::TurnOptions> options;
};
struct OgaSequences {
  std::vector<std::vector<int32_t>> sequences;
};
struct OgaStringArray {
  std::vector<std::string> strings;
};
struct OgaTokenizer {
  std::shared_ptr<const oga::Tokenizer> tokenizer;
  bool add_special_tokens = false;
  bool skip_special_tokens = true;
};
struct OgaTokenizerStream {
  oga::TextStream stream;
  std::string piece;  // what the last call handed out
};

namespace oga::capi {

// A new result, or the preallocated out-of-memory one when there is no memory for it. `field` is empty for none.
OgaResult* MakeResult(StatusCode code, std::string_view field, std::string_view message) noexcept;

// The result for a failed allocation. It exists before anything can fail, and destroying it does nothing.
OgaResult* OutOfMemoryResult() noexcept;

// A copy that OgaDestroyString frees.
const char* NewString(std::string_view text);

// Runs the body of an API function and reports what it throws.
template <typename Body>
OgaResult* Guard(const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return MakeResult(error.code(), error.field(), error.message());
  } catch (const std::bad_alloc&) {
    return OutOfMemoryResult();
  } catch (const std::length_error&) {  // a container asked for more than any memory holds
    return OutOfMemoryResult();
  } catch (const std::exception& error) {
    return MakeResult(StatusCode::kInternal, {}, error.what());
  } catch (...) {
    return MakeResult(StatusCode::kInternal, {}, "unknown exception inside liboga");
  }
}

// Throws InvalidArgument for a null pointer. `parameter` is its name in the public header.
template <typename Type>
Type& Require(Type* pointer, const char* parameter) {
  if (pointer == nullptr) Throw(StatusCode::kInvalidArgument, Field{parameter}, parameter, " must not be null.");
  return *pointer;
}

// Requires an out-parameter and gives it the value it keeps when the call fails.
template <typename Type>
Type& RequireOut(Type* out, Type value_on_failure, const char* parameter = "out") {
  return Require(out, parameter) = value_on_failure;
}

// These handles are the engine's own objects: a request's pointer is its identity, which events repeat, and events and
// their usage are read in place. The casts between the two names of one object stand here and nowhere else.
inline Request* AsInternal(OgaRequest* request) { return reinterpret_cast<Request*>(request); }
inline const Event* AsInternal(const OgaEngineEvent* event) { return reinterpret_cast<const Event*>(event); }
inline const TurnUsage* AsInternal(const OgaTurnUsage* usage) { return reinterpret_cast<const TurnUsage*>(usage); }
inline OgaRequest* AsPublic(Request* request) { return reinterpret_cast<OgaRequest*>(request); }
inline const OgaEngineEvent* AsPublic(const Event* event) { return reinterpret_cast<const OgaEngineEvent*>(event); }
inline const OgaTurnUsage* AsPublic(const TurnUsage* usage) { return reinterpret_cast<const OgaTurnUsage*>(usage); }

}  // namespace oga::capi
