// Memory that opening a model takes, from the sizes and headers of its files. It is asked for
// before anything is parsed: tables of tensors, descriptions of networks, tokenizers. Weights are
// not included: they are mapped, or packed into memory that the model states.
#pragma once

#include <string>
#include <string_view>

#include "base/memory_budget.hpp"
#include "grid/builders.hpp"
#include "io/files/file_ref.hpp"

namespace loom::core {

// Errors: out_of_memory, naming the file, what it needs and the budget. A path that is not there,
// or of no format that is known, is left to the reader it is given to next.
Status check_opening(const FileRef& path, const MemoryBudget& memory);

// Memory of a JSON text that describes a network or its training, inside another file.
Status check_json(std::string_view text, const MemoryBudget& memory, const std::string& where);

// Pieces of a text and its ids, per byte; what the program takes of a budget for texts, too.
constexpr uint64_t kMemoryPerTextByte = 16;
// Memory of a text that is tokenized as a whole.
Status check_text(const std::string& path, const MemoryBudget& memory);
// The same of one that comes from elsewhere, of which `bytes` are known.
Status check_text(uint64_t bytes, const MemoryBudget& memory, const std::string& where);

// The parameters of a network, `copies` times as f32: with their gradients and what an optimizer
// keeps, 4.
Status check_parameters(const NetworkSpec& network, uint64_t copies, const MemoryBudget& memory,
                        const std::string& where);

// Memory for writing the descriptions of a network's layers. A file may have millions.
Status check_writing(const NetworkSpec& network, const MemoryBudget& memory,
                     const std::string& where);

}  // namespace loom::core
