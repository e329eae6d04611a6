// Boxes: RoiAlign and NonMaxSuppression. Formulas: onnx.ai; He et al., Mask R-CNN, 2017.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {
namespace {

// The four pixels around a place and their weights; a place outside has none.
struct Corners {
  int64_t at[4] = {};
  double weight[4] = {};
};
Corners corners_of(double y, double x, int64_t height, int64_t width) {
  Corners c;
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width))
    return c;
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  int64_t bottom = top + 1, right = left + 1;
  if (top >= height - 1) top = bottom = height - 1, y = static_cast<double>(top);
  if (left >= width - 1) left = right = width - 1, x = static_cast<double>(left);
  const double down = y - static_cast<double>(top), over = x - static_cast<double>(left);
  const int64_t at[4] = {top * width + left, top * width + right, bottom * width + left,
                         bottom * width + right};
  const double weight[4] = {(1 - down) * (1 - over), (1 - down) * over, down * (1 - over),
                            down * over};
  std::ranges::copy(at, c.at);
  std::ranges::copy(weight, c.weight);
  return c;
}

struct Align {
  int64_t rows, cols, samples;
  double scale, shift;
  bool largest, at_least_one;
};

template <class T>
double bin_value(const Align& a, const T* image, int64_t height, int64_t width, const double* roi,
                 int64_t bin) {
  const double x0 = roi[0] * a.scale - a.shift, y0 = roi[1] * a.scale - a.shift;
  double w = roi[2] * a.scale - a.shift - x0, h = roi[3] * a.scale - a.shift - y0;
  if (a.at_least_one) w = std::max(w, 1.0), h = std::max(h, 1.0);
  const double bin_h = h / static_cast<double>(a.rows), bin_w = w / static_cast<double>(a.cols);
  const auto count = [&](double extent) {
    constexpr double kMax = 4096;
    return a.samples > 0 ? a.samples
                         : static_cast<int64_t>(std::clamp(std::ceil(extent), 0.0, kMax));
  };
  const int64_t down = count(bin_h), over = count(bin_w);
  const double top = y0 + static_cast<double>(bin / a.cols) * bin_h;
  const double left = x0 + static_cast<double>(bin % a.cols) * bin_w;
  double sum = 0, most = 0;
  for (int64_t i = 0; i < down * over; ++i) {
    const double y =
        top + (static_cast<double>(i / over) + 0.5) * bin_h / static_cast<double>(down);
    const double x =
        left + (static_cast<double>(i % over) + 0.5) * bin_w / static_cast<double>(over);
    const Corners c = corners_of(y, x, height, width);
    for (int k = 0; k < 4; ++k) {
      const double v = c.weight[k] * static_cast<double>(image[c.at[k]]);
      sum += v;
      most = i == 0 && k == 0 ? v : std::max(most, v);
    }
  }
  if (a.largest) return most;
  return sum / static_cast<double>(std::max<int64_t>(1, down * over));
}

Status roi_align(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value rois, c.as(1, OnnxType::f64));
  LOOM_ASSIGN(const Dims batch, c.int_list(2));
  if (x.rank() != 4 || rois.rank() != 2 || rois.dims[1] != 4 || x.count() == 0 ||
      static_cast<int64_t>(batch.size()) != rois.dims[0])
    return c.bad("takes [N, C, H, W], boxes and their samples");
  const std::string mode = c.text("mode", "avg");
  const bool half = c.text("coordinate_transformation_mode",
                           c.opset >= 16 ? "half_pixel" : "output_half_pixel") == "half_pixel";
  if (mode != "avg" && mode != "max") return c.bad("unknown mode");
  const Align a{c.integer("output_height", 1),
                c.integer("output_width", 1),
                c.integer("sampling_ratio", 0),
                c.real("spatial_scale", 1),
                half ? 0.5 : 0,
                mode == "max",
                !half};
  if (a.samples < 0 || a.samples > 4096) return c.bad("invalid sampling_ratio");
  LOOM_ASSIGN(Value y, c.make(x.type, {rois.dims[0], x.dims[1], a.rows, a.cols}));
  const int64_t bins = a.rows * a.cols, size = x.dims[2] * x.dims[3];
  for (const int64_t n : batch) {
    if (n < 0 || n >= x.dims[0]) return c.bad(cat("sample ", n, " of ", x.dims[0]));
  }
  with_real(x.type, [&]<class T>(T) {
    c.parallel(rois.dims[0] * x.dims[1], 100.0 * static_cast<double>(bins),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const int64_t box = r / x.dims[1], n = batch[static_cast<size_t>(box)];
                   const T* image = x.data<T>() + (n * x.dims[1] + r % x.dims[1]) * size;
                   for (int64_t i = 0; i < bins; ++i)
                     y.data<T>()[r * bins + i] = static_cast<T>(bin_value(
                         a, image, x.dims[2], x.dims[3], rois.data<double>() + box * 4, i));
                 }
               });
  });
  return c.give_as(y, c.value(0).type);
}

struct Box {
  float top, left, bottom, right;
};
Box box_of(const float* p, bool centered) {
  if (centered) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}
bool overlap(const Box& a, const Box& b, float limit) {
  const float h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float w = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (h <= 0 || w <= 0) return false;
  const float both = h * w, first = (a.bottom - a.top) * (a.right - a.left);
  const float second = (b.bottom - b.top) * (b.right - b.left);
  return both > limit * (first + second - both);
}

Status non_max_suppression(const Call& c) {
  LOOM_ASSIGN(const Value boxes, c.as(0, OnnxType::f32));
  LOOM_ASSIGN(const Value scores, c.as(1, OnnxType::f32));
  LOOM_ASSIGN(const int64_t most, c.whole_number(2, 0));
  LOOM_ASSIGN(const double overlap_limit, c.number(3, 0));
  LOOM_ASSIGN(const double score_limit, c.number(4, 0));
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dims[2] != 4 ||
      boxes.dims[0] != scores.dims[0] || boxes.dims[1] != scores.dims[2])
    return c.bad("takes boxes [N, B, 4] and scores [N, C, B]");
  const bool centered = c.integer("center_point_box", 0) != 0;
  const int64_t count = boxes.dims[1], classes = scores.dims[1];
  Dims found;
  for (int64_t r = 0; most > 0 && r < scores.dims[0] * classes; ++r) {
    const float* score = scores.data<float>() + r * count;
    const float* box = boxes.data<float>() + r / classes * count * 4;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < count; ++i) {
      if (!c.has(4) || static_cast<double>(score[i]) > score_limit) order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return score[i] > score[j]; });
    std::vector<Box> kept;
    for (const int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= most) break;
      const Box b = box_of(box + i * 4, centered);
      if (std::ranges::any_of(
              kept, [&](const Box& k) { return overlap(k, b, static_cast<float>(overlap_limit)); }))
        continue;
      kept.push_back(b);
      found.insert(found.end(), {r / classes, r % classes, i});
    }
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::i64, {static_cast<int64_t>(found.size()) / 3, 3}));
  std::ranges::copy(found, y.data<int64_t>());
  return c.give(std::move(y));
}

constexpr Operator kBoxes[] = {
    {"", "RoiAlign", roi_align,
     "aaa coordinate_transformation_mode mode output_height output_width sampling_ratio "
     "spatial_scale"},
    {"", "NonMaxSuppression", non_max_suppression, "aa?aaa center_point_box"},
};

}  // namespace

std::span<const Operator> box_operators() {
  return kBoxes;
}

}  // namespace loom::core::evaluate
