#include "grid/traced.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom {
namespace {

// Feedback reads copies: the outputs themselves are written later in the same pass.
Status record_feedback(const Network& network, Recorder& recorder, const TracedNetwork& t) {
  for (size_t i = 0; i < network.cells().size(); ++i) {
    if (!t.feedback[i].empty()) LOOM_TRY(recorder.unary({t.outputs[i], t.feedback[i]}));
  }
  return {};
}

}  // namespace

Result<TracedNetwork> trace_network(const Network& network, Trace& trace,
                                    const TraceOptions& options) {
  LOOM_TRY(network.check_loaded());
  const Shape& input = network.input();
  if (input.rank() < 1 || input[0] < 1) {
    return invalid(cat("a network needs at least one sample; its input is ", input.str()));
  }
  TracedNetwork t;
  const int64_t length = input.rank() > 1 ? input[1] : 1;
  for (const RopeSpec& spec : network.ropes()) {
    LOOM_ASSIGN(RopeTable table, RopeTable::make(spec, length));
    t.ropes.push_back(std::move(table));
  }
  const bool ids = takes_ids(network.cells()[0].node.config);
  t.x = trace.fresh(input, ids ? DType::i32 : trace.compute());
  t.step = trace.fresh(Shape{1});
  if (options.masked) t.mask = trace.fresh(Shape{input[0], length});
  for (size_t i = 0; i < network.cells().size(); ++i) {
    const bool read =
        std::any_of(network.cells().begin(), network.cells().end(), [&](const GridNode& other) {
          return other.feedback && static_cast<size_t>(other.link) == i;
        });
    t.feedback.push_back(read ? trace.fresh(network.cells()[i].out) : Tensor{});
  }
  Recorder recorder(trace);
  Pass pass;
  pass.network = &network;
  pass.recorder = &recorder;
  pass.tensor = [&](const Shape& shape) -> Result<Tensor> { return trace.fresh(shape); };
  pass.ropes = &t.ropes;
  pass.sequences = input[0];
  pass.mask = t.mask;
  pass.feedback = &t.feedback;
  pass.outputs = &t.outputs;
  pass.on_cell = [&](size_t) { t.starts.push_back(static_cast<int64_t>(trace.commands().size())); };
  if (options.noted) {
    pass.on_output = [&](size_t i, const Tensor& y) { trace.note(y, static_cast<int64_t>(i)); };
  }
  pass.training = options.training;
  pass.seed = options.seed;
  pass.step = t.step;
  LOOM_ASSIGN(t.y, pass.run(0, network.cells().size(), t.x));
  t.losses = std::move(pass.losses);
  LOOM_TRY(record_feedback(network, recorder, t));
  return t;
}

}  // namespace loom
