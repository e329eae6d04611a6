// The inputs and outputs of a network, as readers of samples need them. Private to the room.
#pragma once

#include "grid/builders.hpp"
#include "io/arrays/array_file.hpp"
#include "learn/data/dataset.hpp"

namespace loom::core {

struct InputSchema {
  Shape sample;
  int64_t values = 0;  // of one input
  bool ids = false;    // the input are ids below `vocab`
  int64_t vocab = 0;
  std::vector<InputSpec> more;  // inputs besides the first, which files of arrays have by name
  static constexpr int64_t kAnyIds = -1;  // of InputSpec::ids: as the array is, numbers or ids
  int64_t rows = 0;                       // predictions per sample
  int64_t outputs = 0;                    // values per prediction
  // How many classes each label of a prediction has: the outputs, or the widths of several heads.
  std::vector<int64_t> classes;
  // Outputs are embeddings: labels are any numbers below `classes`, one per sample or per row.
  bool embeddings = false;
  // Most labels that an embedding may have: integers that a float represents exactly.
  static constexpr int64_t kMaxLabels = int64_t{1} << 24;
  int64_t labels() const { return rows * static_cast<int64_t>(classes.size()); }
  bool takes(int64_t each) const { return each == labels() || (embeddings && each == 1); }
  int64_t classes_of(size_t label) const { return classes[label % classes.size()]; }
};

// The arrays of further inputs. Errors: one is not there; a file of one array.
Result<std::vector<ArrayView>> find_more(ArrayFile& file, const InputSchema& schema,
                                         const std::string& path);
// Into a data set whose first input is there already: [samples, sample].
Status set_more(const std::vector<ArrayView>& arrays, const InputSchema& schema, Dataset& data);
// Errors: a network of several inputs; `what` holds samples of one.
Status one_input(const InputSchema& schema, std::string_view what, const std::string& path);

}  // namespace loom::core
