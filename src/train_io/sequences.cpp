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
      return bad_file(cat("sample ", i, ": its length is ", length, ", must be from 1 to the ",
                          most, " positions that the network takes"),
                      where);
    s.all_ += length;
    s.longest_ = std::max(s.longest_, length);
  }
  return s;
}

bool Spreading::padded(const ArrayView& array, int64_t each) const {
  return array.shape.size() > 1 && array.shape[0] == samples() && array.shape[1] >= longest_ &&
         array.count() == samples() * array.shape[1] * each;
}

bool Spreading::spreads(const ArrayView& array, int64_t each) const {
  const bool packed =
      !array.shape.empty() && array.shape[0] == all_ && array.count() == all_ * each;
  return packed || padded(array, each);
}

}  // namespace loom::core
