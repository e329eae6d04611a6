#include "loom/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/network/network_impl.hpp"
#include "api/train/table_request.hpp"
#include "base/text.hpp"
#include "train_io/dataset_files.hpp"

namespace loom {
namespace {

using core::cat;
using core::invalid;

bool is_float(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

template <class T>
Result<std::vector<T>> values_as(const Tensor& t, DType dtype) {
  LOOM_ASSIGN(const Tensor converted, t.to(dtype));
  LOOM_ASSIGN(const std::span<const T> values, converted.values<T>());
  return std::vector<T>(values.begin(), values.end());
}

Status set_targets(const Tensor& y, core::Dataset& data) {
  if (y.shape().empty() || y.shape()[0] != data.samples)
    return invalid(
        cat(y.shape().empty() ? 0 : y.shape()[0], " targets for ", data.samples, " samples"));
  if (is_float(y.dtype())) {
    LOOM_ASSIGN(data.targets, values_as<float>(y, DType::float32));
    data.outputs = static_cast<int64_t>(data.targets.size()) / data.samples;
    return {};
  }
  LOOM_ASSIGN(data.labels, values_as<int32_t>(y, DType::int32));
  for (size_t i = 0; i < data.labels.size(); ++i) {
    const int32_t label = data.labels[i];
    if (data.ignores(label) || data.of_padding(i, data.labels_per_sample())) continue;
    data.classes = std::max<int64_t>(data.classes, int64_t{label} + 1);
  }
  return {};
}

// Splits `whole` in two and moves or copies its samples; `share` is the size of the first part.
Result<Dataset::Parts> split_in_two(const Dataset::Impl& from, core::Dataset whole,
                                    core::MemoryShare share, core::SplitRecord record) {
  record.spec.shuffle = record.spec.shuffle && !whole.ordered;
  const double out = 1 - record.spec.share;
  const auto held = static_cast<uint64_t>(static_cast<double>(whole.bytes()) * out);
  const uint64_t bytes = held + core::split_list_bytes(whole.samples);
  LOOM_ASSIGN(core::MemoryShare memory, from.budget.take(bytes, "the samples held out", from.path));
  LOOM_ASSIGN(core::SplitDataset parts, core::split_dataset(std::move(whole), record.spec));
  const auto part = [&](core::Dataset data, core::MemoryShare booked,
                        std::vector<std::string> notes) {
    return Dataset(std::make_shared<Dataset::Impl>(Dataset::Impl{std::move(data),
                                                                 from.classes,
                                                                 std::move(notes),
                                                                 record,
                                                                 std::move(booked),
                                                                 from.budget,
                                                                 from.path,
                                                                 {},
                                                                 from.media,
                                                                 from.columns}));
  };
  std::vector<std::string> notes;
#ifndef LOOM_WITHOUT_TABLES
  if (std::string note = core::note_on_split(from.columns, record.spec); !note.empty())
    notes.push_back(std::move(note));
#endif
  return Dataset::Parts{part(std::move(parts.train), std::move(share), std::move(notes)),
                        part(std::move(parts.validation), std::move(memory), {}), parts.by_class,
                        record.spec.shuffle};
}

}  // namespace

Result<PictureFit> parse_picture_fit(std::string_view name) {
  return core::parse_picture_fit(name);
}

Dataset::Dataset(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<Dataset> Dataset::from_arrays(const Tensor& x, const Tensor& y,
                                     const ArrayOptions& options) {
  Impl made;
  core::Dataset& data = made.data;
  LOOM_ASSIGN(const core::Shape shape, core::core_shape(x.shape(), "the inputs"));
  if (shape.rank() < 1) return invalid("the inputs have no axis of samples");
  data.samples = shape[0];
  for (int i = shape.rank(); i-- > 1;) data.sample = data.sample.after(shape[i]);
  if (data.sample.rank() == 0) data.sample = core::Shape{1};
  if (x.dtype() == DType::int32 || x.dtype() == DType::int64) {
    LOOM_ASSIGN(data.ids, values_as<int32_t>(x, DType::int32));
  } else {
    LOOM_ASSIGN(data.inputs, values_as<float>(x, DType::float32));
  }
  data.ignored = options.ignore_label;
  if (!options.weights.empty()) {
    LOOM_ASSIGN(data.weights, values_as<float>(options.weights, DType::float32));
  }
  if (!options.lengths.empty()) {
    LOOM_ASSIGN(data.lengths, values_as<int32_t>(options.lengths, DType::int32));
    LOOM_TRY(data.check_lengths());
    data.clear_padding();
  }
  if (!y.empty()) LOOM_TRY(set_targets(y, data));
  LOOM_TRY(y.empty() ? data.check_inputs() : data.check());
  return Dataset(std::make_shared<Impl>(std::move(made)));
}

namespace {

// Options that are unset take the network's training values.
Result<core::MediaReading> reading_of(const DatasetOptions& options,
                                      const core::TrainedModel& model) {
  core::MediaWishes wishes;
  if (options.fit) wishes.fit = options.fit;
  const SoundOptions& sound = options.sound;
  if (!sound.mel.empty()) {
    LOOM_ASSIGN(wishes.recipe, core::parse_mel_recipe(sound.mel));
  }
  wishes.time_first = sound.time_first;
  wishes.rate = sound.rate;
  wishes.window = sound.window;
  wishes.hop = sound.hop;
  wishes.low = sound.low.value_or(-1);
  wishes.high = sound.high.value_or(-1);
  return core::reading_of(wishes, model.media);
}

Result<Dataset> load_samples(const core::FileRef& path, const Network& network,
                             const DatasetOptions& options) {
  const core::TrainedModel& model = network.impl().model;
  core::DatasetOptions how;
  how.labels = options.labels;
  how.x = options.x;
  how.y = options.y;
  how.targets = options.targets;
  how.classes = options.classes;
  for (const InputArray& input : options.inputs) {
    const std::string what = cat("the input '", core::printable(input.name), "'");
    LOOM_ASSIGN(const core::Shape shape, core::core_shape(input.shape, what));
    how.inputs.push_back({input.name, shape});
  }
  how.heads = options.heads.empty() ? model.loss.heads : options.heads;
  how.names = options.names.empty() ? model.names : options.names;
  how.weights = options.weights;
  how.lengths = options.lengths;
  how.ignored = options.ignore_label;
  how.inputs_only = options.inputs_only;
  how.sequences = options.sequences || model.loss.sequence();
  if (how.sequences) how.classes = true;
  if (how.sequences && !how.ignored) how.ignored = -1;
  // Embeddings ignore class names: samples of unknown classes are compared as well.
  how.embeddings = options.embeddings || model.loss.pairs();
  if (how.embeddings) how.classes = true;
  if (how.embeddings && options.names.empty()) how.names.clear();
  how.header = static_cast<core::CsvHeader>(options.header);
  if (!model.columns.plan.empty()) {
    how.columns = model.columns;
  } else if (!options.columns_by_order && !options.table) {
    how.columns = options.columns.empty()
                      ? model.columns
                      : core::split_columns(options.columns, model.network.input.count());
  }
  std::vector<std::string> notes;
#ifdef LOOM_WITHOUT_TABLES
  if (options.table) return unsupported("this build has no reader of tables with a plan", path);
#else
  LOOM_TRY(core::settle_table(options, path, network.impl().engine.impl().budget(), how, notes));
#endif
  LOOM_ASSIGN(how.reading, reading_of(options, model));
  how.progress = options.progress;
  how.pool = &network.impl().engine.impl().pool;
  how.memory = network.impl().engine.impl().budget();
  LOOM_ASSIGN(core::LoadedDataset loaded, core::load_dataset(path, model.network, how));
  // Later files of this network are read by the same plan.
  if (options.table) network.impl().model.columns = how.columns;
  for (std::string& note : loaded.notes) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  }
  // Images have no bands.
  const auto sounds = [](const core::MediaReading& reading) { return reading.mel.bands > 0; };
  if (loaded.media && model.media && sounds(*loaded.media) != sounds(*model.media))
    return core::bad_file(
        cat("the network was trained on ", sounds(*model.media) ? "sounds" : "images",
            ", these are ", sounds(*loaded.media) ? "sounds" : "images"),
        path);
  return Dataset(std::make_shared<Dataset::Impl>(Dataset::Impl{std::move(loaded.data),
                                                               std::move(loaded.names),
                                                               std::move(notes),
                                                               {},
                                                               std::move(loaded.memory),
                                                               how.memory,
                                                               path.name(),
                                                               std::move(loaded.files),
                                                               loaded.media,
                                                               std::move(loaded.columns)}));
}

}  // namespace

Result<Dataset> Dataset::from_file(const std::string& path, const Network& network,
                                   const DatasetOptions& options) {
  return load_samples(path, network, options);
}

Result<Dataset> Dataset::from_file(const FileBytes& file, const Network& network,
                                   const DatasetOptions& options) {
  const core::MemoryBudget& budget = network.impl().engine.impl().budget();
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, false, budget));
  return load_samples(ref, network, options);
}

int64_t Dataset::bytes() const {
  return static_cast<int64_t>(impl_->data.bytes());
}

int64_t Dataset::samples() const {
  return impl_->data.samples;
}
Shape Dataset::sample() const {
  return core::public_shape(impl_->data.sample);
}
std::string Dataset::hash() const {
  return core::hash_dataset(impl_->data);
}
bool Dataset::has_labels() const {
  return impl_->data.has_labels();
}
bool Dataset::has_targets() const {
  return !impl_->data.targets.empty();
}
const std::vector<std::string>& Dataset::classes() const {
  return impl_->classes;
}
std::vector<std::string> Dataset::columns() const {
  return impl_->columns.all();
}
const std::vector<std::string>& Dataset::notes() const {
  return impl_->notes;
}
const std::vector<std::string>& Dataset::files() const {
  return impl_->files;
}

Result<Dataset> Dataset::with_input(const std::string& name, const Tensor& values) const {
  const std::string what = cat("the input '", core::printable(name), "'");
  LOOM_ASSIGN(const core::Shape shape, core::core_shape(values.shape(), what));
  const core::Dataset& d = impl_->data;
  if (shape.rank() < 1 || shape[0] != d.samples)
    return invalid(cat(what, " is ", shape.str(), ", must be [", d.samples, ", sample]"));
  if (d.extra_input(name) != nullptr) return invalid(cat(what, " is there already"));
  core::ExtraInput input{name, {}, {}, {}};
  for (int i = shape.rank(); i-- > 1;) input.sample = input.sample.after(shape[i]);
  if (values.dtype() == DType::int32 || values.dtype() == DType::int64) {
    LOOM_ASSIGN(input.ids, values_as<int32_t>(values, DType::int32));
  } else {
    LOOM_ASSIGN(input.values, values_as<float>(values, DType::float32));
  }
  const uint64_t bytes = d.bytes() + (input.values.size() + input.ids.size()) * sizeof(float);
  LOOM_ASSIGN(core::MemoryShare booked, impl_->budget.take(bytes, "the values", impl_->path));
  auto made = std::make_shared<Impl>(Impl{d, impl_->classes, impl_->notes, impl_->split,
                                          std::move(booked), impl_->budget, impl_->path,
                                          impl_->files, impl_->media, impl_->columns});
  made->data.more.push_back(std::move(input));
  LOOM_TRY(made->data.check_inputs());
  return Dataset(std::move(made));
}

Result<Dataset> Dataset::with_classes(const std::vector<std::string>& names) const {
  const core::Dataset& d = impl_->data;
  if (!d.has_labels()) return invalid("samples without labels have no classes");
  if (d.classes > static_cast<int64_t>(names.size()))
    return invalid(cat(names.size(), " names for ", d.classes, " classes"));
  LOOM_ASSIGN(core::MemoryShare booked,
              impl_->budget.take(d.bytes(), "a copy of the samples", impl_->path));
  auto made = std::make_shared<Impl>(Impl{d, names, impl_->notes, impl_->split, std::move(booked),
                                          impl_->budget, impl_->path, impl_->files, impl_->media,
                                          impl_->columns});
  made->data.classes = static_cast<int64_t>(names.size());
  return Dataset(std::move(made));
}

std::vector<std::string> Dataset::further_inputs() const {
  std::vector<std::string> names;
  for (const core::ExtraInput& input : impl_->data.more) names.push_back(input.name);
  return names;
}

Result<Tensor> Dataset::input(const std::string& name, int64_t first, int64_t count) const {
  const core::ExtraInput* input = impl_->data.extra_input(name);
  if (input == nullptr) {
    return core::make_error(Code::not_found,
                            cat("the samples have no further input '", core::printable(name), "'"));
  }
  if (first < 0 || count < 0 || first > impl_->data.samples - count)
    return invalid(cat("samples ", first, " to ", first + count, " of ", impl_->data.samples));
  Shape shape = core::public_shape(input->sample);
  shape.insert(shape.begin(), impl_->data.samples);
  const bool ids = !input->ids.empty();
  return Tensor::borrow(ids ? static_cast<const void*>(input->ids.data()) : input->values.data(),
                        ids ? DType::int32 : DType::float32, shape, {}, impl_)
      .slice(first, count);
}

Result<Tensor> Dataset::inputs(int64_t first, int64_t count) const {
  const core::Dataset& d = impl_->data;
  if (first < 0 || count < 0 || first > d.samples - count)
    return invalid(cat("samples ", first, " to ", first + count, " of ", d.samples));
  if (d.source == nullptr) return x().slice(first, count);
  Shape shape = sample();
  shape.insert(shape.begin(), count);
  LOOM_ASSIGN(Tensor out, Tensor::zeros(shape));
  LOOM_ASSIGN(const std::span<float> values, out.mutable_values<float>());
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), first);
  LOOM_TRY(d.read_inputs(order, 0, count, values.data(), nullptr));
  return out;
}

bool Dataset::in_memory() const {
  return impl_->data.source == nullptr;
}

Tensor Dataset::x() const {
  const core::Dataset& d = impl_->data;
  Shape shape = sample();
  shape.insert(shape.begin(), d.samples);
  if (!d.ids.empty()) return Tensor::borrow(d.ids.data(), DType::int32, shape, {}, impl_);
  if (d.source != nullptr) {
    const Result<Tensor> all = inputs(0, d.samples);
    return all.ok() ? *all : Tensor();
  }
  return Tensor::borrow(d.inputs.data(), DType::float32, shape, {}, impl_);
}

Tensor Dataset::y() const {
  const core::Dataset& d = impl_->data;
  if (d.has_labels()) {
    return Tensor::borrow(d.labels.data(), DType::int32, {d.samples, d.labels_per_sample()}, {},
                          impl_);
  }
  if (d.targets.empty()) return {};
  return Tensor::borrow(d.targets.data(), DType::float32, {d.samples, d.outputs}, {}, impl_);
}

Tensor Dataset::lengths() const {
  const core::Dataset& d = impl_->data;
  if (d.lengths.empty()) return {};
  return Tensor::borrow(d.lengths.data(), DType::int32, {d.samples}, {}, impl_);
}

Result<Dataset::Parts> Dataset::split(double share, const SplitOptions& options) const& {
  const core::SplitRecord record{{share, options.seed, options.shuffle}, hash()};
  LOOM_ASSIGN(core::MemoryShare copy,
              impl_->budget.take(impl_->data.bytes(), "a copy of the samples", impl_->path));
  return split_in_two(*impl_, impl_->data, std::move(copy), record);
}

Result<Dataset::Parts> Dataset::split(double share, const SplitOptions& options) && {
  if (impl_.use_count() > 1) return std::as_const(*this).split(share, options);
  const core::SplitRecord record{{share, options.seed, options.shuffle}, hash()};
  const std::shared_ptr<Impl> from = std::move(impl_);
  return split_in_two(*from, std::move(from->data), std::move(from->memory), record);
}

Result<Dataset::Parts> Dataset::fold(int64_t number, int64_t count,
                                     const SplitOptions& options) const {
  const double share = 1.0 - 1.0 / static_cast<double>(std::max<int64_t>(count, 2));
  const core::SplitRecord record{{share, options.seed, options.shuffle, count, number}, hash()};
  if (count < 2) return invalid(cat(count, " folds; give at least 2"));
  LOOM_ASSIGN(core::MemoryShare copy,
              impl_->budget.take(impl_->data.bytes(), "a copy of the samples", impl_->path));
  return split_in_two(*impl_, impl_->data, std::move(copy), record);
}

}  // namespace loom
