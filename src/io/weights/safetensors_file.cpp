#include "io/weights/safetensors_file.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/text.hpp"

namespace loom::core {

SafeTensorsFile::SafeTensorsFile(SafeTensors tensors) : tensors_(std::move(tensors)) {
  const std::vector<SafeTensor>& all = tensors_.tensors();
  order_.resize(all.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  const auto begin_of = [&](size_t i) {
    return std::make_tuple(all[i].file, all[i].file_offset, all[i].data.size(), i);
  };
  std::sort(order_.begin(), order_.end(),
            [&](size_t a, size_t b) { return begin_of(a) < begin_of(b); });
  entries_.reserve(all.size());
  for (const size_t i : order_) {
    const SafeTensor& t = all[i];
    entries_.push_back(
        {t.name, std::string(safe_dtype_name(t.dtype)), t.shape, t.file_offset, t.data.size()});
  }
}

Result<std::unique_ptr<TensorFile>> SafeTensorsFile::open(const FileRef& path) {
  LOOM_ASSIGN(SafeTensors tensors, SafeTensors::open(path));
  return std::unique_ptr<TensorFile>(std::make_unique<SafeTensorsFile>(std::move(tensors)));
}

Status SafeTensorsFile::to_f32(size_t index, int64_t first, int64_t count, float* out) const {
  if (index >= entries_.size()) {
    return make_error(Code::out_of_range, cat("tensor ", index, " of ", entries_.size()));
  }
  return SafeTensors::to_f32(at(index), first, count, out);
}

std::span<const std::byte> SafeTensorsFile::bytes(size_t index) const {
  return index < entries_.size() ? at(index).data : std::span<const std::byte>();
}

void SafeTensorsFile::release(size_t index) const {
  if (index < entries_.size()) tensors_.release(at(index));
}

}  // namespace loom::core
