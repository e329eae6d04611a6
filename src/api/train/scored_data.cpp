#include "api/train/scored_data.hpp"

#include "bridge/network_json.hpp"
#include "train_io/dataset_files.hpp"

namespace loom::core {

Result<ScoredData> split_scored(const loom::Dataset& data, double held, uint64_t seed,
                                int64_t kind) {
  if (!data.has_labels() && !data.has_targets())
    return invalid("the samples are inputs alone; a search needs labels or targets");
  if (!data.lengths().empty()) return invalid("a search takes whole samples; these have lengths");
  if (data.impl().data.source != nullptr)
    return invalid("a search takes samples that are in memory; these are read anew for each batch");
  LOOM_ASSIGN(const loom::Dataset::Parts parts, data.split(1 - held, {.seed = seed}));
  ScoredData out;
  out.train = parts.first.impl().data;
  out.held = parts.second.impl().data;
  out.names = data.classes();
  out.columns = data.impl().columns;
  out.split = parts.first.impl().split;
  if (out.train.inputs.empty()) return out;
  LOOM_ASSIGN(out.normalization, find_normalization(out.train, static_cast<Normalize>(kind)));
  if (out.normalization.empty()) return out;
  LOOM_TRY(normalize(out.train, out.normalization));
  LOOM_TRY(normalize(out.held, out.normalization));
  return out;
}

Result<loom::Network> network_of(const GridGenome& genome, const ScoredData& data, uint64_t seed,
                                 const std::optional<loom::Engine>& engine) {
  LOOM_ASSIGN(const NetworkSpec spec, genome.spec());
  LoadOptions how{.seed = seed};
  how.engine = engine;
  LOOM_ASSIGN(loom::Network out, loom::Network::from_json(write_network(spec), how));
  LOOM_ASSIGN(const Network row, genome.finalized(1));
  for (const Param& param : row.params()) {
    const GenePosition gene = gene_position(param);
    const auto& values = genome.cells[gene.cell].values;
    const auto held = values.find(gene.name);
    if (held == values.end()) continue;
    const loom::Shape shape = public_shape(param.spec.shape);
    LOOM_TRY(out.set_parameter(param.path, loom::Tensor::view(held->second.data(), shape)));
  }
  TrainedModel& known = out.impl().model;
  known.normalization = data.normalization;
  known.names = data.names;
  known.columns = data.columns;
  known.split = data.split;
  known.loss.kind = data.loss();
  out.impl().trained = true;
  return out;
}

}  // namespace loom::core
