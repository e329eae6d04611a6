#include "api/network/network_impl.hpp"

#include <cstring>

#include "base/text.hpp"
#include "dtype/dtype_tally.hpp"
#include "grid/init.hpp"
#include "layers/core/graph.hpp"
#include "ops/activation.hpp"
#include "train_io/weights/weights_source.hpp"

namespace loom {

Result<std::shared_ptr<const core::Network>> Network::Impl::weights() {
  if (refresh) LOOM_TRY(refresh());
  const std::lock_guard lock(mutex_);
  return weights_;
}

void Network::Impl::set_weights(core::Network network) {
  struct Counted {
    core::Network network;
    core::ScopedMemoryUse owned, mapped;
  };
  const std::shared_ptr<core::MemoryTracker>& memory_tracker = engine.impl().memory_tracker;
  core::ScopedMemoryUse owned(memory_tracker, core::MemoryKind::weights,
                              core::owned_bytes(network));
  core::ScopedMemoryUse mapped(memory_tracker, core::MemoryKind::mapped,
                               core::mapped_bytes(network));
  const auto counted =
      std::make_shared<Counted>(Counted{std::move(network), std::move(owned), std::move(mapped)});
  const std::lock_guard lock(mutex_);
  weights_ = std::shared_ptr<const core::Network>(counted, &counted->network);
  origin.reset();
  proof_.reset();
}

Result<std::shared_ptr<const core::ProofRecord>> Network::Impl::proof() {
  LOOM_TRY(weights());  // a trainer may have newer weights without a proof
  const std::lock_guard lock(mutex_);
  return proof_;
}

void Network::Impl::set_proof(std::shared_ptr<const core::ProofRecord> proof) {
  const std::lock_guard lock(mutex_);
  proof_ = std::move(proof);
}

}  // namespace loom

namespace loom::core {

Result<Shape> core_shape(const loom::Shape& shape, std::string_view what) {
  if (shape.size() > static_cast<size_t>(Shape::kMaxRank))
    return invalid(
        cat(what, " ", loom::shape_text(shape), " has more than ", Shape::kMaxRank, " extents"));
  Shape out;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] < 1)
      return invalid(cat(what, " ", loom::shape_text(shape), ": extents must be at least 1"));
    out = out.after(shape[i]);
  }
  return out;
}

Result<InferOptions> infer_options(const StateDictOptions& options) {
  if (!options.activation.empty()) {
    const Result<Activation> known = parse_activation(options.activation);
    if (!known.ok()) return known.error();
  }
  InferOptions out;
  out.heads = options.heads;
  out.activation = options.activation;
  out.stride = options.stride;
  out.padding = options.padding;
  out.assume = options.assume;
  if (!options.input.empty()) {
    LOOM_ASSIGN(out.input, core_shape(options.input, "the input shape of a state dict"));
  }
  return out;
}

loom::Shape public_shape(const Shape& shape) {
  loom::Shape out;
  for (int i = 0; i < shape.rank(); ++i) out.push_back(shape[i]);
  return out;
}

loom::Shape without_batch(const Shape& shape) {
  loom::Shape out = public_shape(shape);
  if (!out.empty()) out.erase(out.begin());
  return out;
}

Result<Shape> batch_shape(const Network& network, const loom::Tensor& inputs) {
  const Shape& made = network.input();
  LOOM_ASSIGN(const Shape given, core_shape(inputs.shape(), "an input"));
  bool fits = given.rank() == made.rank();
  for (int i = 1; fits && i < made.rank(); ++i) fits = given[i] <= made[i];
  if (fits && network.shapes(given).ok()) return given;
  Shape one = given;
  if (fits) one[0] = 1;
  if (fits && network.shapes(one).ok() && !takes_batches(network)) return given;
  return invalid(cat("an input ", given.str(), ": the network takes samples ",
                     loom::shape_text(without_batch(made)), ", with their number in front"));
}

Result<loom::Tensor> ids_below(int64_t limit, const loom::Tensor& inputs, std::string_view who) {
  LOOM_ASSIGN(const loom::Tensor wide, inputs.to(loom::DType::int64));
  LOOM_ASSIGN(const std::span<const int64_t> ids, wide.values<int64_t>());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < limit) continue;
    return make_error(Code::out_of_range, cat(who, static_cast<int64_t>(i), ": id ", ids[i],
                                              " must be from 0 to ", limit - 1));
  }
  return wide.to(loom::DType::int32);
}

namespace {

// The names of a Graph, if the cell is one.
std::vector<std::string> names_of(const GridNode& cell, bool outputs) {
  const LayerConfig& config = cell.node.config;
  if (!config.def->wired || config.disabled) return {outputs ? "output" : "input"};
  const GraphNames names = graph_names(config);
  return outputs ? names.outputs : names.inputs;
}

PortInfo port_of(std::string name, const Shape& shape, bool batched, int64_t ids) {
  return {std::move(name), batched ? without_batch(shape) : public_shape(shape), batched, ids};
}

}  // namespace

bool takes_batches(const Network& network) {
  // Two numbers, so that an extent of a layer is not mistaken for the batch.
  for (const int64_t samples : {2, 3}) {
    Shape several = network.input();
    several[0] = samples;
    const Result<std::vector<CellShapes>> shapes = network.shapes(several);
    if (!shapes.ok() || shapes->back().out[0] != samples) return false;
  }
  return true;
}

std::vector<PortInfo> input_ports(const Network& network) {
  std::vector<PortInfo> out;
  out.push_back(port_of(names_of(network.cells().front(), false).front(), network.input(), true,
                        network.vocab()));
  for (const InputSpec& spec : network.extra_inputs())
    out.push_back(port_of(spec.name, spec.batch(1), spec.batched, spec.ids));
  return out;
}

std::vector<PortInfo> output_ports(const Network& network) {
  const std::vector<std::string> names = names_of(network.cells().back(), true);
  std::vector<PortInfo> out;
  out.push_back(port_of(names.front(), network.output(), true, 0));
  // An output is per sample if it grows with the number of samples.
  Shape other = network.input();
  ++other[0];
  const Result<std::vector<CellShapes>> grown = network.shapes(other);
  for (size_t i = 0; i < network.more_outputs().size(); ++i) {
    const Shape& shape = network.more_outputs()[i];
    const bool batched = grown.ok() ? grown->back().more[i][0] != shape[0] : shape[0] == 1;
    const std::string name = i + 1 < names.size() ? names[i + 1] : cat("output", i + 1);
    out.push_back(port_of(name, shape, batched, 0));
  }
  return out;
}

Result<loom::Tensor> prepared_more(const InputSpec& spec, const loom::Tensor& input,
                                   int64_t samples) {
  LOOM_ASSIGN(const Shape given, core_shape(input.shape(), "an input"));
  if (!(given == spec.batch(samples))) {
    return invalid(cat("the input '", printable(spec.name), "' is ", given.str(), ", must be ",
                       spec.batch(samples).str()));
  }
  if (spec.ids == 0) return input.to(loom::DType::float32);
  if (input.dtype() == loom::DType::float32 || input.dtype() == loom::DType::float64)
    return invalid(cat("the input '", printable(spec.name), "' are ids: give integers"));
  return ids_below(spec.ids, input, cat("input '", printable(spec.name), "', value "));
}

Result<loom::Tensor> prepared_inputs(const Network& network, const Normalization& normalization,
                                     const loom::Tensor& inputs) {
  if (const int64_t vocab = network.vocab(); vocab > 0) {
    if (inputs.dtype() == loom::DType::float32 || inputs.dtype() == loom::DType::float64)
      return invalid("the network begins with an Embedding: its inputs are ids, as integers");
    return ids_below(vocab, inputs, "input ");
  }
  LOOM_ASSIGN(loom::Tensor floats, inputs.to(loom::DType::float32));
  if (normalization.empty()) return floats;
  const size_t each = normalization.shift.size();
  if (floats.size() % static_cast<int64_t>(each) != 0)
    return invalid(cat("inputs are normalized, so samples have ", each, " values"));
  LOOM_ASSIGN(loom::Tensor own, floats.copied());
  LOOM_ASSIGN(const std::span<float> values, own.mutable_values<float>());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (values[i] - normalization.shift[i % each]) * normalization.scale[i % each];
  return own;
}

DType matrix_dtype(const Network& network, DType otherwise) {
  DTypeTally common, all;
  for (const Param& p : network.params()) {
    if (!p.spec.matrix()) continue;
    all.add(p.tensor.dtype, p.spec.shape.count());
    if (!p.dtype) common.add(p.tensor.dtype, p.spec.shape.count());
  }
  if (!common.empty()) return common.most();
  return all.empty() ? otherwise : all.most();
}

Result<Network> clone_network(const NetworkSpec& spec, const Network& network) {
  LOOM_ASSIGN(Network copy, Network::finalize(spec.grid, spec.input.after(1)));
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& from = network.params()[i];
    const auto index = static_cast<int>(i);
    LOOM_TRY(network.check_param(index));
    LOOM_TRY(copy.allocate_param(index, from.tensor.dtype));
    std::memcpy(copy.param(index).tensor.data, from.tensor.data, static_cast<size_t>(from.bytes()));
  }
  return copy;
}

LoadedSource::LoadedSource(const TrainedModel& model, bool trained,
                           std::shared_ptr<const Network> network)
    : NetworkSource(model.network), model_(model), network_(std::move(network)) {
  dtype = dtype_name(model_.dtype);
  if (trained) {
    add_model(model_, sections, blobs);
  } else {
    // A file from elsewhere, such as an ONNX file.
    keep_normalization(model_.normalization, *this);
    add_plan(model_.columns, sections);
  }
}

Result<SourceWeight> LoadedSource::weight(const Param& param) const {
  const int index = network_->find_param(param.path);
  if (index < 0) return make_error(Code::not_found, cat("no parameter '", param.path, "'"));
  LOOM_TRY(network_->check_param(index));
  const Tensor& held = network_->params()[static_cast<size_t>(index)].tensor;
  SourceWeight weight;
  weight.stored = held.dtype;
  if (!param.spec.matrix()) {
    weight.rows = [held](int64_t first, int64_t count, float* out) {
      std::copy_n(held.f32() + first, count, out);
      return Status();
    };
    return weight;
  }
  const R16 geometry = r16_geometry(held.dtype, param.spec.shape[0], param.spec.shape[1]);
  weight.rows = [held, geometry](int64_t first, int64_t count, float* out) {
    for (int64_t r = 0; r < count; ++r)
      r16_decode(geometry, held.data, first + r, 0, geometry.cols, out + r * geometry.cols);
    return Status();
  };
  weight.copy_row = [held](int64_t row, const R16& matrix, std::byte* to) {
    r16_copy_row(matrix, held.data, row, to);
    return Status();
  };
  return weight;
}

}  // namespace loom::core
