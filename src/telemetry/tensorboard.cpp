// TensorBoard's files: a sequence of records, each its length, a checksum of that, the bytes of an
// Event and a checksum of these. Numbers are little-endian. Sources of the formats: tensorflow's
// core/lib/io/record_writer.h (records and masked checksums), core/util/event.proto,
// core/framework/summary.proto and graph.proto (fields by number).
#include "base/text.hpp"
#include "io/bytes/protobuf.hpp"
#include "io/files/append_file.hpp"
#include "io/files/file.hpp"
#include "telemetry/crc32c.hpp"
#include "telemetry/sink.hpp"

namespace loom::core {
namespace {

// event.proto
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5;
// summary.proto
constexpr uint32_t kSummaryValue = 1, kTag = 1, kSimpleValue = 2, kHisto = 5;
constexpr uint32_t kMin = 1, kMax = 2, kNum = 3, kSum = 4, kSumSquares = 5, kLimits = 6,
                   kCounts = 7;
// graph.proto, node_def.proto, attr_value.proto
constexpr uint32_t kNode = 1, kVersions = 4, kProducer = 1;
constexpr uint32_t kName = 1, kOp = 2, kInput = 3, kAttr = 5, kKey = 1, kValue = 2, kBytes = 2;

template <class T>
void append_number(std::string& to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

void append_checksum(std::string& to, std::string_view of) {
  append_number(to, masked_crc32c(std::as_bytes(std::span(of.data(), of.size()))));
}

std::string row(const ProtoWriter& event) {
  const std::string& data = event.str();
  std::string out;
  append_number(out, static_cast<uint64_t>(data.size()));
  append_checksum(out, std::string(out));
  out += data;
  append_checksum(out, data);
  return out;
}

ProtoWriter histogram_proto(const Histogram& h) {
  std::vector<double> counts(h.counts.begin(), h.counts.end());
  ProtoWriter out;
  out.f64(kMin, h.min);
  out.f64(kMax, h.max);
  out.f64(kNum, static_cast<double>(h.count));
  out.f64(kSum, h.sum);
  out.f64(kSumSquares, h.sum_of_squares);
  out.doubles(kLimits, h.limits);
  out.doubles(kCounts, counts);
  return out;
}

ProtoWriter summary(const Record& record) {
  ProtoWriter value, all;
  value.text(kTag, record.tag);
  if (record.kind == Record::Kind::scalar) {
    value.f32(kSimpleValue, static_cast<float>(record.value));
  } else {
    value.message(kHisto, histogram_proto(record.histogram));
  }
  all.message(kSummaryValue, value);
  return all;
}

ProtoWriter graph_def(const std::vector<PictureNode>& nodes) {
  ProtoWriter graph;
  for (const PictureNode& n : nodes) {
    ProtoWriter node;
    node.text(kName, n.name);
    node.text(kOp, n.type);
    for (const std::string& input : n.inputs) node.text(kInput, input);
    for (const auto& [key, text] : n.attributes) {
      ProtoWriter value, entry;
      value.text(kBytes, text);
      entry.text(kKey, key);
      entry.message(kValue, value);
      node.message(kAttr, entry);
    }
    graph.message(kNode, node);
  }
  ProtoWriter versions;
  versions.integer(kProducer, 22);
  graph.message(kVersions, versions);
  return graph;
}

class Events final : public Sink {
 public:
  explicit Events(AppendFile file) : file_(std::move(file)) {}

  Status begin(int64_t second) {
    ProtoWriter event;
    event.f64(kWallTime, static_cast<double>(second));
    event.text(kFileVersion, "brain.Event:2");
    waiting_ = row(event);
    return flush();
  }

  Status write(const Record& record) override {
    ProtoWriter event;
    event.f64(kWallTime, record.wall);
    event.integer(kStep, record.step);
    if (record.kind == Record::Kind::picture) {
      event.text(kGraphDef, graph_def(record.nodes).str());
    } else {
      event.message(kSummary, summary(record));
    }
    waiting_ += row(event);
    return waiting_.size() < kMaxWaiting ? Status() : flush();
  }

  Status flush() override {
    const std::string bytes = std::exchange(waiting_, {});
    return file_.write(std::as_bytes(std::span(bytes)));
  }

 private:
  static constexpr size_t kMaxWaiting = 1 << 16;
  AppendFile file_;
  std::string waiting_;
};

}  // namespace

Result<std::unique_ptr<Sink>> tensorboard_sink(const std::string& folder, int64_t second) {
  if (!is_directory(folder)) {
    LOOM_TRY(make_folder(folder));
  }
  // Runs that begin in the same second have files of their own.
  std::string path;
  for (int i = 0;; ++i) {
    path = cat(folder, "/events.out.tfevents.", second, ".loom", i == 0 ? "" : cat(".", i));
    if (!file_exists(path)) break;
  }
  LOOM_ASSIGN(AppendFile file, AppendFile::open(path));
  auto events = std::make_unique<Events>(std::move(file));
  LOOM_TRY(events->begin(second));
  return std::unique_ptr<Sink>(std::move(events));
}

}  // namespace loom::core
