#include "loom/table.hpp"

#include "api/network/network_impl.hpp"
#include "api/train/table_request.hpp"
#include "loom/trainer.hpp"
#include "train_io/target_scale.hpp"

namespace loom {
namespace core {
namespace {

DialectOptions dialect_options(const loom::DatasetOptions& options) {
  DialectOptions out;
  out.separator = options.separator;
  out.decimal = options.decimal;
  out.thousands = options.thousands;
  out.encoding = options.encoding;
  using Header = loom::DatasetOptions::Header;
  if (options.header != Header::automatic) out.header = options.header == Header::yes;
  return out;
}

Status check_planned(const loom::DatasetOptions& options, const FileRef& path) {
  const auto error = [&](std::string_view name) {
    return invalid(cat(name, " has no effect on a table with a plan; name columns instead"), path);
  };
  if (options.targets != 1) return error("targets");
  if (!options.lengths.empty()) return error("lengths");
  if (!options.labels.empty()) return error("labels");
  if (!options.columns.empty()) return error("columns");
  if (options.x != "x" || options.y != "y") return error("the name of an array");
  if (options.ignore_label) return error("ignore_label");
  if (!options.weights.empty() && !options.table)
    return invalid("the plan of the table has the column of weights already", path);
  return {};
}

Result<PlanRequest> plan_request(const loom::DatasetOptions& options, const MemoryBudget& memory) {
  const loom::TableOptions from = options.table.value_or(loom::TableOptions());
  LOOM_TRY(check_options(from));
  if (from.window == 0 && (from.horizon != 1 || from.stride != 1))
    return invalid("horizon and stride have no effect without a window");
  PlanRequest out;
  PlanOptions& plan = out.plan;
  plan.target = from.target;
  plan.drop = from.drop;
  plan.columns = from.columns;
  plan.weights = options.weights;
  plan.one_hot_limit = from.one_hot_limit;
  plan.numbers = !options.classes;
  plan.scale_target = from.scale_target;
  plan.window = {from.window, from.horizon, from.stride};
  out.dialect = dialect_options(options);
  if (from.share > 0) out.split = SplitSpec{from.share, from.seed, from.shuffle};
  out.memory = memory;
  return out;
}

}  // namespace

Status settle_table(const loom::DatasetOptions& options, const FileRef& path,
                    const MemoryBudget& memory, DatasetOptions& how,
                    std::vector<std::string>& notes) {
  how.dialect = dialect_options(options);
  how.by_order = options.columns_by_order;
  const bool planned = !how.columns.plan.empty();
  if (!options.table && !planned) return {};
  LOOM_TRY(check_planned(options, path));
  if (!options.table) return {};
  if (planned) {
    return invalid("the network has a plan of its table, which options of a table do not change",
                   path);
  }
  LOOM_ASSIGN(const PlanRequest request, plan_request(options, memory));
  LOOM_ASSIGN(PlannedTable made, plan_table(path, request));
  how.columns = columns_of(made.plan);
  notes = std::move(made.notes);
  notes.insert(notes.begin(), cat(path.name(), ": ", made.plan.describe()));
  if (options.columns_by_order)
    notes.emplace_back("columns by order has no effect on a new table: its plan names the columns");
  return {};
}

}  // namespace core

namespace {

Result<TableNetwork> make(const core::FileRef& path, const Engine& engine,
                          const DatasetOptions& reading, const LoadOptions& options) {
  LOOM_ASSIGN(const core::PlanRequest request, core::plan_request(reading, engine.impl().budget()));
  LOOM_ASSIGN(core::PlannedTable planned, core::plan_table(path, request));
  LoadOptions how = options;
  how.engine = engine;
  LOOM_ASSIGN(std::string text, core::describe_network(planned.plan, planned.samples));
  LOOM_ASSIGN(Network network, Network::from_json(text, how));
  return TableNetwork{std::move(network), std::move(text), planned.plan.describe(),
                      std::move(planned.notes), planned.samples};
}

Result<Engine> engine_of(const LoadOptions& options) {
  if (options.engine) return *options.engine;
  return Engine::shared();
}

}  // namespace

Result<TableNetwork> network_for_table(const std::string& path, const DatasetOptions& reading,
                                       const LoadOptions& options) {
  LOOM_ASSIGN(const Engine engine, engine_of(options));
  return make(path, engine, reading, options);
}

Result<TableNetwork> network_for_table(const FileBytes& file, const DatasetOptions& reading,
                                       const LoadOptions& options) {
  LOOM_ASSIGN(const Engine engine, engine_of(options));
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, false, engine.impl().budget()));
  return make(ref, engine, reading, options);
}

Result<Network> with_target_scale(const Network& network, const Dataset& train, Loss loss,
                                  const LoadOptions& options) {
  const core::Dataset& data = train.impl().data;
  const core::TrainedModel& model = network.impl().model;
  if (!loss_info(loss).numbers || data.targets.empty() || !network.impl().fresh ||
      core::target_scale_of(model.network))
    return network;
  const auto spec = core::add_target_scale(model.network, core::find_target_scale(data));
  if (!spec) return network;
  return Network::from_json(core::description_text(*spec, model.columns), options);
}

}  // namespace loom
