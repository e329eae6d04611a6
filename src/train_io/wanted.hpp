// What a network takes and gives, as readers of samples ask for it. Private to the room.
#pragma once

#include "grid/builders.hpp"

namespace loom::core {

struct Wanted {
  Shape sample;
  int64_t values = 0;  // of one input
  bool ids = false;    // the input are ids below `vocab`
  int64_t vocab = 0;
  int64_t rows = 0;     // predictions per sample
  int64_t outputs = 0;  // values per prediction
  // How many classes each label of a prediction has: the outputs, or the widths of several heads.
  std::vector<int64_t> classes;
  // Outputs are embeddings: labels are any numbers below `classes`, one per sample or per row.
  bool embeddings = false;
  // Most labels that an embedding may have: whole numbers that a float holds.
  static constexpr int64_t kMostLabels = int64_t{1} << 24;
  int64_t labels() const { return rows * static_cast<int64_t>(classes.size()); }
  bool takes(int64_t each) const { return each == labels() || (embeddings && each == 1); }
  int64_t classes_of(size_t label) const { return classes[label % classes.size()]; }
};

}  // namespace loom::core
