// Values that the file holds: dense or sparse, of any width, as the numbers that they stand for.
// See lower.hpp.
#include <algorithm>
#include <cstring>

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxSparseAxes = 8;

// Walks the axes of a sparse tensor in the order in which they are stored. Gives each stored value
// its index in the dense tensor.
class SparseWalk {
 public:
  SparseWalk(const TfliteTensor& t, const TfliteSparsity& s) : t_(t), s_(s) {}

  // The places of all stored values; false: the file contradicts itself.
  bool run(size_t stored, std::vector<int64_t>& indices) {
    if (!prepare()) return false;
    stored_ = stored;
    left_ = (count_of(t_.dims) + 1) * static_cast<int64_t>(s_.order.size() + 1);
    places_ = &indices;
    at_.assign(s_.order.size(), 0);
    return axis(0, 0) && indices.size() == stored;
  }

 private:
  // Extents of the stored axes: those of the tensor cut into blocks, then those of the blocks.
  bool prepare() {
    const size_t rank = t_.dims.size(), all = s_.order.size();
    if (rank == 0 || all != rank + s_.blocks.size() || s_.axes.size() != all ||
        all > kMaxSparseAxes)
      return false;
    std::vector<bool> visited(all, false);
    extents_.assign(t_.dims.begin(), t_.dims.end());
    extents_.resize(all, 1);
    block_.assign(rank, 1);
    for (size_t level = 0; level < all; ++level) {
      const int64_t which = s_.order[level];
      if (which < 0 || which >= static_cast<int64_t>(all) || visited[static_cast<size_t>(which)])
        return false;
      visited[static_cast<size_t>(which)] = true;
      if (which < static_cast<int64_t>(rank)) continue;
      const int64_t cut = s_.blocks[static_cast<size_t>(which) - rank];
      const int64_t extent = s_.axes[level].extent;
      if (cut < 0 || cut >= static_cast<int64_t>(rank) || extent < 1 || s_.axes[level].sparse ||
          block_[static_cast<size_t>(cut)] != 1)
        return false;
      if (t_.dims[static_cast<size_t>(cut)] % extent != 0) return false;
      block_[static_cast<size_t>(cut)] = extent;
      extents_[static_cast<size_t>(which)] = extent;
      extents_[static_cast<size_t>(cut)] = t_.dims[static_cast<size_t>(cut)] / extent;
    }
    for (size_t level = 0; level < all; ++level) {
      const TfliteSparseAxis& a = s_.axes[level];
      if (!a.sparse && a.extent != extents_[static_cast<size_t>(s_.order[level])]) return false;
    }
    return true;
  }

  bool axis(size_t level, int64_t parent) {
    if (--left_ < 0) return false;
    if (level == s_.order.size()) return leaf();
    const TfliteSparseAxis& a = s_.axes[level];
    int64_t& at = at_[static_cast<size_t>(s_.order[level])];
    if (!a.sparse) {
      for (at = 0; at < a.extent; ++at) {
        if (!axis(level + 1, parent * a.extent + at)) return false;
      }
      return true;
    }
    if (parent < 0 || parent + 1 >= static_cast<int64_t>(a.segments.size())) return false;
    const int64_t first = a.segments[static_cast<size_t>(parent)];
    const int64_t last = a.segments[static_cast<size_t>(parent) + 1];
    if (first < 0 || last < first || last > static_cast<int64_t>(a.indices.size())) return false;
    for (int64_t i = first; i < last; ++i) {
      at = a.indices[static_cast<size_t>(i)];
      if (at < 0 || at >= extents_[static_cast<size_t>(s_.order[level])]) return false;
      if (!axis(level + 1, i)) return false;
    }
    return true;
  }

  bool leaf() {
    if (places_->size() >= stored_) return false;
    const size_t rank = t_.dims.size();
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) {
      int64_t inside = 0;
      for (size_t k = 0; k < s_.blocks.size(); ++k) {
        if (s_.blocks[k] == static_cast<int64_t>(i)) inside = at_[rank + k];
      }
      offset = offset * t_.dims[i] + at_[i] * block_[i] + inside;
    }
    places_->push_back(offset);
    return true;
  }

  const TfliteTensor& t_;
  const TfliteSparsity& s_;
  std::vector<int64_t> extents_, block_, at_;
  std::vector<int64_t>* places_ = nullptr;
  size_t stored_ = 0;
  int64_t left_ = 0;  // steps: a walk that visits no index twice has no more
};

// Two values of four bits in a byte, the first lowest.
std::vector<std::byte> nibbles(std::span<const std::byte> packed, int64_t count) {
  std::vector<std::byte> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto pair = static_cast<uint8_t>(packed[i / 2]);
    const int four = i % 2 == 0 ? pair & 15 : pair >> 4;
    out[i] = static_cast<std::byte>(four > 7 ? four - 16 : four);
  }
  return out;
}

}  // namespace

// Empty where it failed.
std::vector<std::byte> TfliteGraph::dense(const TfliteTensor& t, size_t bytes) {
  const int64_t count = count_of(t.dims);
  if (count < 1 || count > left_) {
    refuse("a sparse constant that is far too large");
    return {};
  }
  std::vector<int64_t> indices;
  SparseWalk walk(t, *t.sparsity);
  if (t.data.size() % bytes != 0 || !walk.run(t.data.size() / bytes, indices)) {
    fail(bad_file(cat(place_, ": a sparse constant that contradicts itself"), where_));
    return {};
  }
  std::vector<std::byte> out(static_cast<size_t>(count) * bytes);
  for (size_t i = 0; i < indices.size(); ++i)
    std::memcpy(out.data() + static_cast<size_t>(indices[i]) * bytes, t.data.data() + i * bytes,
                bytes);
  return out;
}

// (stored - zero point) * scale, in float as the interpreter does.
OnnxTensor TfliteGraph::decoded(const TfliteTensor& t, const OnnxTensor& stored) {
  const TfliteQuantization& q = *t.quantization;
  const Result<List> codes = onnx_i64(stored);
  if (!codes.ok()) {
    refuse(codes.error().message);
    return {};
  }
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(q.axis) + 1; i < t.dims.size(); ++i) inner *= t.dims[i];
  std::vector<float> values(codes->size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t offset =
        q.scale.size() == 1 ? 0 : (i / static_cast<size_t>(inner)) % q.scale.size();
    values[i] = static_cast<float>((*codes)[i] - q.zero_point[offset]) * q.scale[offset];
  }
  return onnx_tensor("", t.dims, std::span<const float>(values));
}

// as_number: also decodes integers of 32 and 64 bits with a scale, which else are indices and
// extents.
OnnxTensor TfliteGraph::constant_of(int64_t tensor, bool as_number) {
  const TfliteTensor& t = file_.tensors[static_cast<size_t>(tensor)];
  const bool half = t.type == TfliteType::f16 || t.type == TfliteType::bf16;
  const bool four = t.type == TfliteType::i4;
  const int64_t count = count_of(t.dims);
  OnnxTensor out;
  out.shape = t.dims;
  out.type = four ? OnnxType::i8 : onnx_type_of(t.type);
  if (half) out.type = t.type == TfliteType::f16 ? OnnxType::f16 : OnnxType::bf16;
  const bool wide = t.type == TfliteType::i32 || t.type == TfliteType::i64;
  const bool steps = t.quantization && (as_number || !wide) && out.type != OnnxType::boolean &&
                     out.type != OnnxType::f32;
  if (out.type == OnnxType::undefined || count < 0 || (four && t.sparsity != nullptr)) {
    refuse(cat("reads a constant of type ", tflite_type_name(t.type), " that is not read"));
    return {};
  }
  if (half || four || steps || t.sparsity != nullptr) left_ -= count;
  if (left_ < 0) refuse("the model copies its values too often");
  if (failed()) return {};
  out.raw = t.data;
  if (t.sparsity != nullptr) {
    out.own = dense(t, onnx_type_bytes(out.type));
  } else if (four) {
    out.own = nibbles(t.data, count);
  }
  if (failed() || (!half && !steps)) return out;
  if (steps) return decoded(t, out);
  const Result<std::vector<float>> values = onnx_f32(out);
  if (values.ok()) return onnx_tensor("", t.dims, std::span<const float>(*values));
  refuse(values.error().message);
  return {};
}

// Whole numbers of a bias have a scale: that of the input times those of the weights.
TfliteGraph::Name TfliteGraph::bias(size_t i, int64_t count) {
  const int64_t tensor = op_->inputs[i];
  if (!file_.tensors[static_cast<size_t>(tensor)].constant) {
    if (dims(i) != List{count}) refuse("a bias that is not one for each channel");
    return in(i);
  }
  OnnxTensor t = constant_of(tensor, true);
  if (t.shape != List{count}) refuse("a bias that is not one for each channel");
  return failed() ? kNone : keep(std::move(t));
}

}  // namespace loom::core
