#include <cmath>

#include "base/text.hpp"
#include "io/files/line_file.hpp"
#include "io/json/json.hpp"
#include "telemetry/sink.hpp"

namespace loom::core {
namespace {

JsonValue number_or_null(double value) {
  return std::isfinite(value) ? JsonValue::real(value) : JsonValue();
}

JsonValue histogram_json(const Histogram& h) {
  JsonValue limits = JsonValue::array(), counts = JsonValue::array(), all = JsonValue::object();
  for (const double limit : h.limits) limits.push(JsonValue::real(limit));
  for (const int64_t count : h.counts) counts.push(JsonValue::integer(count));
  all.add("count", JsonValue::integer(h.count));
  all.add("not_finite", JsonValue::integer(h.not_finite));
  all.add("min", number_or_null(h.min));
  all.add("max", number_or_null(h.max));
  all.add("sum", number_or_null(h.sum));
  all.add("sum_of_squares", number_or_null(h.sum_of_squares));
  all.add("limits", std::move(limits));
  all.add("counts", std::move(counts));
  return all;
}

JsonValue picture_json(const std::vector<PictureNode>& nodes) {
  JsonValue all = JsonValue::array();
  for (const PictureNode& n : nodes) {
    JsonValue inputs = JsonValue::array(), node = JsonValue::object();
    for (const std::string& input : n.inputs) inputs.push(JsonValue::string(input));
    node.add("name", JsonValue::string(n.name));
    node.add("type", JsonValue::string(n.type));
    node.add("inputs", std::move(inputs));
    for (const auto& [key, value] : n.attributes) node.add(key, JsonValue::string(value));
    all.push(std::move(node));
  }
  return all;
}

class LinesFile final : public Sink {
 public:
  explicit LinesFile(LineFile file) : file_(std::move(file)) {}
  Status write(const Record& record) override {
    waiting_ += json_line(record);
    waiting_ += '\n';
    return waiting_.size() < kMax ? Status() : flush();
  }
  Status flush() override {
    const std::string text = std::exchange(waiting_, {});
    const Status done = file_.write(text);
    if (!done.ok()) error_ = done.error();
    return {};
  }
  Status end() override {
    if (file_.lost() == 0) return {};
    error_.message = cat("telemetry: ", file_.lost(), " lines were lost: ", error_.message);
    return error_;
  }

 private:
  static constexpr size_t kMax = 1 << 16;
  LineFile file_;
  std::string waiting_;
  Error error_;  // the last one
};

class Lines final : public Sink {
 public:
  explicit Lines(std::function<Status(std::string_view)> take) : take_(std::move(take)) {}
  Status write(const Record& record) override { return take_(json_line(record)); }

 private:
  std::function<Status(std::string_view)> take_;
};

}  // namespace

std::string json_line(const Record& record) {
  JsonValue line = JsonValue::object();
  line.add("wall", number_or_null(record.wall));
  line.add("step", JsonValue::integer(record.step));
  line.add("tag", JsonValue::string(record.tag));
  switch (record.kind) {
    case Record::Kind::scalar: line.add("value", number_or_null(record.value)); break;
    case Record::Kind::histogram: line.add("histogram", histogram_json(record.histogram)); break;
    case Record::Kind::picture: line.add("nodes", picture_json(record.nodes)); break;
    case Record::Kind::pass:
    case Record::Kind::sweep: break;  // no line sink takes them
  }
  return dump_json(line);
}

Result<std::unique_ptr<Sink>> json_lines_sink(const std::string& path) {
  LOOM_ASSIGN(LineFile file, LineFile::open(path));
  return std::unique_ptr<Sink>(std::make_unique<LinesFile>(std::move(file)));
}

std::unique_ptr<Sink> line_sink(std::function<Status(std::string_view line)> take) {
  return std::make_unique<Lines>(std::move(take));
}

}  // namespace loom::core
