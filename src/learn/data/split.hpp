// Holding samples out: which samples of a data set train and which validate. The split is a
// function of the samples, the share and the seed alone, so a later run finds the same rows.
#pragma once

#include "learn/data/dataset.hpp"

namespace loom::core {

struct SplitSpec {
  double share = 0;  // of the samples that train, in (0, 1)
  uint64_t seed = 1;
  bool shuffle = true;  // false: the first samples train, the last validate
  // Above 0: `share` says nothing; the samples are split into so many folds, and those of fold
  // `fold`, from 0, validate. Folds differ by at most one sample, and where every sample has one
  // label and they are shuffled, by at most one of each class; else they are pieces of the order
  // there is.
  int64_t folds = 0, fold = 0;
};

struct SplitDataset {
  Dataset train, validation;  // each in the order of the data set
  bool by_class = false;      // every class is in both in the same share, as far as it can be
};
// round(share * samples) samples train, the rest validates; both must have some. The split is
// random. If every sample has one label, each class is split by itself: share * (samples of the
// class), rounded down. The remainder goes to the classes that lost most by rounding.
// Memory that a split of so many samples takes for their order and the lists of both parts.
constexpr uint64_t split_list_bytes(int64_t samples) {
  return 2 * sizeof(int64_t) * static_cast<uint64_t>(samples);
}
// The training samples stay in place; the validation samples are copied.
Result<SplitDataset> split_dataset(Dataset data, const SplitSpec& spec);

}  // namespace loom::core
