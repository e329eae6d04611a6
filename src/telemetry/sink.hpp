// Sink: a target of records. One thread uses a sink at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "telemetry/record.hpp"

namespace loom::core {

class Sink {
 public:
  virtual ~Sink() = default;
  // Whether it takes records of this kind. Passes of layers are numerous, so few sinks take them.
  virtual bool takes(Record::Kind kind) const {
    return kind != Record::Kind::pass && kind != Record::Kind::sweep;
  }
  virtual Status write(const Record& record) = 0;
  // Makes written data visible to readers. Called a few times a second, when the queue is empty.
  virtual Status flush() { return {}; }
  // Called once, after the last flush(), unless the sink failed. Errors: records that the sink
  // lost, or that reached no listener.
  virtual Status end() { return {}; }
};

// One JSON object per line: {"wall": 1.5, "step": 3, "tag": "loss/train", "value": 0.25}. A
// histogram has "histogram" instead of "value", a network graph "nodes". Numbers that are not
// finite are null.
std::string json_line(const Record& record);  // without the end of the line
// Appends such lines to a file, which is created if it is missing. If lines cannot be written (a
// full disk), they are lost, but later ones are not; end() reports how many.
Result<std::unique_ptr<Sink>> json_lines_sink(const std::string& path);
// Passes such lines to a function.
std::unique_ptr<Sink> line_sink(std::function<Status(std::string_view line)> take);

// A file "events.out.tfevents.*" in `folder`, which is created if it is missing, in TensorBoard's
// format: https://github.com/tensorflow/tensorboard, proto/event.proto and summary.proto. second:
// the start of the run, since 1970; it names the file.
Result<std::unique_ptr<Sink>> tensorboard_sink(const std::string& folder, int64_t second);

// The last value of every scalar in the text format of Prometheus (for its "textfile" collector),
// as gauges loom_TAG with loom_TAG_step. Each flush() replaces the whole file.
Result<std::unique_ptr<Sink>> prometheus_sink(const std::string& path);

// Posts such lines to "http://host[:port][/path]" as application/x-ndjson, over one persistent
// connection. A post that fails within `seconds` is lost. After three failures in a row the sink
// fails with the number of lost records; end() also fails if any were lost. No TLS. Errors:
// invalid_argument (not an address), unsupported (a system without sockets).
Result<std::unique_ptr<Sink>> http_sink(const std::string& url, double seconds = 1.0);
// Sends a datagram for each line to "host:port". A line of more than 1400 bytes is sent without its
// content, as {"wall": .., "step": .., "tag": .., "cut": true}. A listener is optional. If the
// system reports that there was none throughout, end() does too.
Result<std::unique_ptr<Sink>> udp_sink(const std::string& address);
// Sends a datagram of the TANHI protocol ("v": "tanhi1") for each pass of a layer to "host[:port]".
// It has the position of the layer, its kind and links (from the preceding network graph), and its
// begin and end. Never more than 1400 bytes: children are cut first, then links. Each list is also
// limited to the protocol's maximum (32 and 48).
Result<std::unique_ptr<Sink>> tanhi_sink(const std::string& address);
constexpr int kTanhiPort = 17481;

}  // namespace loom::core
