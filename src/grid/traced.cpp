#include "grid/traced.hpp"

#include "base/text.hpp"
#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {
namespace {

// First copies the inputs of feedback links into tensors of the trace that nothing writes again.
// Gradients and second copies of gradient checkpointing find them unchanged.
Status begin_feedback(const Network& network, const std::vector<Tensor>* given, Trace& trace,
                      Recorder& recorder, TracedNetwork& t) {
  const std::vector<bool> read = network.fed_back();
  for (size_t i = 0; i < read.size(); ++i) {
    Tensor& mine = t.feedback.emplace_back();
    if (!read[i]) continue;
    mine = trace.fresh(network.cells()[i].out);
    LOOM_TRY(given != nullptr ? recorder.unary({(*given)[i], mine}) : recorder.fill({mine, 0.0f}));
  }
  return {};
}

Status make_inputs(const Network& network, const TraceOptions& options, Trace& trace,
                   Recorder& recorder, TracedNetwork& t) {
  for (const InputSpec& spec : network.extra_inputs()) {
    const Shape shape = spec.batch(network.input()[0]);
    if (options.given) {
      t.more.push_back(trace.fresh(shape, spec.dtype(trace.compute())));
      continue;
    }
    // Zeros of the compute type also represent id 0, because it is at least as wide as ids.
    Tensor& zeros = t.more.emplace_back(trace.fresh(shape));
    LOOM_TRY(recorder.fill({zeros, 0.0f}));
    zeros.dtype = spec.dtype(trace.compute());
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
  if (options.masked) {
    t.mask = trace.fresh(Shape{input[0], length});
    t.ends.last = trace.fresh(Shape{input[0]}, DType::i32);
    t.ends.reversed = trace.fresh(Shape{input[0] * length}, DType::i32);
  }
  if (options.documents) {
    LOOM_TRY(check_ragged(network));
    t.row_positions = trace.fresh(Shape{input[0] * length, 2}, DType::i32);
  }
  Recorder recorder(trace);
  LOOM_TRY(begin_feedback(network, options.feedback, trace, recorder, t));
  LOOM_TRY(make_inputs(network, options, trace, recorder, t));
  const std::vector<Tensor> given = t.more;
  if (!options.given) t.more.clear();
  Pass pass;
  pass.network = &network;
  pass.recorder = &recorder;
  pass.tensor = [&](const Shape& shape) -> Result<Tensor> { return trace.fresh(shape); };
  pass.ropes = &t.ropes;
  pass.sequences = input[0];
  pass.mask = t.mask;
  pass.ends = t.ends;
  pass.row_positions = t.row_positions;
  pass.feedback = &t.feedback;
  pass.given = &given;
  std::vector<Tensor> results;
  pass.results = &results;
  pass.outputs = &t.outputs;
  pass.on_cell = [&](size_t) { t.starts.push_back(static_cast<int64_t>(trace.commands().size())); };
  if (options.noted) {
    pass.on_output = [&](size_t i, const Tensor& y) { trace.note(y, static_cast<int64_t>(i)); };
  }
  pass.training = options.training;
  pass.seed = options.seed;
  pass.step = t.step;
  pass.partial = options.partial;
  LOOM_ASSIGN(t.y, pass.run(0, network.cells().size(), t.x));
  if (options.before_stage && t.outputs.size() > 1) t.y = t.outputs[t.outputs.size() - 2];
  t.more_outputs.assign(results.begin() + 1, results.end());
  t.losses = std::move(pass.losses);
  t.kept = std::move(pass.kept);
  t.present = pass.present;
  t.least = pass.least;
  return t;
}

void mark_lengths(const Tensor& mask, const SequenceEnds& ends, std::span<const int64_t> lengths) {
  if (mask.empty()) return;
  const int64_t sequences = mask.rows(), length = mask.cols();
  for (int64_t s = 0; s < sequences; ++s) {
    const bool named = s < std::ssize(lengths);
    const int64_t real = named ? lengths[static_cast<size_t>(s)] : length, first = s * length;
    ends.last.i32()[s] = static_cast<int32_t>(first + real - 1);
    for (int64_t t = 0; t < length; ++t) {
      const bool kept = t < real;
      if (mask.dtype == DType::f64) {
        reinterpret_cast<double*>(mask.data)[first + t] = kept ? 1.0 : 0.0;
      } else {
        mask.f32()[first + t] = kept ? 1.0f : 0.0f;
      }
      ends.reversed.i32()[first + t] = static_cast<int32_t>(first + (t < real ? real - 1 - t : t));
    }
  }
}

Status mark_documents(const Tensor& row_positions, std::span<const std::vector<int64_t>> samples) {
  const int64_t length = row_positions.rows() / std::max<int64_t>(std::ssize(samples), 1);
  int64_t row = 0;
  int32_t document = 0;
  for (size_t s = 0; s < samples.size(); ++s) {
    int64_t sum = 0;
    for (const int64_t count : samples[s]) {
      if (count < 1 || count > length - sum) {
        sum = -1;
        break;
      }
      for (int64_t i = 0; i < count; ++i, ++row) {
        row_positions.i32()[row * 2] = document;
        row_positions.i32()[row * 2 + 1] = static_cast<int32_t>(i);
      }
      sum += count;
      ++document;
    }
    if (sum == length) continue;
    return invalid(
        cat("the lengths of the documents of sample ", s, " must be above 0 and sum to ", length));
  }
  return {};
}

Status record_feedback(const TracedNetwork& traced, const std::vector<Tensor>& feedback,
                       Recorder& recorder) {
  for (size_t i = 0; i < feedback.size(); ++i) {
    if (!feedback[i].empty()) LOOM_TRY(recorder.unary({traced.outputs[i], feedback[i]}));
  }
  return {};
}

}  // namespace loom::core
