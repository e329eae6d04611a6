// Session: a core session for max_batch samples, and one for single samples of a remainder.
#include <algorithm>
#include <cstring>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "grid/session.hpp"
#include "grid/traced.hpp"
#include "loom/session.hpp"
#include "ops/recording/program.hpp"

namespace loom {

// The target of a result's values.
struct Output {
  std::span<float> values;
  bool batched = true;
};

struct Session::Impl {
  Engine engine;
  std::shared_ptr<const core::Network> network;
  core::Normalization normalization;
  SessionOptions options;
  std::optional<core::Session> batch, single;  // `single`: created at the first remainder
  core::ScopedMemoryUse held;
  std::vector<PortInfo> outputs = {};
  std::vector<int64_t> lengths = {};  // for the samples of the next call
  bool singly = false;                // the network takes one sample at a time
  bool shared = false;                // all samples of a batch share an input or an output
  int64_t bytes() const;

  Result<core::Session> make(int64_t samples) const;
  Result<core::Session*> session_for(int64_t samples);
  Status run_piece(std::span<const Tensor> inputs, int64_t first, int64_t count,
                   std::span<const Output> to);
  template <class Destination>
  Status compute(std::span<const Tensor> inputs, size_t num_outputs,
                 const Destination& destination);
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, size_t num_outputs);
  Result<std::vector<Tensor>> prepared(std::span<const Tensor> inputs, int64_t samples) const;
};

namespace {

using core::cat;
using core::invalid;

// Samples [first, first + count) of contiguous inputs, as core tensors.
core::Tensor piece_of(const Tensor& inputs, int64_t first, int64_t count) {
  core::Tensor x;
  x.dtype = static_cast<core::DType>(inputs.dtype());
  for (size_t i = inputs.shape().size(); i-- > 1;) x.shape = x.shape.after(inputs.shape()[i]);
  const int64_t each = x.shape.rank() == 0 ? 1 : x.shape.count();
  x.shape = x.shape.after(count);
  x.row_stride = x.shape.last();
  x.data = const_cast<std::byte*>(inputs.data()) + first * each * (dtype_bits(inputs.dtype()) / 8);
  return x;
}

}  // namespace

Result<core::Session> Session::Impl::make(int64_t samples) const {
  core::SessionOptions o;
  o.sequences = samples;
  o.masked = options.lengths;
  o.max_positions = options.max_steps;
  if (!options.quantize_activations) {
    o.activations = core::ActivationMode::f32;
  } else {
    o.activations = engine.impl().activations;
  }
  core::Shape input;
  const core::Shape& one = network->input();
  for (int i = one.rank(); i-- > 1;) input = input.after(one[i]);
  return core::Session::create(*network, *engine.impl().ops, engine.impl().pool,
                               input.after(samples), o);
}

Result<core::Session*> Session::Impl::session_for(int64_t samples) {
  if (samples == options.max_batch) return &*batch;
  if (!single) {
    LOOM_ASSIGN(single, make(1));
    held.set(bytes());
  }
  return &*single;
}

Status Session::Impl::run_piece(std::span<const Tensor> inputs, int64_t first, int64_t count,
                                std::span<const Output> to) {
  LOOM_ASSIGN(core::Session * session, session_for(count));
  if (!options.stateful) session->reset();
  const core::Tensor x = piece_of(inputs[0], first, count);
  std::vector<core::Tensor> more;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool batched = network->extra_inputs()[i - 1].batched;
    more.push_back(
        piece_of(inputs[i], batched ? first : 0, batched ? count : inputs[i].shape()[0]));
  }
  LOOM_TRY(session->give(more));
  if (!lengths.empty()) {
    const auto from = static_cast<size_t>(first), n = static_cast<size_t>(count);
    LOOM_TRY(session->set_lengths(std::span(lengths).subspan(from, n)));
  } else if (options.lengths) {
    LOOM_TRY(session->set_lengths({}));
  }
  LOOM_TRY(session->forward(x, 0, network->cells().size()));
  if (options.stateful) session->advance(x.shape.rank() > 1 ? x.shape[1] : 1);
  for (size_t i = 0; i < to.size(); ++i) {
    const core::Tensor& y = session->results()[i];
    const int64_t each = y.shape.count() / count;
    const int64_t begin = to[i].batched ? first * each : 0;
    if (y.shape.count() > std::ssize(to[i].values) - begin)
      return invalid(cat(count, " samples give ", y.shape.str(),
                         ", which is not a part of what all ", "give; run one sample at a time"));
    float* destination = to[i].values.data() + begin;
    for (int64_t r = 0; r < y.rows(); ++r)
      std::copy_n(y.f32_row(r), y.cols(), destination + r * y.cols());
  }
  return {};
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Network::session(const SessionOptions& options) const {
  if (options.max_batch < 1)
    return invalid(cat("max_batch is ", options.max_batch, ", must be at least 1"));
  if (options.lengths && options.stateful)
    return invalid("a session carries states on or is given lengths; leave one of them out");
  if (options.max_steps < 0)
    return invalid(cat("max_steps is ", options.max_steps, ", must be 0 or more"));
  LOOM_ASSIGN(std::shared_ptr<const core::Network> weights, impl_->weights());
  auto impl = std::make_unique<Session::Impl>(Session::Impl{
      impl_->engine, std::move(weights), impl_->model.normalization, options, {}, {}, {}});
  impl->singly = !core::takes_batches(*impl->network);
  if (impl->singly && !options.stateful) impl->options.max_batch = 1;
  for (const PortInfo& port : core::input_ports(*impl->network))
    impl->shared = impl->shared || !port.batched;
  impl->outputs = core::output_ports(*impl->network);
  for (const PortInfo& port : impl->outputs) impl->shared = impl->shared || !port.batched;
  LOOM_ASSIGN(impl->batch, impl->make(impl->options.max_batch));
  impl->held = core::ScopedMemoryUse(impl_->engine.impl().memory_tracker,
                                     core::MemoryKind::sessions, impl->bytes());
  return Session(std::move(impl));
}

Result<std::vector<Tensor>> Session::Impl::prepared(std::span<const Tensor> inputs,
                                                    int64_t samples) const {
  const std::vector<core::InputSpec>& more = network->extra_inputs();
  if (inputs.size() != more.size() + 1) {
    std::vector<std::string> names;
    for (const PortInfo& port : core::input_ports(*network)) names.push_back(port.name);
    return invalid(cat("the network takes ", names.size(), " inputs (", core::join(names, ", "),
                       "), but ", inputs.size(), inputs.size() == 1 ? " is" : " are", " given"));
  }
  std::vector<Tensor> out;
  LOOM_ASSIGN(out.emplace_back(), core::prepared_inputs(*network, normalization, inputs[0]));
  for (size_t i = 0; i < more.size(); ++i) {
    LOOM_ASSIGN(out.emplace_back(), core::prepared_more(more[i], inputs[i + 1], samples));
  }
  return out;
}

// Copies the first `wanted` outputs of the network, each to place(index, shape).
template <class Destination>
Status Session::Impl::compute(std::span<const Tensor> inputs, size_t num_outputs,
                              const Destination& destination) {
  LOOM_ASSIGN(const core::Shape shape, core::batch_shape(*network, inputs[0]));
  const int64_t samples = shape[0], most = options.max_batch;
  if (options.stateful && samples != most) {
    return invalid(cat(samples, " samples, but this session carries the state of ", most,
                       " streams: give the next piece of each"));
  }
  if (!lengths.empty() && std::ssize(lengths) != samples)
    return invalid(cat(lengths.size(), " lengths for ", samples, " samples"));
  LOOM_ASSIGN(const std::vector<Tensor> x, prepared(inputs, samples));
  core::Shape computed = shape;
  if (singly) computed[0] = 1;
  LOOM_ASSIGN(const std::vector<core::CellShapes> shapes, network->shapes(computed));
  std::vector<Output> to;
  for (size_t i = 0; i < num_outputs; ++i) {
    core::Shape out = i == 0 ? shapes.back().out : shapes.back().more[i - 1];
    if (singly && outputs[i].batched) out[0] *= samples;  // a sample may have several rows
    LOOM_ASSIGN(const std::span<float> values, destination(i, out));
    to.push_back({values, outputs[i].batched});
  }
  if (shared && samples != most) {
    return invalid(
        cat("all samples of a batch share an input or an output, so it is computed at "
            "once: ",
            samples, " samples need a session with max_batch ", samples));
  }
  const std::lock_guard turn(engine.impl().turn);
  for (int64_t first = 0; first < samples;) {
    const int64_t count = samples - first >= most ? most : 1;
    LOOM_TRY(run_piece(x, first, count, to));
    first += count;
  }
  return {};
}

Result<std::vector<Tensor>> Session::Impl::run(std::span<const Tensor> inputs, size_t num_outputs) {
  std::vector<Tensor> y;
  LOOM_TRY(compute(inputs, num_outputs,
                   [&](size_t, const core::Shape& shape) -> Result<std::span<float>> {
                     LOOM_ASSIGN(y.emplace_back(), Tensor::zeros(core::public_shape(shape)));
                     return y.back().mutable_values<float>();
                   }));
  return y;
}

Status Session::run_into(const Tensor& inputs, std::span<float> to,
                         std::span<const int64_t> shape) {
  const auto destination = [&](size_t, const core::Shape& out) -> Result<std::span<float>> {
    bool fits = std::ssize(to) == out.count() && (shape.empty() || std::ssize(shape) == out.rank());
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == out[static_cast<int>(i)];
    if (fits) return to;
    const std::string given = shape.empty() ? cat("of ", to.size(), " numbers")
                                            : shape_text({shape.begin(), shape.end()});
    return invalid(cat("the outputs are float32 ", shape_text(core::public_shape(out)),
                       " without gaps; the memory given is float32 ", given));
  };
  return impl_->compute({&inputs, 1}, 1, destination);
}

Result<Tensor> Session::run(const Tensor& inputs) {
  LOOM_ASSIGN(std::vector<Tensor> y, impl_->run({&inputs, 1}, 1));
  return std::move(y[0]);
}

Result<std::vector<Tensor>> Session::run(const std::vector<Tensor>& inputs) {
  if (inputs.empty()) return invalid("no input is given");
  return impl_->run(inputs, impl_->outputs.size());
}

const std::vector<PortInfo>& Session::outputs() const {
  return impl_->outputs;
}

Result<std::vector<CellOutput>> Session::run_cells(const Tensor& inputs) {
  Impl& s = *impl_;
  const core::Network& network = *s.network;
  if (!network.extra_inputs().empty())
    return core::unsupported("outputs of cells are shown for networks of one input");
  LOOM_ASSIGN(const core::Shape shape, core::batch_shape(network, inputs));
  for (int i = 1; i < shape.rank(); ++i) {
    if (shape[i] == network.input()[i]) continue;
    return invalid(cat("outputs of cells are shown for whole samples ",
                       shape_text(core::without_batch(network.input()))));
  }
  LOOM_ASSIGN(const Tensor x, core::prepared_inputs(network, s.normalization, inputs));
  // The network was finalized for one sample: its recording runs once per sample.
  const core::Ops& ops = *s.engine.impl().ops;
  core::Trace trace(ops.compute);
  LOOM_ASSIGN(core::TracedNetwork traced, core::trace_network(network, trace, {.noted = true}));
  std::vector<core::Tensor*> pinned = {&traced.x};
  LOOM_ASSIGN(core::Program program,
              core::Program::compile(std::move(trace), pinned, ops, s.engine.impl().pool));
  std::vector<CellOutput> out;
  std::vector<std::span<float>> to;
  for (const core::GridNode& cell : network.cells()) {
    core::Shape all = cell.out;
    all[0] *= shape[0];
    LOOM_ASSIGN(Tensor values, Tensor::zeros(core::public_shape(all)));
    LOOM_ASSIGN(const std::span<float> memory, values.mutable_values<float>());
    to.push_back(memory);
    out.push_back({{cell.at.z, cell.at.y, cell.at.x, cell.at.l},
                   std::string(cell.node.config.def->name),
                   std::move(values)});
  }
  const std::lock_guard turn(s.engine.impl().turn);
  for (int64_t i = 0; i < shape[0]; ++i) {
    const core::Tensor one = piece_of(x, i, 1);
    std::memcpy(traced.x.data, one.data,
                static_cast<size_t>(core::plain_bytes(one.dtype, one.shape)));
    LOOM_TRY(program.run([&](int64_t id, const core::Tensor& t) {
      const std::span<float> memory = to[static_cast<size_t>(id)];
      const int64_t each = t.shape.count();
      for (int64_t r = 0; r < t.rows(); ++r)
        std::copy_n(t.f32_row(r), t.cols(), memory.data() + i * each + r * t.cols());
    }));
  }
  return out;
}

Status Session::set_lengths(std::span<const int64_t> lengths) {
  if (!impl_->options.lengths)
    return invalid("this session was made without lengths; set SessionOptions::lengths");
  for (const int64_t length : lengths) {
    if (length < 1) return invalid(cat("a sample of ", length, " steps; it has one at least"));
  }
  impl_->lengths.assign(lengths.begin(), lengths.end());
  return {};
}

Result<std::vector<Tensor>> Session::states() const {
  Impl& s = *impl_;
  if (!s.options.stateful) return core::unsupported("states are those of a stateful session");
  const std::lock_guard turn(s.engine.impl().turn);
  LOOM_ASSIGN(const std::vector<core::Tensor> states, s.batch->recurrent_states());
  std::vector<Tensor> out;
  for (const core::Tensor& t : states) {
    LOOM_ASSIGN(out.emplace_back(), Tensor::zeros({t.rows(), t.cols()}));
    LOOM_ASSIGN(const std::span<float> to, out.back().mutable_values<float>());
    std::copy_n(t.f32(), t.shape.count(), to.data());
  }
  return out;
}

Status Session::set_states(const std::vector<Tensor>& values) {
  Impl& s = *impl_;
  if (!s.options.stateful) return core::unsupported("states are those of a stateful session");
  std::vector<Tensor> numbers;
  std::vector<core::Tensor> states;
  for (const Tensor& t : values) {
    LOOM_ASSIGN(numbers.emplace_back(), t.to(DType::float32));
    const Tensor& mine = numbers.back();
    if (mine.shape().size() != 2)
      return invalid(cat("a state is [samples, width], not ", shape_text(mine.shape())));
    states.push_back(piece_of(mine, 0, mine.shape()[0]));
  }
  const std::lock_guard turn(s.engine.impl().turn);
  return s.batch->set_states(states);
}

void Session::reset() {
  impl_->batch->reset();
}
int64_t Session::position() const {
  return impl_->batch->position();
}
int64_t Session::bytes() const {
  return impl_->bytes();
}

int64_t Session::Impl::bytes() const {
  const auto of = [](const std::optional<core::Session>& s) {
    return s ? s->arena_bytes() + s->state_bytes() : 0;
  };
  return of(batch) + of(single);
}

}  // namespace loom
