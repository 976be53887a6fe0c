// The C API of oga for C++17: owned handles that release themselves, failures as exceptions.
//
// Header-only and built on oga.h alone, so no C++ object and no exception ever crosses the boundary of the library: a
// host may use another compiler, another standard library or another version of this header than liboga was built with.
// The conventions of base.h hold unchanged (threads, lifetimes); a class here adds only ownership:
//
//   oga::Model model("model-folder");
//   oga::Engine engine(model);
//   oga::Request request = engine.CreateRequest();
//   oga::EventBuffer events = engine.CreateEventBuffer(16);
//   request.BeginTurn({1, 2, 3});
//   while (engine.HasPendingRequests()) {
//     engine.Run(events);
//     for (const oga::Event event : events) {
//       if (event.has_token()) Show(event.token());
//     }
//   }
#ifndef OGA_OGA_HPP_
#define OGA_OGA_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "event.hpp"
#include "handle.hpp"
#include "oga.h"

namespace oga {
inline namespace v0 {

// --- The library -----------------------------------------------------------------------------------------------------

// Major in the upper 16 bits, minor in the lower, of the library that is loaded. OGA_API_VERSION is the headers'.
inline uint32_t ApiVersion() noexcept { return OgaGetApiVersion(); }

// Names the ONNX Runtime library to load; an empty path forgets an earlier one.
inline void SetOrtLibrary(const std::string& path) { Check(OgaSetOrtLibrary(internal::Text(path))); }

// Names the library of onnxruntime-extensions that chat templates use; an empty path forgets an earlier one.
inline void SetOrtExtensionsLibrary(const std::string& path) {
  Check(OgaSetOrtExtensionsLibrary(internal::Text(path)));
}

// Names the library of llguidance that grammars use; an empty path forgets an earlier one.
inline void SetLlguidanceLibrary(const std::string& path) { Check(OgaSetLlguidanceLibrary(internal::Text(path))); }

// Version and path of the ONNX Runtime in use.
inline std::string OrtVersion() { return internal::TakeString(internal::Make<const char*>(OgaGetOrtVersion)); }

// Version and path of the llguidance in use.
inline std::string LlguidanceVersion() {
  return internal::TakeString(internal::Make<const char*>(OgaGetLlguidanceVersion));
}

// The instruction set that the kernels use.
inline std::string CpuIsa() { return internal::TakeString(internal::Make<const char*>(OgaGetCpuIsa)); }

// Turns the log channel "enabled" (all), "warning" or "info" on or off.
inline void SetLog(const std::string& channel, bool on) { Check(OgaSetLogBool(internal::Text(channel), on)); }

// Sends log lines to a function, which must not throw; nullptr restores standard error.
inline void SetLogCallback(void (*callback)(const char* line, size_t length)) { Check(OgaSetLogCallback(callback)); }

inline void Shutdown() noexcept { OgaShutdown(); }

// --- Models ----------------------------------------------------------------------------------------------------------

// A model folder's configuration, adjustable before the model is loaded.
class Config : public Handle<OgaConfig, OgaDestroyConfig> {
 public:
  explicit Config(const std::string& folder)
      : Handle(internal::Make<OgaConfig*>(OgaCreateConfig, internal::Text(folder))) {}

  Config& Overlay(const std::string& json) {
    Check(OgaConfigOverlay(get(), internal::Text(json)));
    return *this;
  }
  Config& ClearProviders() {
    Check(OgaConfigClearProviders(get()));
    return *this;
  }
  Config& AppendProvider(const std::string& provider) {
    Check(OgaConfigAppendProvider(get(), internal::Text(provider)));
    return *this;
  }
};

// A loaded model, shared by any number of engines; it lives as long as one of them does.
class Model : public Handle<OgaModel, OgaDestroyModel> {
 public:
  explicit Model(const std::string& folder)
      : Handle(internal::Make<OgaModel*>(OgaCreateModel, internal::Text(folder))) {}
  explicit Model(const Config& config) : Handle(internal::Make<OgaModel*>(OgaCreateModelFromConfig, config.get())) {}

  std::string type() const { return internal::TakeString(internal::Make<const char*>(OgaModelGetType, get())); }
  std::string device_type() const {
    return internal::TakeString(internal::Make<const char*>(OgaModelGetDeviceType, get()));
  }
};

// --- Lists -----------------------------------------------------------------------------------------------------------

// A list of token sequences.
class Sequences : public Handle<OgaSequences, OgaDestroySequences> {
 public:
  Sequences() : Handle(internal::Make<OgaSequences*>(OgaCreateSequences)) {}

  size_t size() const noexcept { return OgaSequencesCount(get()); }

  void Append(const std::vector<int32_t>& tokens) {
    Check(OgaAppendTokenSequence(tokens.data(), tokens.size(), get()));
  }
  // An index equal to size() starts a new sequence.
  void AppendToken(int32_t token, size_t index) { Check(OgaAppendTokenToSequence(token, get(), index)); }

  // A copy of one sequence; empty when the index is out of range.
  std::vector<int32_t> operator[](size_t index) const {
    const int32_t* tokens = OgaSequencesGetSequenceData(get(), index);
    return std::vector<int32_t>(tokens, tokens + OgaSequencesGetSequenceCount(get(), index));
  }
};

// A list of strings.
class StringArray : public Handle<OgaStringArray, OgaDestroyStringArray> {
 public:
  StringArray() : Handle(internal::Make<OgaStringArray*>(OgaCreateStringArray)) {}
  explicit StringArray(const std::vector<std::string>& strings) : Handle(CopyOf(strings)) {}

  size_t size() const { return internal::Make<size_t>(OgaStringArrayGetCount, get()); }
  void Add(const std::string& string) { Check(OgaStringArrayAddString(get(), internal::Text(string))); }
  std::string_view operator[](size_t index) const {
    return internal::Make<const char*>(OgaStringArrayGetString, get(), index);
  }

 private:
  static OgaStringArray* CopyOf(const std::vector<std::string>& strings) {
    std::vector<const char*> texts;
    texts.reserve(strings.size());
    for (const std::string& string : strings) texts.push_back(internal::Text(string));
    return internal::Make<OgaStringArray*>(OgaCreateStringArrayFromStrings, texts.data(), texts.size());
  }
};

// --- Requests --------------------------------------------------------------------------------------------------------

// Options of a request; unset ones take the engine's defaults.
class RequestOptions : public Handle<OgaRequestOptions, OgaDestroyRequestOptions> {
 public:
  RequestOptions() : Handle(internal::Make<OgaRequestOptions*>(OgaCreateRequestOptions)) {}

  RequestOptions& SetMaxSessionTokens(uint64_t tokens) {
    Check(OgaRequestOptionsSetMaxSessionTokens(get(), tokens));
    return *this;
  }
  RequestOptions& SetCacheSalt(uint64_t cache_salt) {
    Check(OgaRequestOptionsSetCacheSalt(get(), cache_salt));
    return *this;
  }
  RequestOptions& SetPriority(int32_t priority) {
    Check(OgaRequestOptionsSetPriority(get(), priority));
    return *this;
  }
};

// How turns of one request generate; made by Request::CreateTurnOptions. A refused value leaves the previous one.
class TurnOptions : public Handle<OgaTurnOptions, OgaDestroyTurnOptions> {
 public:
  TurnOptions& Reset() { return Changed(OgaTurnOptionsReset(get())); }
  TurnOptions& SetMaxGeneratedTokens(uint64_t tokens) {
    return Changed(OgaTurnOptionsSetMaxGeneratedTokens(get(), tokens));
  }
  TurnOptions& SetMinGeneratedTokens(uint64_t tokens) {
    return Changed(OgaTurnOptionsSetMinGeneratedTokens(get(), tokens));
  }
  TurnOptions& SetDoSample(bool do_sample) { return Changed(OgaTurnOptionsSetDoSample(get(), do_sample)); }
  TurnOptions& SetTemperature(float temperature) { return Changed(OgaTurnOptionsSetTemperature(get(), temperature)); }
  TurnOptions& SetTopK(int32_t top_k) { return Changed(OgaTurnOptionsSetTopK(get(), top_k)); }
  TurnOptions& SetTopP(float top_p) { return Changed(OgaTurnOptionsSetTopP(get(), top_p)); }
  TurnOptions& SetRepetitionPenalty(float penalty) {
    return Changed(OgaTurnOptionsSetRepetitionPenalty(get(), penalty));
  }
  TurnOptions& SetNoRepeatNgramSize(int32_t tokens) {
    return Changed(OgaTurnOptionsSetNoRepeatNgramSize(get(), tokens));
  }
  TurnOptions& SetNumber(const char* name, double value) {
    return Changed(OgaTurnOptionsSetNumber(get(), name, value));
  }
  TurnOptions& SetBool(const char* name, bool value) { return Changed(OgaTurnOptionsSetBool(get(), name, value)); }
  TurnOptions& SetLogitBias(const std::vector<int32_t>& tokens, const std::vector<float>& biases) {
    if (tokens.size() != biases.size()) throw std::invalid_argument("SetLogitBias: one bias per token is wanted");
    return Changed(OgaTurnOptionsSetLogitBias(get(), tokens.data(), biases.data(), tokens.size()));
  }
  TurnOptions& SetStopTokens(const std::vector<int32_t>& tokens) {
    return Changed(OgaTurnOptionsSetStopTokens(get(), tokens.data(), tokens.size()));
  }
  TurnOptions& SetBannedSequences(const Sequences& sequences) {
    return Changed(OgaTurnOptionsSetBannedSequences(get(), sequences.get()));
  }
  TurnOptions& SetAllowedTokens(const std::vector<int32_t>& tokens) {
    return Changed(OgaTurnOptionsSetAllowedTokens(get(), tokens.data(), tokens.size()));
  }
  TurnOptions& SetDryBreakers(const std::vector<int32_t>& tokens) {
    return Changed(OgaTurnOptionsSetDryBreakers(get(), tokens.data(), tokens.size()));
  }
  TurnOptions& SetStopStrings(const StringArray& strings) {
    return Changed(OgaTurnOptionsSetStopStrings(get(), strings.get()));
  }
  TurnOptions& SetEmitText(bool emit_text, bool include_special_tokens = false) {
    return Changed(OgaTurnOptionsSetEmitText(get(), emit_text, include_special_tokens));
  }
  TurnOptions& SetGuidance(const std::string& type, const std::string& data) {
    return Changed(OgaTurnOptionsSetGuidance(get(), internal::Text(type), internal::Text(data)));
  }
  TurnOptions& SetDelimitedGuidance(int32_t opening_token, int32_t closing_token, const std::string& grammar) {
    return Changed(OgaTurnOptionsSetDelimitedGuidance(get(), opening_token, closing_token, internal::Text(grammar)));
  }
  TurnOptions& ClearGuidance() { return Changed(OgaTurnOptionsClearGuidance(get())); }
  TurnOptions& SetLogprobs(int32_t top, bool processed = false) {
    return Changed(OgaTurnOptionsSetLogprobs(get(), top, processed));
  }
  TurnOptions& SetLogprobTokens(const std::vector<int32_t>& tokens) {
    return Changed(OgaTurnOptionsSetLogprobTokens(get(), tokens.data(), tokens.size()));
  }
  TurnOptions& SetPromptLogprobs(int32_t top) { return Changed(OgaTurnOptionsSetPromptLogprobs(get(), top)); }
  TurnOptions& SetSeed(uint64_t seed) { return Changed(OgaTurnOptionsSetSeed(get(), seed)); }
  TurnOptions& ClearSeed() { return Changed(OgaTurnOptionsClearSeed(get())); }

 private:
  friend class Request;
  explicit TurnOptions(OgaTurnOptions* pointer) noexcept : Handle(pointer) {}

  TurnOptions& Changed(OgaResult* result) {
    Check(result);
    return *this;
  }
};

// One sequence with all its turns; made by Engine::CreateRequest. Its end abandons a turn that is still live.
class Request : public Handle<OgaRequest, OgaDestroyRequest> {
 public:
  TurnOptions CreateTurnOptions() const {
    return TurnOptions(internal::Make<OgaTurnOptions*>(OgaRequestCreateTurnOptions, get()));
  }

  // Appends `count` tokens to the sequence and queues a turn; returns its id.
  uint64_t BeginTurn(const int32_t* tokens, size_t count) { return Begin(nullptr, tokens, count); }
  uint64_t BeginTurn(const int32_t* tokens, size_t count, const TurnOptions& options) {
    return Begin(options.get(), tokens, count);
  }
  uint64_t BeginTurn(const std::vector<int32_t>& tokens) { return Begin(nullptr, tokens.data(), tokens.size()); }
  uint64_t BeginTurn(const std::vector<int32_t>& tokens, const TurnOptions& options) {
    return Begin(options.get(), tokens.data(), tokens.size());
  }
  uint64_t BeginTurn(std::initializer_list<int32_t> tokens) { return Begin(nullptr, tokens.begin(), tokens.size()); }

  // False when the turn is not live (any more).
  bool CancelTurn(uint64_t turn_id) { return internal::Make<bool>(OgaRequestCancelTurn, get(), turn_id); }
  void RewindToStartOfTurn(uint64_t turn_id) { Check(OgaRequestRewindToStartOfTurn(get(), turn_id)); }
  // A second request with the same sequence.
  Request Fork() { return Request(internal::Make<OgaRequest*>(OgaRequestFork, get())); }
  void Close() { Check(OgaRequestClose(get())); }

 private:
  friend class Engine;
  explicit Request(OgaRequest* pointer) noexcept : Handle(pointer) {}

  uint64_t Begin(const OgaTurnOptions* options, const int32_t* tokens, size_t count) {
    return internal::Make<uint64_t>(OgaRequestBeginTurn, get(), options, tokens, count);
  }
};

inline bool Event::IsOf(const Request& request) const { return this->request() == request.get(); }

// --- Engines ---------------------------------------------------------------------------------------------------------

// The fixed limits of an engine, by value.
struct EngineCapabilities {
  size_t configured_max_batch_size = 0;
  size_t max_scheduled_tokens = 0;
  uint64_t max_request_length = 0;
  bool prefix_caching = false;
};

// A snapshot of an engine's counters.
class EngineStatistics : public Handle<OgaEngineStatistics, OgaDestroyEngineStatistics> {
 public:
  // One counter by name; statistics.h lists them.
  uint64_t Count(const std::string& name) const {
    return internal::Make<uint64_t>(OgaEngineStatisticsGetCount, get(), internal::Text(name));
  }

 private:
  friend class Engine;
  explicit EngineStatistics(OgaEngineStatistics* pointer) noexcept : Handle(pointer) {}
};

// The step loop over one model. The thread that creates it owns it.
class Engine : public Handle<OgaEngine, OgaDestroyEngine> {
 public:
  explicit Engine(const Model& model) : Handle(internal::Make<OgaEngine*>(OgaCreateEngine, model.get())) {}

  Request CreateRequest() {
    const OgaRequestOptions* defaults = nullptr;
    return Request(internal::Make<OgaRequest*>(OgaEngineCreateRequest, get(), defaults));
  }
  Request CreateRequest(const RequestOptions& options) {
    return Request(internal::Make<OgaRequest*>(OgaEngineCreateRequest, get(), options.get()));
  }
  EventBuffer CreateEventBuffer(size_t capacity) {
    return EventBuffer(internal::Make<OgaEngineEventBuffer*>(OgaCreateEngineEventBuffer, get(), capacity));
  }

  void Run(EventBuffer& buffer) { Check(OgaEngineRun(get(), buffer.get())); }
  bool HasPendingRequests() { return internal::Make<bool>(OgaEngineHasPendingRequests, get()); }

  // Writes a line of JSON per step to a file; an empty path ends that.
  void SetTraceFile(const std::string& path) { Check(OgaEngineSetTraceFile(get(), internal::Text(path))); }

  void PrepareGuidance(const std::string& type, const std::string& data) {
    Check(OgaEnginePrepareGuidance(get(), internal::Text(type), internal::Text(data)));
  }
  void DropPrefixCache() { Check(OgaEngineDropPrefixCache(get())); }

  EngineStatistics GetStatistics() const {
    return EngineStatistics(internal::Make<OgaEngineStatistics*>(OgaEngineGetStatistics, get()));
  }
  EngineCapabilities GetCapabilities() const {
    const std::unique_ptr<OgaEngineCapabilities, decltype(&OgaDestroyEngineCapabilities)> snapshot(
        internal::Make<OgaEngineCapabilities*>(OgaEngineGetCapabilities, get()), &OgaDestroyEngineCapabilities);
    EngineCapabilities capabilities;
    capabilities.configured_max_batch_size = OgaEngineCapabilitiesGetConfiguredMaxBatchSize(snapshot.get());
    capabilities.max_scheduled_tokens = OgaEngineCapabilitiesGetMaxScheduledTokens(snapshot.get());
    capabilities.max_request_length = OgaEngineCapabilitiesGetMaxRequestLength(snapshot.get());
    capabilities.prefix_caching = OgaEngineCapabilitiesGetPrefixCaching(snapshot.get());
    return capabilities;
  }
};

}  // namespace v0
}  // namespace oga

#endif  // OGA_OGA_HPP_
