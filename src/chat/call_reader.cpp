// JSON is tracked by depth and strings only; a complete value is then validated. Arguments are
// passed on as they appear.
#include "chat/call_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxName = 256;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// Finds the end of one JSON value. Numbers and words end before the next byte.
class JsonSpan {
 public:
  enum class State { more, done, past, bad };
  State step(char c) {
    if (string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        string_ = false;
        if (depth_ == 0) return State::done;
      }
      return State::more;
    }
    const bool closes = c == '}' || c == ']';
    if (word_ && depth_ == 0 && (closes || c == ',' || is_blank(c))) return State::past;
    begun_ = begun_ || !is_blank(c);
    if (c == '"') {
      string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (closes) {
      if (depth_ == 0) return State::bad;
      if (--depth_ == 0) return State::done;
    } else if (!is_blank(c)) {
      word_ = true;
    }
    return State::more;
  }
  bool begun() const { return begun_; }

 private:
  int depth_ = 0;
  bool string_ = false, escaped_ = false, word_ = false, begun_ = false;
};

// {"name": "f", "arguments": {...}} in any order, or with other key names.
class ObjectReader : public CallReader {
 public:
  ObjectReader(const ToolFormat& format, const Tools* known, Events events)
      : format_(format), known_(known), events_(std::move(events)) {}

  State step(char c) override {
    switch (part_) {
      case Part::start:
        if (is_blank(c)) return State::more;
        part_ = Part::key;
        return c == '{' ? State::more : State::bad;
      case Part::key: return key(c);
      case Part::colon:
        if (c == ':') begin_value();
        return c == ':' || is_blank(c) ? State::more : State::bad;
      case Part::value: return value(c);
      case Part::comma:
        if (c == '}') return close();
        if (c == ',') part_ = Part::key;
        return c == ',' || is_blank(c) ? State::more : State::bad;
    }
    return State::bad;
  }

  void finish() override {
    if (named_ && !ended_) events_.end();
  }

 private:
  enum class Part { start, key, colon, value, comma };

  State key(char c) {
    if (text_.empty()) {
      if (is_blank(c)) return State::more;
      if (c == '}') return close();
      if (c != '"') return State::bad;
      span_ = JsonSpan();
    }
    text_ += c;
    if (text_.size() > kMaxName) return State::bad;
    if (span_.step(c) != JsonSpan::State::done) return State::more;
    key_ = text_.substr(1, text_.size() - 2);
    text_.clear();
    part_ = Part::colon;
    return State::more;
  }

  void begin_value() {
    part_ = Part::value;
    span_ = JsonSpan();
    text_.clear();
    streams_ = false;
  }

  State value(char c) {
    if (!span_.begun() && is_blank(c)) return State::more;
    const bool first = !span_.begun();
    const JsonSpan::State state = span_.step(c);
    if (state == JsonSpan::State::bad) return State::bad;
    if (first && c == '{' && named_ && is_arguments(key_) && !given_) streams_ = given_ = true;
    if (state != JsonSpan::State::past) {
      if (streams_) {
        events_.arguments({&c, 1});
      } else {
        text_ += c;
      }
    }
    if (state == JsonSpan::State::more) return State::more;
    part_ = Part::comma;
    const bool good = streams_ || take_value();
    text_.clear();
    if (!good) return State::bad;
    return state == JsonSpan::State::past ? step(c) : State::more;
  }

  bool is_arguments(const std::string& key) const {
    return key == format_.arguments_key || key == "arguments" || key == "parameters";
  }

  // A complete value: the name, or arguments that could not be passed on before.
  bool take_value() {
    if (key_ == format_.name_key || (key_ == "name" && !named_)) {
      const Result<JsonValue> name = parse_json(text_, "name");
      if (!name.ok() || !name->is_string() || named_) return false;
      if (known_ != nullptr && known_->find(name->text()) == nullptr) return false;
      named_ = true;
      events_.name(name->text());
      if (!waiting_.empty()) give(std::exchange(waiting_, {}));
    } else if (is_arguments(key_) && !given_) {
      given_ = true;
      std::string arguments = text_;
      const Result<JsonValue> inner = parse_json(text_, "arguments");
      if (inner.ok() && inner->is_string()) arguments = inner->text();  // JSON inside of a string
      if (inner.ok() && inner->is_null()) arguments = "{}";
      if (named_) {
        give(arguments);
      } else {
        waiting_ = arguments;
      }
    }
    return true;
  }

  void give(const std::string& arguments) { events_.arguments(arguments); }

  State close() {
    if (!named_) return State::bad;
    if (!given_) events_.arguments("{}");
    ended_ = true;
    events_.end();
    return State::done;
  }

  const ToolFormat& format_;
  const Tools* known_;  // only these can be called; null means any name
  Events events_;
  Part part_ = Part::start;
  JsonSpan span_;
  std::string text_, key_, waiting_;
  bool named_ = false, given_ = false, streams_ = false, ended_ = false;
};

class ListReader : public CallReader {
 public:
  ListReader(const ToolFormat& format, Events events)
      : format_(format), events_(std::move(events)) {}

  State step(char c) override {
    if (object_) {
      const State state = object_->step(c);
      if (state == State::done) object_.reset();
      return state == State::bad ? State::bad : State::more;
    }
    if (is_blank(c) || (begun_ && c == ',')) return State::more;
    if (c == '[' && !begun_) {
      begun_ = true;
      return State::more;
    }
    if (c == ']' && begun_) return State::done;
    if (c != '{') return State::bad;
    const bool alone = !begun_;  // one call without the brackets
    object_ = std::make_unique<ObjectReader>(format_, nullptr, events_);
    begun_ = true;
    static_cast<void>(alone);
    return object_->step(c);
  }

  void finish() override {
    if (object_) object_->finish();
  }

 private:
  const ToolFormat& format_;
  Events events_;
  bool begun_ = false;
  std::unique_ptr<ObjectReader> object_;
};

// NAME separator {...}.
class NamedReader : public CallReader {
 public:
  NamedReader(const ToolFormat& format, Events events)
      : format_(format), events_(std::move(events)) {}

  State step(char c) override {
    if (!named_) return name(c);
    if (!span_.begun() && is_blank(c)) return State::more;
    if (!span_.begun() && c != '{') return State::bad;
    const JsonSpan::State state = span_.step(c);
    if (state == JsonSpan::State::bad) return State::bad;
    events_.arguments({&c, 1});
    if (state != JsonSpan::State::done) return State::more;
    ended_ = true;
    events_.end();
    return State::done;
  }

  void finish() override {
    if (named_ && !ended_) events_.end();
  }

 private:
  State name(char c) {
    text_ += c;
    if (text_.size() > kMaxName) return State::bad;
    if (!text_.ends_with(format_.separator)) return c == '{' ? State::bad : State::more;
    std::string name = text_.substr(0, text_.size() - format_.separator.size());
    // "functions.f:0" of Kimi, "f[CALL_ID]123" of Mistral
    if (name.rfind("functions.", 0) == 0) name = name.substr(10);
    name = name.substr(0, name.find("[CALL_ID]"));
    const size_t colon = name.rfind(':');
    if (colon != std::string::npos &&
        name.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
      name = name.substr(0, colon);
    }
    while (!name.empty() && is_blank(name.back())) name.pop_back();
    while (!name.empty() && is_blank(name.front())) name.erase(0, 1);
    if (name.empty()) return State::bad;
    named_ = true;
    events_.name(std::move(name));
    return State::more;
  }

  const ToolFormat& format_;
  Events events_;
  JsonSpan span_;
  std::string text_;
  bool named_ = false, ended_ = false;
};

// Keys and values between marks. A value is JSON if the tool's schema says that it is not a string.
class ParametersReader : public CallReader {
 public:
  ParametersReader(const ToolFormat& format, const Tools& tools, Events events)
      : format_(format), tools_(tools), events_(std::move(events)) {}

  State step(char c) override {
    text_ += c;
    switch (part_) {
      case Part::name: return name();
      case Part::between: return between();
      case Part::key:
        if (text_.size() > kMaxName) return State::bad;
        if (!cut(format_.key_close)) return State::more;
        key_ = std::exchange(text_, {});
        part_ = format_.value_open.empty() ? Part::value : Part::value_open;
        return State::more;
      case Part::value_open:
        if (is_blank(c) && text_.size() == 1) text_.clear();
        if (text_ != format_.value_open.substr(0, text_.size())) return State::bad;
        if (!cut(format_.value_open)) return State::more;
        part_ = Part::value;
        return State::more;
      case Part::value:
        if (!cut(format_.value_close)) return State::more;
        give(std::exchange(text_, {}));
        part_ = Part::between;
        return State::more;
    }
    return State::bad;
  }

  void finish() override {
    if (part_ != Part::name) end();
  }

 private:
  enum class Part { name, between, key, value_open, value };

  // Whether the text ends with a mark; removes it.
  bool cut(std::string_view mark) {
    if (!text_.ends_with(mark)) return false;
    text_.resize(text_.size() - mark.size());
    return true;
  }

  State name() {
    if (text_.size() > kMaxName + 32) return State::bad;
    // Without a separator, the name ends at the first key, or at the end of the call.
    bool ends = false, closes = false;
    if (!format_.separator.empty()) {
      ends = cut(format_.separator);
    } else if (cut(format_.key_open)) {
      ends = true;
    } else if (cut(format_.close)) {
      ends = closes = true;
    }
    if (!ends) return State::more;
    std::string name = std::exchange(text_, {});
    while (!name.empty() && is_blank(name.back())) name.pop_back();
    while (!name.empty() && is_blank(name.front())) name.erase(0, 1);
    if (name.empty() || name.find('\n') != std::string::npos) return State::bad;
    tool_ = tools_.find(name);
    events_.name(std::move(name));
    part_ = format_.separator.empty() ? Part::key : Part::between;
    return closes ? end() : State::more;
  }

  State between() {
    if (text_.size() == 1 && is_blank(text_[0])) text_.clear();
    const auto begins = [&](std::string_view mark) {
      return mark.substr(0, text_.size()) == text_;
    };
    if (text_ == format_.close) return end();
    if (text_ == format_.key_open) {
      text_.clear();
      part_ = Part::key;
      return State::more;
    }
    return begins(format_.close) || begins(format_.key_open) ? State::more : State::bad;
  }

  void give(std::string value) {
    while (!key_.empty() && is_blank(key_.back())) key_.pop_back();
    while (!key_.empty() && is_blank(key_.front())) key_.erase(0, 1);
    if (value.starts_with('\n')) value.erase(0, 1);
    if (value.ends_with('\n')) value.pop_back();
    JsonValue json = JsonValue::string(value);
    if (!takes_text(key_)) {
      Result<JsonValue> parsed = parse_json(value, "value");
      if (parsed.ok()) json = std::move(*parsed);
    }
    events_.arguments(
        cat(given_ ? ", " : "{", dump_json(JsonValue::string(key_)), ": ", dump_json(json)));
    given_ = true;
  }

  // Whether the schema has a string at this key.
  bool takes_text(const std::string& key) const {
    if (tool_ == nullptr) return false;
    const JsonValue* properties = tool_->parameters.find("properties");
    const JsonValue* schema = properties != nullptr ? properties->find(key) : nullptr;
    const JsonValue* type = schema != nullptr ? schema->find("type") : nullptr;
    return type != nullptr && type->text() == "string";
  }

  State end() {
    if (!ended_) {
      events_.arguments(given_ ? "}" : "{}");
      events_.end();
    }
    ended_ = true;
    return State::done;
  }

  const ToolFormat& format_;
  const Tools& tools_;
  Events events_;
  Part part_ = Part::name;
  const Tool* tool_ = nullptr;
  std::string text_, key_;
  bool given_ = false, ended_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_call_reader(const ToolFormat& format, const Tools& tools,
                                             CallReader::Events events) {
  switch (format.syntax) {
    case ToolFormat::Syntax::object:
      return std::make_unique<ObjectReader>(format, nullptr, std::move(events));
    case ToolFormat::Syntax::bare:
      return std::make_unique<ObjectReader>(format, &tools, std::move(events));
    case ToolFormat::Syntax::list: return std::make_unique<ListReader>(format, std::move(events));
    case ToolFormat::Syntax::named: return std::make_unique<NamedReader>(format, std::move(events));
    case ToolFormat::Syntax::parameters:
      return std::make_unique<ParametersReader>(format, tools, std::move(events));
    case ToolFormat::Syntax::none: break;
  }
  return nullptr;
}

}  // namespace loom::core
