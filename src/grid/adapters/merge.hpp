// Adapters of whole grids: added to weights by their names, and merged into them.
#pragma once

#include "grid/network.hpp"

namespace loom::core {

// `grid` with `spec` on every weight that its patterns select; they are compared with names below
// cells. Errors: invalid if nothing is selected, or a weight has an adapter of this name.
Result<GridSpec> with_adapter(const GridSpec& grid, const AdapterSpec& spec);
GridSpec without_adapters(const GridSpec& grid);

// The description of a network, without empty and disabled cells.
GridSpec grid_of(const Network& network);
// A network of `grid` for the input of `base`. Parameters with a path of `base` are its own, in
// place; the others are not loaded.
Result<Network> sharing(std::shared_ptr<const Network> base, const GridSpec& grid);

// The scales of the adapters, cell by cell. With the parameters they determine the outputs.
std::vector<double> adapter_scales(const Network& network);

// Loads parameters of `into` with those of `from` that have the same path, in their number types.
Status copy_params(const Network& from, Network& into);

// Loads `into`, a network of without_adapters(), with the parameters of `from` in their number
// types. A weight with adapters becomes W + sum of scale * B A: rows are decoded, added in double,
// rounded to f32 and packed again. Errors: invalid for a weight that several layers share, and for
// a sum that is not finite.
Status merge_adapters(const Network& from, Network& into, ThreadPool& pool);

}  // namespace loom::core
