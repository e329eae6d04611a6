#include "loom/merge.hpp"

#include <iterator>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "evolve/merging/merge.hpp"
#include "evolve/merging/splice.hpp"
#include "io/files/file.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

Result<NamedModel> open_named(const std::string& path, const MemoryBudget& memory) {
  LOOM_ASSIGN(OpenedModel model, open_model(path, {.memory = memory}));
  return NamedModel{path, std::make_shared<const OpenedModel>(std::move(model))};
}

int64_t written_bytes(const std::string& path) {
  const Result<MappedFile> file =
      MappedFile::open(is_directory(path) ? path + "/model.safetensors" : path);
  return file.ok() ? static_cast<int64_t>(file->bytes().size()) : 0;
}

// Writes a computed model, and notes what its file cannot hold.
Result<int64_t> write_made(const OpenedModel& model, const std::string& output,
                           const std::optional<loom::DType>& dtype,
                           const std::function<void(const std::string&)>& note,
                           Engine::Impl& engine) {
  if (model.network != nullptr)
    LOOM_TRY(check_writing(model.network->spec, engine.budget(), output));
  WriteOptions how;
  how.with_weights = true;
  if (dtype) how.dtype = static_cast<DType>(*dtype);
  for (const std::string& line : left_out(output, model, how)) {
    if (note) note(line);
  }
  LOOM_TRY(write_model(output, model, how, engine.pool));
  return written_bytes(output);
}

Result<NamedModel> named_network(const loom::Network& network, const std::string& name) {
  LOOM_ASSIGN(const auto weights, network.impl().weights());
  auto model = std::make_shared<OpenedModel>();
  model->format = "network";
  model->network =
      std::make_unique<LoadedSource>(network.impl().model, network.impl().trained, weights);
  model->network->path = name;
  return NamedModel{name, std::move(model)};
}

}  // namespace
}  // namespace loom::core

namespace loom {

Result<MergeReport> merge(const std::vector<MergeInput>& models, const std::string& output,
                          const MergeOptions& options) {
  LOOM_ASSIGN(const core::MergeRecipe recipe, core::merge_recipe(models, options));
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  Engine::Impl& engine = on.impl();
  const std::lock_guard turn(engine.turn);
  core::NamedModel base;
  if (!options.base.empty()) {
    LOOM_ASSIGN(base, core::open_named(options.base, engine.budget()));
  }
  std::vector<core::NamedModel> opened;
  for (const MergeInput& model : models) {
    LOOM_ASSIGN(core::NamedModel one, core::open_named(model.path, engine.budget()));
    opened.push_back(std::move(one));
  }
  std::vector<std::string> notes;
  LOOM_ASSIGN(const core::OpenedModel merged,
              core::merged_model(opened, base, recipe, options.progress, notes));
  for (const std::string& line : notes) {
    if (options.note) options.note(line);
  }
  LOOM_ASSIGN(const core::Network network, core::bare_network(merged));
  MergeReport report;
  report.method = options.method;
  report.models = static_cast<int64_t>(models.size());
  report.parameters = static_cast<int64_t>(network.params().size());
  report.weights = network.param_count();
  LOOM_ASSIGN(report.bytes, core::write_made(merged, output, options.dtype, options.note, engine));
  return report;
}

Result<SpliceReport> splice(const std::string& a, const std::string& b, const std::string& output,
                            const SpliceOptions& options) {
  LOOM_TRY(core::blend_rule(options));
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  Engine::Impl& engine = on.impl();
  const std::lock_guard turn(engine.turn);
  LOOM_ASSIGN(const core::NamedModel first, core::open_named(a, engine.budget()));
  LOOM_ASSIGN(const core::NamedModel second, core::open_named(b, engine.budget()));
  LOOM_ASSIGN(core::Spliced spliced, core::spliced_model(first, second, options));
  LOOM_ASSIGN(spliced.report.bytes,
              core::write_made(spliced.child, output, options.dtype, options.note, engine));
  return std::move(spliced.report);
}

Result<SplicedNetwork> splice(const Network& a, const Network& b, const SpliceOptions& options) {
  LOOM_ASSIGN(const core::NamedModel first, core::named_network(a, "the first network"));
  LOOM_ASSIGN(const core::NamedModel second, core::named_network(b, "the second network"));
  const Engine on = options.engine.value_or(a.impl().engine);
  const std::lock_guard turn(on.impl().turn);
  LOOM_ASSIGN(core::Spliced spliced, core::spliced_model(first, second, options));
  auto impl = std::make_shared<Network::Impl>(on, a.impl().model);
  if (options.dtype) impl->model.dtype = static_cast<core::DType>(*options.dtype);
  impl->trained = a.impl().trained;
  impl->fresh = false;
  LOOM_ASSIGN(core::Network network, core::bare_network(spliced.child));
  std::optional<core::DType> dtype;
  if (options.dtype) dtype = impl->model.dtype;
  LOOM_TRY(core::load_weights(network, *spliced.child.network, dtype, on.impl().pool));
  impl->set_weights(std::move(network));
  return SplicedNetwork{Network(std::move(impl)), std::move(spliced.report)};
}

}  // namespace loom
