#include "base/error.h"
#include "config/config_sections.h"

namespace oga {

namespace {

constexpr int64_t kMaxThreads = 4096;

// Options that the runtime takes but that oga decides itself: the design of the step depends on them.
void CheckDecidedOptions(const JsonObject& session, ConfigNotes& notes) {
  session.Integer("log_severity_level", {0, 4});
  session.Integer("log_verbosity_level", {0, INT32_MAX});
  session.String("log_id");
  session.Boolean("enable_cpu_mem_arena");
  session.Boolean("enable_mem_pattern");
  session.String("enable_profiling");
  session.String("graph_optimization_level");
  session.String("custom_ops_library");
  session.Object("config_entries");
  for (const char* key : {"enable_cpu_mem_arena", "enable_mem_pattern", "enable_profiling", "graph_optimization_level",
                          "custom_ops_library", "config_entries"}) {
    if (const JsonValue* found = session.Find(key)) {
      notes.AddOff(*found, session.PathOf(key), "oga chooses session options itself");
    }
  }
}

std::vector<std::string> ReadProviders(const JsonObject& session, ConfigNotes& notes) {
  std::vector<std::string> providers;
  const char* wanted = "a list of objects like {\"cpu\": {}}";
  const std::vector<JsonValue>* list = session.List("provider_options", wanted);
  if (list == nullptr) return providers;
  for (size_t i = 0; i < list->size(); ++i) {
    const JsonValue& entry = (*list)[i];
    const std::string path = JoinPath(session.PathOf("provider_options"), i);
    if (entry.kind != JsonValue::Kind::kObject || entry.members.empty()) {
      RefuseValue(entry, path, "an object like {\"cpu\": {}}, named by its provider");
    }
    for (const JsonMember& provider : entry.members) {
      if (provider.name.empty() || provider.name.find('\0') != std::string::npos) {
        RefuseValue(entry, path, "an object named by its provider, like {\"cpu\": {}}");
      }
      const std::string provider_path = JoinPath(path, provider.name);
      if (provider.value.kind != JsonValue::Kind::kNull) JsonObject(provider.value, provider_path);
      if (!provider.value.members.empty()) notes.AddOff(provider.value, provider_path, "provider options are not used");
      providers.push_back(provider.name);
    }
  }
  return providers;
}

operators::CpuMatMul ReadCpuMatMul(const JsonObject& session) {
  const std::optional<std::string> name = session.String("cpu_matmul");
  if (!name) return operators::CpuMatMul::kAuto;
  if (const auto choice = operators::ParseCpuMatMul(*name)) return *choice;
  RefuseValue(*session.Find("cpu_matmul"), session.PathOf("cpu_matmul"), "\"auto\", \"fp32\" or \"bf16\"");
}

}  // namespace

SessionConfig ReadSession(const JsonObject& decoder, ConfigNotes& notes) {
  SessionConfig config;
  const std::optional<JsonObject> session = decoder.Object("session_options");
  if (!session) return config;
  const auto threads = [&](const char* key) -> std::optional<int32_t> {
    const std::optional<int64_t> count = session->Integer(key, {0, kMaxThreads});
    return count ? std::optional<int32_t>(static_cast<int32_t>(*count)) : std::nullopt;
  };
  config.intra_op_num_threads = threads("intra_op_num_threads");
  config.inter_op_num_threads = threads("inter_op_num_threads");
  config.providers = ReadProviders(*session, notes);
  config.cpu_matmul = ReadCpuMatMul(*session);
  CheckDecidedOptions(*session, notes);
  return config;
}

}  // namespace oga
