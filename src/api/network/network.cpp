#include "loom/network.hpp"

#include <algorithm>
#include <numeric>

#include "api/network/network_impl.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "bridge/network_checkpoint.hpp"
#include "bridge/network_json.hpp"
#include "convert/convert.hpp"
#include "grid/init.hpp"
#include "io/files/foreign_file.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/graph.hpp"
#include "learn/loss/loss.hpp"
#include "loom/session.hpp"
#include "train_io/file_memory.hpp"
#include "train_io/target_scale.hpp"

namespace loom::core {
namespace {

Result<const LayerDef*> def_named(const std::string& type) {
  if (const LayerDef* def = find_layer(type)) return def;
  return invalid(
      cat("there is no layer '", printable(type), "'; there are ", join(layer_names(), ", ")));
}

Field field_of(const LayerField& given) {
  return std::visit([&](const auto& value) { return Field(given.name, value); }, given.value);
}

Result<LayerConfig> layer_of(const Layer& layer) {
  LOOM_ASSIGN(const LayerDef* def, def_named(layer.type));
  std::vector<LayerConfig> children;
  for (const Layer& child : layer.children) {
    LOOM_ASSIGN(LayerConfig made, layer_of(child));
    children.push_back(std::move(made));
  }
  std::vector<Field> fields;
  for (const LayerField& field : layer.fields) fields.push_back(field_of(field));
  LOOM_ASSIGN(LayerConfig config, make_layer(*def, fields, std::move(children)));
  if (def->wired) {  // a builder's wiring gets the same checks as a description's
    LOOM_ASSIGN(config, make_graph(graph_wiring(config), std::move(config.children)));
  }
  config.disabled = layer.disabled;
  return config;
}

Coord coord_of(const loom::Coord& at) {
  return {at.z, at.y, at.x, at.l};
}

std::optional<DType> dtype_of(const std::optional<loom::DType>& dtype) {
  if (!dtype) return {};
  return static_cast<DType>(*dtype);
}

Result<Cell> cell_of(const GridCell& from) {
  Result<LayerConfig> layer = layer_of(from.layer);
  if (!layer.ok())
    return invalid(cat("cell ", coord_of(from.at).str(), ": ", layer.error().message));
  Cell cell{std::move(*layer)};
  if (from.shared_with) cell.shared_with = coord_of(*from.shared_with);
  if (from.link) cell.link = Link{coord_of(*from.link), from.feedback};
  cell.dtype = dtype_of(from.dtype);
  cell.frozen = from.frozen;
  return cell;
}

Result<NetworkSpec> spec_of(const loom::Grid& grid, const loom::Shape& input) {
  LOOM_ASSIGN(const Shape sample, core_shape(input, "the input"));
  if (sample.rank() >= Shape::kMaxRank)
    return invalid(cat("the input ", sample.str(), " has too many extents"));
  const auto& [depth, rows, cols, layers] = grid.extents();
  GridSpec spec(depth, rows, cols, layers);
  for (const GridCell& from : grid.cells()) {
    LOOM_ASSIGN(Cell cell, cell_of(from));
    LOOM_TRY(spec.put(coord_of(from.at), std::move(cell)));
  }
  return NetworkSpec{std::move(spec), sample};
}

// Weights of a file, each in its stored type, or in `dtype`.
Status load_all(Network& network, const WeightSource& source, const LoadOptions& options,
                ThreadPool& pool) {
  const std::optional<DType> dtype = dtype_of(options.dtype);
  const auto total = static_cast<int64_t>(network.params().size());
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& param = network.params()[i];
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
    const DType type = param.dtype.value_or(dtype.value_or(weight.stored));
    LOOM_TRY(load_weight(network, static_cast<int>(i), param.spec.matrix() ? type : DType::f32,
                         weight, pool));
    if (weight.release) weight.release();
    if (options.progress && !options.progress(static_cast<int64_t>(i) + 1, total))
      return make_error(Code::cancelled, "loading was stopped");
  }
  return {};
}

Result<std::shared_ptr<loom::Network::Impl>> started(const Engine& engine, TrainedModel model,
                                                     uint64_t seed) {
  auto impl = std::make_shared<loom::Network::Impl>(engine, std::move(model));
  impl->seed = seed;
  const NetworkSpec& spec = impl->model.network;
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(1)));
  LOOM_TRY(init_params(network, impl->model.dtype, seed, engine.impl().pool));
  impl->set_weights(std::move(network));
  return impl;
}

// `weights`: the weights if they are not in `opened`. Their training record takes precedence over
// that of `opened`.
Result<std::shared_ptr<loom::Network::Impl>> loaded(
    OpenedModel opened, const LoadOptions& options,
    std::shared_ptr<const NetworkSource> weights = nullptr) {
  LOOM_ASSIGN(const Engine engine, engine_or_shared(options.engine));
  const bool has_section = weights != nullptr && weights->sections.find("model") != nullptr;
  LOOM_ASSIGN(TrainedModel model, model_of(has_section ? *weights : *opened.network));
  if (weights != nullptr) {
    model.network = opened.network->spec;
    opened.fresh = false;
  } else {
    weights = std::move(opened.network);
  }
  const NetworkSource& source = *weights;
  const std::optional<DType> dtype = dtype_of(options.dtype);
  if (dtype) model.dtype = *dtype;
  if (opened.fresh) return started(engine, std::move(model), options.seed);
  auto impl = std::make_shared<loom::Network::Impl>(engine, std::move(model));
  impl->fresh = false;
  impl->trained = source.sections.find("model") != nullptr;
  const NetworkSpec& spec = impl->model.network;
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(1)));
  LOOM_TRY(load_all(network, source, options, engine.impl().pool));
  // A file records the training type of its network; its weights may be packed in another type.
  impl->model.dtype = matrix_dtype(network, impl->model.dtype);
  engine.impl().log_line(
      LogLevel::info, cat(source.path.empty() ? "the description" : source.path, ": a network of ",
                          network.param_count(), " parameters in ", dtype_name(impl->model.dtype)));
  // Weights packed in another type compute other bits.
  std::shared_ptr<const ProofRecord> proof;
  if (!dtype) {
    LOOM_ASSIGN(proof, read_proof(source));
  }
  impl->set_weights(std::move(network));
  impl->set_proof(std::move(proof));
  impl->origin = std::move(weights);
  return impl;
}

// In double, so that the parts of a long row add up to 1.
void softmax_in_place(std::span<float> row) {
  const auto largest = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float v : row) sum += dmath::exp(static_cast<double>(v) - largest);
  for (float& v : row) v = static_cast<float>(dmath::exp(static_cast<double>(v) - largest) / sum);
}

int64_t cells_in_use(const Network& network) {
  return static_cast<int64_t>(network.cells().size());
}

// Marks the parameters of layers below `node`; shared ones are one.
void mark_params(const Node& node, std::vector<bool>& found) {
  for (const int index : node.params) found[static_cast<size_t>(index)] = true;
  for (const Node& child : node.children) mark_params(child, found);
}
int64_t count_params(const Network& network, const Node& node) {
  std::vector<bool> found(network.params().size());
  mark_params(node, found);
  int64_t count = 0;
  for (size_t i = 0; i < found.size(); ++i)
    count += found[i] ? network.params()[i].spec.shape.count() : 0;
  return count;
}

std::string layer_text(const Node& node) {
  std::string text(node.config.def->name);
  if (node.children.empty()) return text;
  std::vector<std::string> children;
  for (const Node& child : node.children) children.push_back(layer_text(child));
  return cat(text, "(", join(children, ", "), ")");
}

std::string row_text(std::vector<std::string> columns, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    line += columns[i];
    if (i + 1 < columns.size()) line.append(widths[i] + 2 - columns[i].size(), ' ');
  }
  return line + "\n";
}

}  // namespace
}  // namespace loom::core

namespace loom {

// ---- Grid ---------------------------------------------------------------------------------------

GridCell& Grid::cell(const Coord& at) {
  const auto found = std::find_if(cells_.begin(), cells_.end(),
                                  [&](const GridCell& cell) { return cell.at == at; });
  if (found != cells_.end()) return *found;
  cells_.push_back({at, {}});
  return cells_.back();
}

Grid& Grid::put(const Coord& at, Layer layer) {
  cell(at).layer = std::move(layer);
  return *this;
}
Grid& Grid::link(const Coord& to, const Coord& from, bool feedback) {
  GridCell& linked = cell(to);
  linked.link = from;
  linked.feedback = feedback;
  return *this;
}
Grid& Grid::share(const Coord& at, const Coord& with) {
  cell(at).shared_with = with;
  return *this;
}
Grid& Grid::set_dtype(const Coord& at, DType dtype) {
  cell(at).dtype = dtype;
  return *this;
}
Grid& Grid::freeze(const Coord& at, std::vector<std::string> parameters) {
  cell(at).frozen = std::move(parameters);
  return *this;
}

// ---- making and loading
// --------------------------------------------------------------------------

Network::Network(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<Network> Network::create(const Grid& grid, const NetworkOptions& options) {
  LOOM_ASSIGN(const Engine engine, core::engine_or_shared(options.engine));
  LOOM_ASSIGN(core::NetworkSpec spec, core::spec_of(grid, options.input));
  core::TrainedModel model{
      std::move(spec), static_cast<core::DType>(options.dtype), {}, options.classes, {}};
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, core::started(engine, std::move(model), options.seed));
  return Network(std::move(impl));
}

Result<Network> Network::sequential(std::vector<Layer> layers, const NetworkOptions& options) {
  if (layers.empty()) return core::invalid("a network needs at least one layer");
  Grid grid({1, 1, static_cast<int64_t>(layers.size()), 1});
  for (size_t i = 0; i < layers.size(); ++i)
    grid.put({0, 0, static_cast<int64_t>(i), 0}, std::move(layers[i]));
  return create(grid, options);
}

Result<Network> Network::from_json(std::string_view json, const LoadOptions& options) {
  const std::string where = "the description";
  LOOM_ASSIGN(const core::JsonValue value, core::parse_json(json, where));
  core::OpenedModel opened;
  if (core::is_network_checkpoint(value)) {
    LOOM_ASSIGN(opened.network, core::parse_network_checkpoint(json, where));
  } else {
    LOOM_ASSIGN(core::NetworkSpec spec, core::read_network(value, where));
    opened.network = std::make_unique<core::MemorySource>(std::move(spec));
    opened.network->sections = core::description_sections(value);
    opened.fresh = true;
  }
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, core::loaded(std::move(opened), options));
  return Network(std::move(impl));
}

namespace {

Result<std::shared_ptr<Network::Impl>> load_file(const core::FileRef& path, const Engine& engine,
                                                 const LoadOptions& options) {
  core::OpenOptions how;
  how.memory = engine.impl().budget();
  how.open_extent = options.open_extent;
  how.for_training = options.for_training;
  how.trainable = options.trainable;
  how.frozen = options.frozen;
  how.allow_nonfinite = options.allow_nonfinite;
  LOOM_ASSIGN(how.infer, core::infer_options(options.state_dict));
  LOOM_ASSIGN(core::OpenedModel opened, core::open_network(path, how));
  LOOM_TRY(core::check_parameters(opened.network->spec, 1, how.memory, path));
  std::shared_ptr<const core::NetworkSource> weights;
  if (!options.weights.empty()) {
    LOOM_ASSIGN(weights, core::open_network_weights(options.weights, opened.network->spec, how));
  }
  for (const std::string& note : opened.notes) engine.impl().log_line(LogLevel::info, note);
  Result<std::shared_ptr<Network::Impl>> made =
      core::loaded(std::move(opened), options, std::move(weights));
  return made.ok() ? made : core::file_error(made.error(), path);
}

Status save_file(Network::Impl& network, const std::shared_ptr<const core::Network>& weights,
                 const core::FileRef& path, const SaveOptions& options) {
  core::OpenedModel model;
  model.format = "network";
  core::TrainedModel trained = network.model;
  if (options.dtype) trained.dtype = *core::dtype_of(options.dtype);
  model.network = std::make_unique<core::LoadedSource>(trained, network.trained, weights);
  model.network->path = path.name();
  LOOM_ASSIGN(const auto proof, network.proof());
  if (proof != nullptr) core::add_proof(proof, *model.network);
  core::WriteOptions convert;
  convert.dtype = core::dtype_of(options.dtype);
  convert.with_weights = options.with_weights;
  convert.progress = options.progress;
  return core::write_model(path, model, convert, network.engine.impl().pool);
}

}  // namespace

Result<Network> Network::load(const std::string& path, const LoadOptions& options) {
  LOOM_ASSIGN(const Engine engine, core::engine_or_shared(options.engine));
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, load_file(path, engine, options));
  return Network(std::move(impl));
}

Result<Network> Network::load(const FileBytes& file, const LoadOptions& options) {
  LOOM_ASSIGN(const Engine engine, core::engine_or_shared(options.engine));
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, true, engine.impl().budget()));
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, load_file(ref, engine, options));
  return Network(std::move(impl));
}

Status Network::save(const std::string& path, const SaveOptions& options) const {
  LOOM_ASSIGN(const auto weights, impl_->weights());
  return save_file(*impl_, weights, path, options);
}

Result<std::string> Network::save_bytes(NetworkFormat format, const SaveOptions& options) const {
  LOOM_ASSIGN(const auto weights, impl_->weights());
  std::string out;
  const std::string name = core::cat("network.", network_format_name(format));
  LOOM_TRY(save_file(*impl_, weights, core::FileRef::into(name, out), options));
  return out;
}

std::string Network::json() const {
  return core::description_text(impl_->model.network, impl_->model.columns);
}

// ---- asking
// --------------------------------------------------------------------------------------

NetworkInfo Network::info() const {
  NetworkInfo info;
  const core::TrainedModel& model = impl_->model;
  info.input = core::public_shape(model.network.input);
  info.dtype = static_cast<DType>(model.dtype);
  info.trained = impl_->trained;
  if (impl_->trained) info.loss = loss_name(model.loss.kind);
  if (model.split) {
    const core::SplitSpec& spec = model.split->spec;
    info.split = TrainingSplit{spec.share,        spec.seed,  spec.shuffle,
                               model.split->data, spec.folds, spec.fold};
  }
  info.classes = model.names;
  info.columns = model.columns.all();
  info.plan = model.columns.plan;
#ifndef LOOM_MINIMAL
  if (const auto stage = core::target_scale_of(model.network))
    info.target_scale.assign(stage->scale.begin(), stage->scale.end());
#endif
  if (impl_->trained) info.loss_degree = core::loss_def(model.loss.kind).degree;
  info.heads = model.loss.heads;
  info.fresh = impl_->fresh;
  info.normalizes = !model.normalization.empty();
  const auto weights = impl_->weights();
  if (!weights.ok()) return info;
  const core::Network& network = **weights;
  info.output = core::without_batch(network.output());
  info.inputs = core::input_ports(network);
  info.outputs = core::output_ports(network);
  info.layers = core::cells_in_use(network);
  info.parameters = network.param_count();
  info.trainable = network.param_counts().trained;
  info.bytes = network.param_bytes();
  info.takes_ids = network.vocab() > 0;
  return info;
}

std::string Network::summary() const {
  const auto weights = impl_->weights();
  if (!weights.ok()) return weights.error().str() + "\n";
  const core::Network& network = **weights;
  std::vector<std::vector<std::string>> rows = {{"cell", "layer", "output", "parameters"}};
  for (const core::GridNode& cell : network.cells()) {
    const int64_t count = core::count_params(network, cell.node);
    rows.push_back({cell.at.str(), core::layer_text(cell.node),
                    shape_text(core::without_batch(cell.out)), core::cat(count)});
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text =
      core::cat("input ", shape_text(core::public_shape(impl_->model.network.input)), "\n");
  for (const auto& row : rows) text += core::row_text(row, widths);
  return text + core::cat(network.param_count(), " parameters, ",
                          core::dtype_name(impl_->model.dtype), ", ", network.param_bytes(),
                          " bytes\n");
}

std::vector<ParameterInfo> Network::parameters() const {
  std::vector<ParameterInfo> out;
  const auto weights = impl_->weights();
  if (!weights.ok()) return out;
  for (const core::Param& p : (*weights)->params()) {
    out.push_back({p.path, core::public_shape(p.spec.shape), static_cast<DType>(p.tensor.dtype)});
  }
  return out;
}

Result<Tensor> Network::parameter(std::string_view name) const {
  LOOM_ASSIGN(const auto weights, impl_->weights());
  const int index = weights->find_param(name);
  if (index < 0)
    return core::make_error(Code::not_found,
                            core::cat("no parameter '", core::printable(name), "'"));
  const core::Param& param = weights->params()[static_cast<size_t>(index)];
  const core::LoadedSource source(impl_->model, false, weights);
  LOOM_ASSIGN(const core::SourceWeight weight, source.weight(param));
  LOOM_ASSIGN(Tensor values, Tensor::zeros(core::public_shape(param.spec.shape)));
  LOOM_ASSIGN(const std::span<float> out, values.mutable_values<float>());
  const int64_t rows = param.spec.matrix() ? param.spec.shape[0] : param.spec.shape.count();
  LOOM_TRY(weight.rows(0, rows, out.data()));
  return values;
}

Status Network::set_parameter(std::string_view name, const Tensor& values) {
  LOOM_ASSIGN(const auto weights, impl_->weights());
  const int index = weights->find_param(name);
  if (index < 0)
    return core::make_error(Code::not_found,
                            core::cat("no parameter '", core::printable(name), "'"));
  const core::Param& param = weights->params()[static_cast<size_t>(index)];
  if (values.shape() != core::public_shape(param.spec.shape)) {
    return core::invalid(core::cat("'", name, "' is ", param.spec.shape.str(), ", the values are ",
                                   shape_text(values.shape())));
  }
  LOOM_ASSIGN(const Tensor floats, values.to(DType::float32));
  LOOM_ASSIGN(const std::span<const float> from, floats.values<float>());
  LOOM_ASSIGN(core::Network changed, core::clone_network(impl_->model.network, *weights));
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
    std::copy_n(from.data() + first * cols, count * cols, out);
    return {};
  };
  LOOM_TRY(changed.load_param(index, param.tensor.dtype, rows, impl_->engine.impl().pool));
  impl_->set_weights(std::move(changed));
  impl_->fresh = false;
  return {};
}

Result<Tensor> Network::probabilities(const Tensor& outputs) const {
  const core::LossSpec& loss = impl_->model.loss;
  const core::Prediction prediction = core::loss_def(loss.kind).prediction;
  const bool classes = prediction == core::Prediction::classes;
  if (!impl_->trained || (!classes && prediction != core::Prediction::binary_logits)) {
    return core::unsupported(
        "this network was not trained for classes, so its outputs are not "
        "scores that probabilities could be made of");
  }
  LOOM_ASSIGN(const Tensor scores, outputs.to(DType::float32));
  LOOM_ASSIGN(Tensor result, scores.copied());
  LOOM_ASSIGN(const std::span<float> values, result.mutable_values<float>());
  if (!classes) {
    for (float& v : values)
      v = static_cast<float>(1.0 / (1.0 + core::dmath::exp(-static_cast<double>(v))));
    return result;
  }
  const int64_t width = outputs.shape().empty() ? 1 : outputs.shape().back();
  std::vector<int64_t> heads = loss.heads;
  const Shape own = info().output;
  if (heads.empty()) heads = {own.empty() ? 1 : own.back()};
  if (std::accumulate(heads.begin(), heads.end(), int64_t{0}) != width)
    return core::invalid(core::cat("outputs of width ", width,
                                   " are not those of this network; give what predict() returns"));
  for (size_t at = 0; at < values.size();) {
    for (const int64_t head : heads) {
      core::softmax_in_place(values.subspan(at, static_cast<size_t>(head)));
      at += static_cast<size_t>(head);
    }
  }
  return result;
}

Result<Session> Network::session() const {
  return session(SessionOptions{});
}

Result<Tensor> Network::predict(const Tensor& inputs) const {
  constexpr int64_t kMaxAtOnce = 256;
  const int64_t samples = inputs.shape().empty() ? 1 : inputs.shape()[0];
  SessionOptions options;
  options.max_batch = std::clamp<int64_t>(samples, 1, kMaxAtOnce);
  LOOM_ASSIGN(Session made, session(options));
  return made.run(inputs);
}

}  // namespace loom
