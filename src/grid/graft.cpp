// Grafting: whole networks as parts of another one. It builds descriptions only; the owner of the
// weights copies them by name.
#include "base/text.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"

namespace loom::core {

Result<LayerConfig> as_layer(const GridSpec& grid) {
  std::vector<LayerConfig> children;
  for (int64_t i = 0; i < grid.size(); ++i) {
    const Cell* cell = grid.cell(i);
    if (cell == nullptr) continue;
    const char* held = cell->link.has_value()          ? "a link"
                       : cell->shared_with.has_value() ? "shared weights"
                       : cell->dtype.has_value()       ? "a number type of its own"
                       : !cell->frozen.empty()         ? "frozen parameters"
                       : !cell->adapters.empty()       ? "adapters"
                                                       : nullptr;
    if (held != nullptr) {
      return invalid(cat("cell ", grid.coord(i).str(), " has ", held,
                         ", which a layer inside another cannot have; remove it before grafting"));
    }
    children.push_back(cell->layer);
  }
  if (children.empty()) return invalid("an empty grid cannot be grafted; put a layer into it");
  return make_layer(LayerKind::sequential, {}, std::move(children));
}

Result<NetworkSpec> graft(const std::vector<NetworkSpec>& networks, const std::string& combine) {
  if (networks.empty()) return invalid("grafting needs at least one network");
  std::vector<LayerConfig> branches;
  for (size_t i = 0; i < networks.size(); ++i) {
    if (!(networks[i].input == networks[0].input)) {
      return invalid(cat("network ", i, " takes ", networks[i].input.str(), ", network 0 takes ",
                         networks[0].input.str(), "; grafted networks share their input"));
    }
    LOOM_ASSIGN(LayerConfig branch, as_layer(networks[i].grid));
    branches.push_back(std::move(branch));
  }
  LOOM_ASSIGN(LayerConfig parallel,
              make_layer(LayerKind::parallel, {{"combine", combine}}, std::move(branches)));
  return build_row({std::move(parallel)}, networks[0].input);
}

Result<NetworkSpec> graft_residual(const NetworkSpec& network) {
  LOOM_ASSIGN(LayerConfig inner, as_layer(network.grid));
  LOOM_ASSIGN(LayerConfig residual, make_layer(LayerKind::residual, {}, {std::move(inner)}));
  return build_row({std::move(residual)}, network.input);
}

}  // namespace loom::core
