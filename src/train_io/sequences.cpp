#include "train_io/sequences.hpp"

#include "base/text.hpp"

namespace loom::core {

Result<Spreading> Spreading::create(std::vector<int32_t> lengths, int64_t most,
                                    const std::string& where) {
  Spreading s;
  s.lengths_ = std::move(lengths);
  s.most_ = most;
  for (size_t i = 0; i < s.lengths_.size(); ++i) {
    const int64_t length = s.lengths_[i];
    if (length < 1 || length > most)
      return bad_file(cat("sample ", i, ": its length is ", length,
                          ", must be from 1 to the ", most, " positions that the network takes"),
                      where);
    s.all_ += length;
    s.longest_ = std::max(s.longest_, length);
  }
  return s;
}

bool Spreading::padded(const ArrayView& array) const {
  const bool room = array.shape.size() > 1 && array.shape[1] >= longest_;
  return !array.shape.empty() && array.shape[0] == samples() && room;
}

// One position each is both, and the same.
bool Spreading::packed(const ArrayView& array) const {
  return !padded(array) && !array.shape.empty() && array.shape[0] == all_;
}

bool Spreading::spreads(const ArrayView& array) const {
  return padded(array) || packed(array);
}

}  // namespace loom::core
