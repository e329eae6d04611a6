// A model in memory as it computes: its network, with every parameter packed in its stored number
// type. Comparisons use the values after packing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "convert/convert.hpp"
#include "grid/network.hpp"

namespace loom::core {

// The description of either kind of model.
Result<NetworkSpec> spec_of_model(const OpenedModel& model);
const WeightSource& source_of(const OpenedModel& model);

// Errors: invalid_argument (a description, whose weights are starting values).
Status check_weights(const OpenedModel& model, const std::string& path);

// Its network without weights. For a language model of one position.
Result<Network> bare_network(const OpenedModel& model);

// Opens `path` and packs all its parameters. Errors: those of opening, out_of_memory.
Result<std::shared_ptr<const Network>> load_network(const std::string& path,
                                                    const MemoryBudget& memory, ThreadPool& pool);
// Fills `network`, which was finalized from what `source` describes.
Status load_weights(Network& network, const WeightSource& source, std::optional<DType> dtype,
                    ThreadPool& pool);

// The effective values [first, first + count) of parameter `index`, row-major.
void packed_values(const Network& network, int index, int64_t first, int64_t count, float* out);

// All values of a parameter, as its file has them.
Status all_values(const SourceWeight& weight, const ParamSpec& spec, std::vector<float>& out);

}  // namespace loom::core
