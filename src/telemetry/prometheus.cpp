#include <cmath>
#include <map>

#include "base/text.hpp"
#include "io/files/file.hpp"
#include "telemetry/sink.hpp"

namespace loom::core {
namespace {

// Letters and digits are kept; all else becomes _. Tags with the same resulting name differ in
// their label.
std::string metric_name(std::string_view tag) {
  std::string name = "loom_";
  for (const char c : tag) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  return name;
}

std::string label_text(std::string_view tag) {
  std::string text;
  for (const char c : tag) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return cat(value);
}

class Gauges final : public Sink {
 public:
  explicit Gauges(std::string path) : path_(std::move(path)) {}
  Status write(const Record& record) override {
    if (record.kind != Record::Kind::scalar) return {};
    last_[metric_name(record.tag)][record.tag] = {record.value, record.step};
    changed_ = true;
    return {};
  }
  Status flush() override {
    if (!changed_) return {};
    std::string text;
    for (const auto& [name, tags] : last_) {
      add(text, name, tags, [](const Last& last) { return value_text(last.value); });
      add(text, name + "_step", tags, [](const Last& last) { return cat(last.step); });
    }
    failed_ = write_file_atomic(path_, std::as_bytes(std::span(text)));
    changed_ = !failed_.ok();  // the next flush() tries again
    return {};
  }
  Status end() override { return failed_; }

 private:
  struct Last {
    double value = 0;
    int64_t step = 0;
  };
  using Tags = std::map<std::string, Last>;
  template <class Text>
  static void add(std::string& to, const std::string& name, const Tags& tags, Text&& text) {
    to += cat("# TYPE ", name, " gauge\n");
    for (const auto& [tag, last] : tags)
      to += cat(name, "{tag=\"", label_text(tag), "\"} ", text(last), "\n");
  }

  std::string path_;
  std::map<std::string, Tags> last_;  // by name, then by tag
  bool changed_ = false;
  Status failed_;  // of the last flush()
};

}  // namespace

Result<std::unique_ptr<Sink>> prometheus_sink(const std::string& path) {
  return std::unique_ptr<Sink>(std::make_unique<Gauges>(path));
}

}  // namespace loom::core
