// Adapters of a network: added, and merged.
#include <cmath>

#include "api/network/network_impl.hpp"
#include "grid/adapters/merge.hpp"
#include "grid/init.hpp"
#include "loom/adapter_options.hpp"

namespace loom {
namespace {

core::AdapterSpec spec_of(const AdapterOptions& options) {
  core::AdapterSpec spec;
  spec.weights = options.weights;
  if (spec.weights.empty()) spec.weights = {"*"};
  spec.name = options.name;
  spec.rank = options.rank;
  const auto rank = static_cast<double>(options.rank);
  spec.scale = options.alpha / (options.rank_stabilized ? std::sqrt(rank) : rank);
  spec.dropout = options.dropout;
  return spec;
}

// A network like `impl` with other cells; its weights are not loaded.
Result<core::Network> finalized(const core::TrainedModel& model) {
  return core::Network::finalize(model.network.grid, model.network.input.after(1));
}

std::shared_ptr<Network::Impl> copy_of(const Network::Impl& impl, core::TrainedModel model,
                                       core::Network weights) {
  auto copy = std::make_shared<Network::Impl>(impl.engine, std::move(model));
  copy->seed = impl.seed;
  copy->trained = impl.trained;
  copy->fresh = false;
  copy->set_weights(std::move(weights));
  return copy;
}

}  // namespace

Result<Network> Network::with_adapter(const AdapterOptions& options) const {
  LOOM_TRY(check_options(options));
  LOOM_ASSIGN(const auto weights, impl_->weights());
  core::TrainedModel model = impl_->model;
  LOOM_ASSIGN(model.network.grid, core::with_adapter(model.network.grid, spec_of(options)));
  LOOM_ASSIGN(core::Network made, finalized(model));
  LOOM_TRY(core::copy_params(*weights, made));
  LOOM_TRY(core::init_params(made, core::DType::f32, options.seed, impl_->engine.impl().pool));
  return Network(copy_of(*impl_, std::move(model), std::move(made)));
}

Result<Network> Network::merge_adapters() const {
  LOOM_ASSIGN(const auto weights, impl_->weights());
  if (!weights->has_adapters()) return core::invalid("the network has no adapters");
  core::TrainedModel model = impl_->model;
  model.network.grid = core::without_adapters(model.network.grid);
  LOOM_ASSIGN(core::Network made, finalized(model));
  LOOM_TRY(core::merge_adapters(*weights, made, impl_->engine.impl().pool));
  return Network(copy_of(*impl_, std::move(model), std::move(made)));
}

}  // namespace loom
