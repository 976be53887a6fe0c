#include "config/json_reader.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/printable_text.h"
#include "config/json_library.h"

namespace oga {

namespace {

constexpr size_t kMaxDepth = 64;
constexpr double kLargestExactInteger = 9007199254740992.0;  // 2^53

// Throws Error{kInvalidArgument} about the whole text.
template <typename... Parts>
[[noreturn]] void RefuseText(const JsonValue::Source& source, const Parts&... parts) {
  Throw(StatusCode::kInvalidArgument, Field{*source}, parts...);
}

struct ReadPosition {
  const char* begin;
  const char* at;  // behind the last character the parser took
  int line = 1;
};

// Shows the parser's progress to the tree builder, which hears of tokens but not of where they stand.
struct TrackedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  ReadPosition* position;

  reference operator*() const { return *at; }
  TrackedIterator& operator++() {
    if (*at == '\n') ++position->line;
    position->at = ++at;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator& other) const { return at == other.at; }
  bool operator!=(const TrackedIterator& other) const { return at != other.at; }
};

// Receives the parser's events and grows the tree. The callback names are the parser's.
class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const JsonValue::Source& source, const ReadPosition& position, JsonSink* sink)
      : source_(source), position_(position), sink_(sink) {}

  JsonValue TakeRoot() { return std::move(root_); }

  bool null() override { return Add(NewValue(JsonValue::Kind::kNull)); }
  bool boolean(bool value) override {
    JsonValue result = NewValue(JsonValue::Kind::kBoolean);
    result.boolean = value;
    return Add(std::move(result));
  }
  bool number_integer(number_integer_t value) override { return AddInteger(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return AddInteger(static_cast<int64_t>(value));
    return number_float(0, std::to_string(value));
  }
  bool number_float(number_float_t /*read with the locale*/, const string_t& text) override;
  bool string(string_t& value) override {
    JsonValue result = NewValue(JsonValue::Kind::kString);
    result.text = std::move(value);
    return Add(std::move(result));
  }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(size_t /*size*/) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t /*size*/) override { return Open(JsonValue::Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override;

  bool parse_error(size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& error) override;

 private:
  struct OpenContainer {
    JsonValue value;
    std::string name;  // of the member whose value comes next
    int name_line = 0;
    std::set<std::string> names;
  };

  // A number is known to end only when the character behind it has been taken, and that may be a line break.
  int LineOfLastToken() const {
    const bool took_line_break = position_.at != position_.begin && position_.at[-1] == '\n';
    return position_.line - (took_line_break ? 1 : 0);
  }

  JsonValue NewValue(JsonValue::Kind kind) const {
    JsonValue value;
    value.kind = kind;
    value.source = source_;
    value.line = LineOfLastToken();
    return value;
  }

  bool AddInteger(int64_t integer) {
    JsonValue value = NewValue(JsonValue::Kind::kInteger);
    value.integer = integer;
    value.real = static_cast<double>(integer);
    value.text = std::to_string(integer);
    return Add(std::move(value));
  }

  bool Add(JsonValue value);
  bool Open(JsonValue::Kind kind);
  bool Close();
  void CheckDepth(size_t depth) const;
  std::string PathOfOpen() const;
  std::string PathOfNext() const;
  Field FieldOfNext() const;

  const JsonValue::Source source_;
  const ReadPosition& position_;
  JsonSink* const sink_;
  std::vector<OpenContainer> open_;
  JsonValue root_;
  std::vector<size_t> taken_;  // values so far in each open list and object of what the sink takes; empty outside
  std::string taken_name_;
};

bool TreeBuilder::number_float(number_float_t, const string_t& token) {
  JsonValue value = NewValue(JsonValue::Kind::kReal);
  // The parser puts the locale's decimal point into the token; no other character of a number can differ.
  value.text = token;
  const size_t foreign_point = value.text.find_first_not_of("0123456789+-.eE");
  if (foreign_point != std::string::npos) value.text[foreign_point] = '.';
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, value.real);
  OGA_CHECK(stop == end);
  if (error != std::errc()) {
    Throw(StatusCode::kInvalidArgument, FieldOfNext(), Where(source_, value.line), "the number ", Describe(value),
          " is outside the range of a double");
  }
  if (std::trunc(value.real) == value.real && std::fabs(value.real) <= kLargestExactInteger) {
    value.kind = JsonValue::Kind::kInteger;
    value.integer = static_cast<int64_t>(value.real);
  }
  return Add(std::move(value));
}

bool TreeBuilder::key(string_t& name) {
  if (!taken_.empty()) {
    taken_name_ = std::move(name);
    return true;
  }
  OpenContainer& object = open_.back();
  object.name_line = LineOfLastToken();
  if (!object.names.insert(name).second) {
    int first_line = 0;
    for (const JsonMember& member : object.value.members) {
      if (member.name == name) first_line = member.line;
    }
    const std::string path = JoinPath(PathOfOpen(), name);
    Throw(StatusCode::kInvalidArgument, Field{path}, Where(source_, object.name_line), path,
          " is given twice (first on line ", first_line, "); remove one of them");
  }
  object.name = std::move(name);
  return true;
}

bool TreeBuilder::Add(JsonValue value) {
  if (!taken_.empty()) {
    sink_->OnLeaf({value.kind, taken_name_, value.text, value.integer, taken_.size(), taken_.back()++, value.line});
    taken_name_.clear();
  } else if (open_.empty()) {
    root_ = std::move(value);
  } else if (OpenContainer& container = open_.back(); container.value.kind == JsonValue::Kind::kArray) {
    container.value.elements.push_back(std::move(value));
  } else {
    container.value.members.push_back({std::move(container.name), container.name_line, std::move(value)});
  }
  return true;
}

bool TreeBuilder::Open(JsonValue::Kind kind) {
  CheckDepth(open_.size() + taken_.size());
  if (!taken_.empty()) {
    ++taken_.back();
    taken_.push_back(0);
    taken_name_.clear();
    return true;
  }
  const bool is_taken = sink_ != nullptr && !open_.empty() && sink_->Takes(PathOfNext());
  open_.push_back({NewValue(kind), {}, 0, {}});
  if (is_taken) taken_.push_back(0);
  return true;
}

void TreeBuilder::CheckDepth(size_t depth) const {
  if (depth < kMaxDepth) return;
  RefuseText(source_, Where(source_, LineOfLastToken()), "objects and lists are nested deeper than ", kMaxDepth,
             " levels; nothing that has a meaning here is");
}

bool TreeBuilder::Close() {
  if (!taken_.empty()) {
    taken_.pop_back();
    if (!taken_.empty()) return true;
  }
  JsonValue value = std::move(open_.back().value);
  open_.pop_back();
  return Add(std::move(value));
}

std::string TreeBuilder::PathOfOpen() const {
  std::string path;
  for (size_t i = 0; i + 1 < open_.size(); ++i) {
    const bool is_array = open_[i].value.kind == JsonValue::Kind::kArray;
    path = is_array ? JoinPath(path, open_[i].value.elements.size()) : JoinPath(path, open_[i].name);
  }
  return path;
}

// Of the value that comes next.
std::string TreeBuilder::PathOfNext() const {
  const OpenContainer& parent = open_.back();
  if (parent.value.kind == JsonValue::Kind::kArray) return JoinPath(PathOfOpen(), parent.value.elements.size());
  return JoinPath(PathOfOpen(), parent.name);
}

// The whole text at its top, and for what the sink takes, whose places are not kept.
Field TreeBuilder::FieldOfNext() const { return Field{open_.empty() || !taken_.empty() ? *source_ : PathOfNext()}; }

int ColumnOf(const ReadPosition& position, const char* at) {
  const char* line_begin = at;
  while (line_begin != position.begin && line_begin[-1] != '\n') --line_begin;
  int column = 1;
  for (const char* byte = line_begin; byte != at; ++byte) {
    if ((static_cast<unsigned char>(*byte) & 0xc0) != 0x80) ++column;
  }
  return column;
}

// What people write who take JSON for something looser.
const char* HintFor(std::string_view taken) {
  if (taken.empty()) return "";
  const char last = taken.back();
  if (last == '/' || last == '#') return " (JSON has no comments)";
  if (last == '\'') return " (JSON strings stand in double quotes)";
  if (last != '}' && last != ']') return "";
  taken.remove_suffix(1);
  const size_t before = taken.find_last_not_of(" \t\r\n");
  const bool is_comma = before != std::string_view::npos && taken[before] == ',';
  return is_comma ? " (JSON has no comma behind the last value)" : "";
}

bool TreeBuilder::parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 3, column 7: syntax error while ...": the position is ours.
  std::string reason = error.what();
  const size_t reason_begin = reason.find("syntax error");
  if (reason_begin != std::string::npos) {
    reason.erase(0, reason_begin);
  } else {
    reason.erase(0, reason.find("] ") + 2);
  }
  const std::string_view taken(position_.begin, static_cast<size_t>(position_.at - position_.begin));
  const char* last = taken.empty() ? position_.begin : position_.at - 1;
  RefuseText(source_, *source_, ", line ", LineOfLastToken(), ", column ", ColumnOf(position_, last),
             ": not valid JSON: ", Printable(reason), HintFor(taken));
}

// The parser takes a NUL for the end of the text; a file that a crash left full of them would read as shorter.
void RefuseNul(std::string_view text, const JsonValue::Source& source) {
  const size_t nul = text.find('\0');
  if (nul == std::string_view::npos) return;
  int line = 1;
  for (const char character : text.substr(0, nul)) line += character == '\n' ? 1 : 0;
  RefuseText(source, Where(source, line), "not valid JSON: a NUL byte at offset ", nul, " of ", text.size(),
             "; the file is damaged or not UTF-8");
}

}  // namespace

JsonValue ReadJson(std::string_view text, const JsonValue::Source& source, JsonSink* sink) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    RefuseText(source, *source, " is UTF-16; save it as UTF-8");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    RefuseText(source, *source, " is empty; it must hold a JSON object");
  }
  RefuseNul(text, source);
  ReadPosition position{text.data(), text.data()};
  TreeBuilder builder(source, position, sink);
  nlohmann::json::sax_parse(TrackedIterator{text.data(), &position},
                            TrackedIterator{text.data() + text.size(), &position}, &builder);
  return builder.TakeRoot();
}

}  // namespace oga
