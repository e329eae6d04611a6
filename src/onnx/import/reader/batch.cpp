// Extents and constants that depend on the size of an open batch. One walk knows them for two
// sizes: an extent that is a multiple of kOpenBatch is the same multiple of kOtherBatch, and a
// constant that differs has Constant::other. As long as both agree with this, the network is the
// same for every size, and the importer need not run again to compare. See importer.hpp.
#include <algorithm>
#include <cmath>

#include "onnx/import/reader/importer.hpp"

namespace loom::core {
namespace {

bool is_multiple(double number) {
  return number != 0 && std::fmod(number, static_cast<double>(kOpenBatch)) == 0;
}

bool holds_batch(const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (is_multiple(static_cast<double>(shape[i]))) return true;
  }
  return false;
}

// Whether a field of the layer may be a number of samples.
bool holds_batch(const LayerConfig& layer) {
  for (size_t i = 0; i < layer.values.size(); ++i) {
    const FieldType type = layer.def->fields[i].type;
    if (type != FieldType::list && is_multiple(layer.values[i].number)) return true;
    if (type == FieldType::list &&
        std::ranges::any_of(layer.list(static_cast<int>(i)), is_multiple))
      return true;
  }
  return std::ranges::any_of(layer.children, [](const LayerConfig& c) { return holds_batch(c); });
}

bool same(const Constant& a, const Constant& b) {
  return a.dims == b.dims && a.type == b.type && a.values == b.values;
}

}  // namespace

int64_t Importer::other_extent(int64_t extent) const {
  return extent % kOpenBatch == 0 ? extent / kOpenBatch * kOtherBatch : extent;
}

std::vector<int64_t> Importer::other_extents(std::vector<int64_t> dims) const {
  for (int64_t& extent : dims) extent = other_extent(extent);
  return dims;
}

bool Importer::follows_batch(const Constant& c) const {
  if (c.other == nullptr) return true;
  Constant want = c;
  want.dims = other_extents(c.dims);
  for (double& v : want.values) {
    if (is_multiple(v)) v = v / kOpenBatch * kOtherBatch;
  }
  return same(want, *c.other);
}

void Importer::note_other(Constant& made, Result<Constant> other) {
  made.other = nullptr;
  if (!other.ok()) {
    depends_on_batch_ = true;
  } else if (!same(made, *other)) {
    other->other = nullptr;
    made.other = std::make_shared<const Constant>(std::move(*other));
  }
}

void Importer::compare_layer(const LayerConfig& layer, std::span<const ItemParam> params,
                             std::span<const Shape> in, std::span<const Shape> out) {
  if (!has_two_batches() || depends_on_batch_) return;
  const auto other = [&](std::span<const Shape> shapes) {
    std::vector<Shape> made(shapes.begin(), shapes.end());
    for (Shape& shape : made) {
      for (int i = 0; i < shape.rank(); ++i) shape[i] = other_extent(shape[i]);
    }
    return made;
  };
  const Result<std::vector<Shape>> again = infer_all(layer, other(in));
  depends_on_batch_ =
      !again.ok() || *again != other(out) || holds_batch(layer) ||
      std::ranges::any_of(params, [](const ItemParam& p) { return holds_batch(p.shape); });
}

}  // namespace loom::core
