#include "grid/adapters/merge.hpp"

#include <cmath>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core {
namespace {

void find_weight_names(const LayerConfig& layer, const std::string& path,
                       std::vector<std::string>& out) {
  if (layer.disabled) return;
  std::vector<ParamSpec> specs;
  if (layer.def->params != nullptr) layer.def->params(layer, specs);
  for (const ParamSpec& spec : specs)
    if (spec.product) out.push_back(cat(path, spec.name));
  for (size_t i = 0; i < layer.children.size(); ++i)
    find_weight_names(layer.children[i], cat(path, i, "/"), out);
}

bool selects(const AdapterSpec& spec, const std::string& name) {
  for (const std::string& pattern : spec.weights)
    if (matches_pattern(pattern, name)) return true;
  return false;
}

// Cells of `grid` after `change`, which may modify a copy of each.
template <class Change>
GridSpec changed(const GridSpec& grid, Change&& change) {
  GridSpec out(grid.depth(), grid.rows(), grid.cols(), grid.layers());
  for (int64_t i = 0; i < grid.size(); ++i) {
    if (grid.cell(i) == nullptr) continue;
    Cell cell = *grid.cell(i);
    change(cell);
    (void)out.put(grid.coord(i), std::move(cell));  // the coordinate is one of an equal grid
  }
  return out;
}

void count_uses(const Node& node, std::vector<std::vector<const NodeAdapter*>>& adapters,
                std::vector<int>& uses) {
  for (const int index : node.params) ++uses[static_cast<size_t>(index)];
  for (const NodeAdapter& adapter : node.adapters)
    adapters[static_cast<size_t>(node.params[adapter.weight])].push_back(&adapter);
  for (const Node& child : node.children) count_uses(child, adapters, uses);
}

// Row `row` of a matrix as f32.
void decode_row(const Tensor& t, int64_t row, float* out) {
  const R16 geometry = r16_geometry(t.dtype, t.shape[0], t.shape[1]);
  r16_decode(geometry, t.data, row, 0, geometry.cols, out);
}

std::vector<float> decoded(const Tensor& t) {
  std::vector<float> values(static_cast<size_t>(t.shape.count()));
  for (int64_t row = 0; row < t.shape[0]; ++row)
    decode_row(t, row, values.data() + row * t.shape[1]);
  return values;
}

// Rows of a weight with its adapters.
class MergedRows {
 public:
  MergedRows(const Network& network, int weight, const std::vector<const NodeAdapter*>& adapters)
      : weight_(network.params()[static_cast<size_t>(weight)]) {
    for (const NodeAdapter* adapter : adapters) {
      const auto tensor = [&](int i) { return network.params()[static_cast<size_t>(i)].tensor; };
      parts_.push_back({adapter->spec, decoded(tensor(adapter->a)), decoded(tensor(adapter->b))});
    }
  }

  Status read(int64_t first, int64_t count, float* out) const {
    const int64_t cols = weight_.spec.shape[1];
    std::vector<double> sums(static_cast<size_t>(cols));
    for (int64_t row = first; row < first + count; ++row, out += cols) {
      decode_row(weight_.tensor, row, out);
      std::copy(out, out + cols, sums.begin());
      for (const Part& part : parts_) add(part, row, sums);
      for (int64_t k = 0; k < cols; ++k) {
        out[k] = static_cast<float>(sums[static_cast<size_t>(k)]);
        if (!std::isfinite(out[k])) {
          return invalid(cat(weight_.path, " with its adapters is not finite in row ", row));
        }
      }
    }
    return {};
  }

 private:
  struct Part {
    const AdapterSpec* spec;
    std::vector<float> a, b;
  };

  static void add(const Part& part, int64_t row, std::vector<double>& sums) {
    const auto cols = static_cast<int64_t>(sums.size());
    for (int64_t r = 0; r < part.spec->rank; ++r) {
      const double factor =
          part.spec->scale * part.b[static_cast<size_t>(row * part.spec->rank + r)];
      const float* a = part.a.data() + r * cols;
      for (int64_t k = 0; k < cols; ++k) sums[static_cast<size_t>(k)] += factor * a[k];
    }
  }

  const Param& weight_;
  std::vector<Part> parts_;
};

Status copy_param(const Network& from, int index, Network& into, int target) {
  const Param& source = from.params()[static_cast<size_t>(index)];
  LOOM_TRY(from.check_param(index));
  LOOM_TRY(into.allocate_param(target, source.tensor.dtype));
  std::copy(source.tensor.data, source.tensor.data + source.bytes(),
            into.param(target).tensor.data);
  return {};
}

}  // namespace

Result<GridSpec> with_adapter(const GridSpec& grid, const AdapterSpec& spec) {
  bool found = false;
  GridSpec out = changed(grid, [&](Cell& cell) {
    AdapterSpec own = spec;
    own.weights.clear();
    std::vector<std::string> names;
    find_weight_names(cell.layer, "", names);
    for (const std::string& name : names)
      if (selects(spec, name)) own.weights.push_back(name);
    if (own.weights.empty()) return;
    found = true;
    cell.adapters.push_back(std::move(own));
  });
  if (found) return out;
  return invalid(cat("no weight of a product is named ", join(spec.weights, " or ")));
}

GridSpec without_adapters(const GridSpec& grid) {
  return changed(grid, [](Cell& cell) { cell.adapters.clear(); });
}

GridSpec grid_of(const Network& network) {
  Coord most;
  for (const GridNode& cell : network.cells()) {
    most.z = std::max(most.z, cell.at.z);
    most.y = std::max(most.y, cell.at.y);
    most.x = std::max(most.x, cell.at.x);
    most.l = std::max(most.l, cell.at.l);
  }
  GridSpec grid(most.z + 1, most.y + 1, most.x + 1, most.l + 1);
  for (const GridNode& cell : network.cells())
    (void)grid.put(cell.at, *cell.cell);  // the coordinate is one of the grid
  return grid;
}

Result<Network> sharing(std::shared_ptr<const Network> base, const GridSpec& grid) {
  LOOM_ASSIGN(Network network, Network::finalize(grid, base->input()));
  std::vector<int> sources(network.params().size(), -1);
  for (size_t i = 0; i < sources.size(); ++i) {
    sources[i] = base->find_param(network.params()[i].path);
    if (sources[i] < 0) continue;
    const Tensor& tensor = base->params()[static_cast<size_t>(sources[i])].tensor;
    if (!tensor.empty()) LOOM_TRY(network.map_param(static_cast<int>(i), tensor));
  }
  const Network& owner = *base;
  network.adopt(std::move(base), [&owner, sources = std::move(sources)](int index) -> Status {
    const int source = sources[static_cast<size_t>(index)];
    return source < 0 ? Status{} : owner.check_param(source);
  });
  return network;
}

std::vector<double> adapter_scales(const Network& network) {
  std::vector<double> scales;
  for (const GridNode& cell : network.cells())
    for (const AdapterSpec& spec : cell.cell->adapters) scales.push_back(spec.scale);
  return scales;
}

Status copy_params(const Network& from, Network& into) {
  for (size_t i = 0; i < from.params().size(); ++i) {
    const int target = into.find_param(from.params()[i].path);
    if (target >= 0) LOOM_TRY(copy_param(from, static_cast<int>(i), into, target));
  }
  return {};
}

Status merge_adapters(const Network& from, Network& into, ThreadPool& pool) {
  std::vector<std::vector<const NodeAdapter*>> adapters(from.params().size());
  std::vector<int> uses(from.params().size());
  for (const GridNode& cell : from.cells()) count_uses(cell.node, adapters, uses);
  for (size_t i = 0; i < from.params().size(); ++i) {
    const auto index = static_cast<int>(i);
    const Param& source = from.params()[i];
    const int target = into.find_param(source.path);
    if (target < 0) continue;  // of an adapter
    if (adapters[i].empty()) {
      LOOM_TRY(copy_param(from, index, into, target));
      continue;
    }
    if (uses[i] > 1) {
      return invalid(cat(source.path, " is shared by ", uses[i],
                         " layers, so an adapter of one of them cannot be merged into it"));
    }
    LOOM_TRY(from.check_param(index));
    const MergedRows rows(from, index, adapters[i]);
    const auto read = [&](int64_t first, int64_t count, float* out) {
      return rows.read(first, count, out);
    };
    LOOM_TRY(into.load_param(target, source.tensor.dtype, read, pool));
  }
  return into.check_loaded();
}

}  // namespace loom::core
