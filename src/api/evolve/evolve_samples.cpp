// The fitness of genomes on samples.
#include <algorithm>

#include "api/network/network_impl.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "io/json/json.hpp"
#include "loom/evolve.hpp"
#include "train_io/dataset_files.hpp"

namespace loom {

struct SampleFitness::Impl {
  Dataset samples;            // unscaled
  core::MemoryShare memory;   // of the members below
  std::vector<float> scaled;  // inputs for genomes; empty if unscaled
  core::Normalization normalization;
  std::vector<std::string> names;  // of classes
  int64_t inputs = 0, outputs = 0;

  explicit Impl(Dataset from) : samples(std::move(from)) {}
  const core::Dataset& data() const { return samples.impl().data; }
  std::span<const float> input(int64_t sample) const {
    const std::vector<float>& all = scaled.empty() ? data().inputs : scaled;
    const auto width = static_cast<size_t>(inputs);
    return {all.data() + static_cast<size_t>(sample) * width, width};
  }
  double score(std::span<const float> y, int64_t sample) const;
};

namespace {

// -log of the softmax probability of `label`.
double cross_entropy(std::span<const float> logits, size_t label) {
  const double top = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float v : logits) sum += core::dmath::exp(static_cast<double>(v) - top);
  return core::dmath::log(sum) - (static_cast<double>(logits[label]) - top);
}

double square_distance(std::span<const float> y, const float* target) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double d = static_cast<double>(y[i]) - static_cast<double>(target[i]);
    sum += d * d;
  }
  return sum;
}

Status check_samples(const core::Dataset& data, int64_t inputs, int64_t outputs) {
  using core::cat;
  using core::invalid;
  if (data.source != nullptr)
    return invalid("genomes take samples that are in memory; these are read anew for each batch");
  if (data.inputs.empty()) return invalid("genomes take numbers, and the samples are ids");
  if (data.sample.count() != inputs)
    return invalid(
        cat("a sample has ", data.sample.count(), " numbers, the genomes take ", inputs));
  if (!data.lengths.empty())
    return invalid("genomes take whole samples, and the samples have lengths");
  if (!data.more.empty()) return invalid("genomes take one input, and the samples have several");
  if (!data.weights.empty())
    return invalid("the samples have weights, which this fitness does not take into account");
  if (data.ignored) return invalid("the fitness of samples ignores no labels");
  if (!data.has_labels() && data.targets.empty())
    return invalid("the samples are inputs alone; a fitness needs labels or targets");
  if (!data.has_labels() && data.outputs != outputs)
    return invalid(
        cat("a sample has ", data.outputs, " targets, the genomes have ", outputs, " outputs"));
  if (!data.has_labels()) return {};
  if (data.labels_per_sample() != 1) return invalid("a sample has several labels; it can have one");
  const int64_t most = *std::ranges::max_element(data.labels);
  if (most >= outputs)
    return invalid(cat("there is a label ", most, ", and the genomes have ", outputs,
                       " outputs: one for each class is needed"));
  return {};
}

}  // namespace

double SampleFitness::Impl::score(std::span<const float> y, int64_t sample) const {
  if (!data().has_labels()) return square_distance(y, data().targets.data() + sample * outputs);
  return cross_entropy(y, static_cast<size_t>(data().labels[static_cast<size_t>(sample)]));
}

Result<SampleFitness> SampleFitness::create(const Dataset& data, int64_t inputs, int64_t outputs,
                                            Normalize normalize) {
  if (normalize == Normalize::as_trained)
    return core::invalid("there is no training to normalize as; choose none, standard or range");
  const core::Dataset& samples = data.impl().data;
  LOOM_TRY(check_samples(samples, inputs, outputs));
  auto impl = std::make_shared<Impl>(data);
  impl->names = data.classes();
  impl->inputs = inputs;
  impl->outputs = outputs;
  LOOM_ASSIGN(impl->normalization, core::find_normalization(samples, normalize));
  if (!impl->normalization.empty()) {
    LOOM_ASSIGN(impl->memory, data.impl().budget.take(samples.inputs.size() * sizeof(float),
                                                      "the normalized samples", data.impl().path));
    core::Dataset scaled;
    scaled.samples = samples.samples;
    scaled.sample = samples.sample;
    scaled.inputs = samples.inputs;
    LOOM_TRY(core::normalize(scaled, impl->normalization));
    impl->scaled = std::move(scaled.inputs);
  }
  return SampleFitness(std::move(impl));
}

Result<double> SampleFitness::operator()(Genome& genome) const {
  if (genome.recurrent())
    return core::invalid("a recurrent genome answers steps of time, not samples");
  if (genome.outputs() != impl_->outputs)
    return core::invalid(
        core::cat("a genome of ", genome.outputs(), " outputs, the samples need ", impl_->outputs));
  double sum = 0;
  for (int64_t i = 0; i < impl_->data().samples; ++i) {
    LOOM_ASSIGN(const std::span<const float> y, genome.step(impl_->input(i)));
    sum += impl_->score(y, i);
  }
  const auto samples = static_cast<double>(impl_->data().samples);
  if (impl_->data().has_labels()) return core::dmath::exp(-sum / samples);
  return 1 / (1 + sum / (samples * static_cast<double>(impl_->outputs)));
}

Result<Network> SampleFitness::network(const Genome& genome,
                                       const std::optional<Engine>& engine) const {
  LOOM_ASSIGN(Network out, genome.network(engine));
  core::TrainedModel& known = out.impl().model;
  known.normalization = impl_->normalization;
  known.names = impl_->names;
  known.columns = impl_->samples.impl().columns;
  known.split = impl_->samples.impl().split;
  known.loss.kind = core::default_loss(impl_->data().has_labels());
  out.impl().trained = true;
  return out;
}

std::string SampleFitness::json(const Genome& genome) const {
  using core::JsonValue;
  Result<JsonValue> parsed = core::parse_json(genome.json(), "the genome");
  if (!parsed.ok()) return genome.json();
  const auto numbers = [](const std::vector<float>& values) {
    JsonValue out = JsonValue::array();
    for (const float v : values) out.push(JsonValue::real(static_cast<double>(v)));
    return out;
  };
  JsonValue out = std::move(*parsed);
  if (!impl_->normalization.empty()) {
    out.add("input_shift", numbers(impl_->normalization.shift));
    out.add("input_scale", numbers(impl_->normalization.scale));
  }
  JsonValue names = JsonValue::array();
  for (const std::string& name : impl_->names) names.push(JsonValue::string(name));
  if (!impl_->names.empty()) out.add("classes", std::move(names));
  return core::dump_json(out) + "\n";
}

}  // namespace loom
