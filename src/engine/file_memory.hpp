// What opening a model takes in memory, by the sizes of its files and what their headers say, asked
// before anything is parsed: tables of tensors, descriptions of networks, tokenizers. Weights are
// not in it: they are mapped, or packed into memory that the model says it needs.
#pragma once

#include <string>

#include "base/memory_budget.hpp"
#include "grid/builders.hpp"

namespace loom {

// Errors: out_of_memory, naming the file, what it needs and the budget. A path that is not there,
// or of no format that is known, is left to the reader it is given to next.
Status check_opening(const std::string& path, const MemoryBudget& memory);

// Of a text that is tokenized as a whole.
Status check_text(const std::string& path, const MemoryBudget& memory);

// The parameters of a network, `copies` times as f32: with their gradients and what an optimizer
// keeps, 4.
Status check_parameters(const NetworkSpec& network, uint64_t copies, const MemoryBudget& memory,
                        const std::string& where);

}  // namespace loom
