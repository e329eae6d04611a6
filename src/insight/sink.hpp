// Sink: where records go. One thread uses a sink at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "insight/record.hpp"

namespace loom::core {

class Sink {
 public:
  virtual ~Sink() = default;
  // Whether records of this kind are its affair. Passes of layers are many: few sinks want them.
  virtual bool takes(Record::Kind kind) const {
    return kind != Record::Kind::pass && kind != Record::Kind::sweep;
  }
  virtual Status write(const Record& record) = 0;
  // What was written can be read by others. Called a few times a second, where nothing waits.
  virtual Status flush() { return {}; }
  // Called once, after the last flush(), of a sink that did not fail. Errors: records that the sink
  // lost on the way, or that reached nobody.
  virtual Status end() { return {}; }
};

// One JSON object a line: {"wall": 1.5, "step": 3, "tag": "loss/train", "value": 0.25}. A histogram
// has "histogram" instead of "value", a picture "nodes". Numbers that are not finite are null.
std::string json_line(const Record& record);  // without the end of the line
// Appends such lines to a file, which is made where it is not there. Lines that cannot be written
// (a full disk) are lost, later ones are not; end() says how many.
Result<std::unique_ptr<Sink>> json_lines_sink(const std::string& path);
// Hands such lines to a function.
std::unique_ptr<Sink> line_sink(std::function<Status(std::string_view line)> take);

// A file "events.out.tfevents.*" in `folder`, which is made where it is not there, as TensorBoard
// reads it: https://github.com/tensorflow/tensorboard, proto/event.proto and summary.proto.
// second: when the run began, since 1970; names the file.
Result<std::unique_ptr<Sink>> tensorboard_sink(const std::string& folder, int64_t second);

// The last value of every scalar in the text format of Prometheus (its "textfile" collector reads
// it), as gauges loom_TAG with loom_TAG_step beside. Replaced as a whole by each flush().
Result<std::unique_ptr<Sink>> prometheus_sink(const std::string& path);

// Posts such lines to "http://host[:port][/path]" as application/x-ndjson, over one connection that
// is kept. A post that fails within `seconds` is lost; after the third in a row the sink fails with
// the number of records that were lost, and so does end() if any was. No TLS. Errors:
// invalid_argument (no such address), unsupported (a system without sockets).
Result<std::unique_ptr<Sink>> http_sink(const std::string& url, double seconds = 1.0);
// Sends a datagram for each line to "host:port". One of more than 1400 bytes goes without what is
// in it, as {"wall": .., "step": .., "tag": .., "cut": true}. Nobody has to listen; if the
// system says that nobody did from begin to end, so does end().
Result<std::unique_ptr<Sink>> udp_sink(const std::string& address);
// Sends a datagram of the TANHI protocol ("v": "tanhi1") for each pass of a layer to "host[:port]":
// where the layer is, what it is and links to (of the picture that came before), when it began and
// ended. Never more than 1400 bytes: what a layer holds is cut first, then its links, each to the
// protocol's most (32 and 48) anyway.
Result<std::unique_ptr<Sink>> tanhi_sink(const std::string& address);
constexpr int kTanhiPort = 17481;

}  // namespace loom::core
