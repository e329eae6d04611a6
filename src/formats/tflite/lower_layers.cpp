// Convolutions, pools, products and operators that enlarge images. See lower.hpp.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kSame = 0, kValid = 1;
constexpr int64_t kMaxExtent = int64_t{1} << 30;

// The place of the input that output i shows, in float as the interpreter computes it.
int64_t nearest_index(int64_t i, int64_t from, int64_t to, bool corners, bool centers) {
  const float scale = corners && to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                        : static_cast<float>(from) / static_cast<float>(to);
  const float at = (static_cast<float>(i) + (centers ? 0.5f : 0.0f)) * scale;
  const float taken = corners ? std::round(at) : std::floor(at);
  return std::clamp(static_cast<int64_t>(taken), int64_t{0}, from - 1);
}

}  // namespace

// A window that slides over the positions of an image. padding: TFLite's enum. If SAME adds an odd
// number, the larger part is at the end.
TfliteGraph::Window TfliteGraph::window(int64_t height, int64_t width, List kernel, List stride,
                                        List dilation, int64_t padding) {
  Window w;
  if (padding != kSame && padding != kValid) refuse("a padding that is not known");
  w.pads.assign(4, 0);
  const int64_t extents[] = {height, width};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t k = kernel[i], s = stride[i], d = dilation[i];
    if (k < 1 || s < 1 || d < 1 || k > kMaxExtent || s > kMaxExtent || d > kMaxExtent)
      refuse("kernels, strides or dilations below 1");
    if (failed()) return w;
    const int64_t covered = (k - 1) * d + 1;
    const int64_t have = padding == kSame ? extents[i] : extents[i] - covered + 1;
    if (have < 1) refuse("a kernel that is larger than its input");
    const int64_t out = (have + s - 1) / s;
    if (padding == kSame) {
      const int64_t all = std::max<int64_t>((out - 1) * s + covered - extents[i], 0);
      w.pads[i] = all / 2;
      w.pads[i + 2] = all - all / 2;
    }
    w.out.push_back(out);
  }
  w.kernel = std::move(kernel);
  w.stride = std::move(stride);
  w.dilation = std::move(dilation);
  return w;
}

void TfliteGraph::conv() {
  const List& x = dims(0);
  const List& k = dims(1);
  if (x.size() != 4 || k.size() != 4) return refuse("needs an image with four axes");
  if (k[3] < 1 || x[3] % k[3] != 0)
    return refuse("weights that do not fit the channels of its input");
  const Window w = window(x[1], x[2], {k[1], k[2]}, {integer_option(2), integer_option(1)},
                          {integer_option(5), integer_option(4)}, integer_option(0));
  if (failed()) return;
  convolve(in(1, Order::first), k[0], x[3] / k[3], w, integer_option(3));
}

// A channel of the output for each channel of the input and each of its multiples.
void TfliteGraph::depthwise() {
  const List& x = dims(0);
  const List& k = dims(1);
  if (x.size() != 4 || k.size() != 4 || k[0] != 1) return refuse("needs an image with four axes");
  if (x[3] < 1 || k[3] % x[3] != 0)
    return refuse("weights that do not fit the channels of its input");
  const Window w = window(x[1], x[2], {k[1], k[2]}, {integer_option(2), integer_option(1)},
                          {integer_option(6), integer_option(5)}, integer_option(0));
  if (failed()) return;
  convolve(moved(in(1), {3, 0, 1, 2}), k[3], x[3], w, integer_option(4));
}

void TfliteGraph::convolve(Name weights, int64_t filters, int64_t groups, const Window& w,
                           int64_t function) {
  const List& x = dims(0);
  Names inputs = {in(0, Order::first), weights};
  if (has(2)) inputs.push_back(bias(2, filters));
  Name y = add("Conv", inputs,
               {list_of("kernel_shape", w.kernel),
                list_of("strides", w.stride),
                list_of("dilations", w.dilation),
                list_of("pads", w.pads),
                {"group", groups}});
  y = activated(y, function);
  define(0, y, {x[0], w.out[0], w.out[1], filters}, Order::first);
}

// The shape of the output is given: it tells how much the other convolution would have padded.
void TfliteGraph::transpose_conv() {
  const List out = integers(0);
  const List& k = dims(1);
  const List& x = dims(2);
  if (x.size() != 4 || k.size() != 4 || out.size() != 4)
    return refuse("needs an image with four axes");
  if (out[0] != x[0] || out[3] != k[0] || x[3] != k[3])
    return refuse("weights or a shape that do not fit its input");
  if (out[1] < 1 || out[2] < 1 || out[1] > kMaxExtent || out[2] > kMaxExtent)
    return refuse("a shape that cannot be");
  const Window w = window(out[1], out[2], {k[1], k[2]}, {integer_option(2), integer_option(1)},
                          {1, 1}, integer_option(0));
  if (failed()) return;
  if (w.out != List{x[1], x[2]}) return refuse("a shape that does not fit its input");
  List pads(4, 0), extra(2, 0);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t whole_extent = (x[i + 1] - 1) * w.stride[i] + w.kernel[i];
    const int64_t over = whole_extent - out[i + 1];
    pads[i] = std::max<int64_t>(over, 0) / 2;
    pads[i + 2] = std::max<int64_t>(over, 0) - pads[i];
    extra[i] = std::max<int64_t>(-over, 0);
  }
  Names inputs = {in(2, Order::first), moved(in(1), {3, 0, 1, 2})};
  if (has(3)) inputs.push_back(bias(3, out[3]));
  Name y = add("ConvTranspose", inputs,
               {list_of("kernel_shape", w.kernel), list_of("strides", w.stride),
                list_of("pads", pads), list_of("output_padding", extra)});
  y = activated(y, integer_option(3));
  define(0, y, out, Order::first);
}

// L2_POOL_2D is the root of the mean of squares.
void TfliteGraph::pool() {
  const List& x = dims(0);
  if (x.size() != 4) return refuse("needs an image with four axes");
  const Window w = window(x[1], x[2], {integer_option(4), integer_option(3)},
                          {integer_option(2), integer_option(1)}, {1, 1}, integer_option(0));
  if (failed()) return;
  Name y = in(0, Order::first);
  const bool roots = op_->code == kL2Pool;
  if (roots) y = add("Mul", {y, y});
  y = add(
      op_->code == kMaxPool ? "MaxPool" : "AveragePool", {y},
      {list_of("kernel_shape", w.kernel), list_of("strides", w.stride), list_of("pads", w.pads)});
  if (roots) y = add("Sqrt", {y});
  y = activated(y, integer_option(5));
  define(0, y, {x[0], w.out[0], w.out[1], x[3]}, Order::first);
}

// Rows of as many values as the weights have columns, for any order of the axes of the input.
void TfliteGraph::fully_connected() {
  const List& x = dims(0);
  const List& k = dims(1);
  if (k.size() != 2 || k[1] < 1 || x.empty()) return refuse("weights that are not a matrix");
  if (integer_option(1) != 0) return refuse("weights in an order of their own");
  if (count_of(x) % k[1] != 0 || (flag(2) && x.back() != k[1]))
    return refuse("weights that do not fit its input");
  Name y = in(0);
  List out = {count_of(x) / k[1], k[0]};
  if (flag(2)) {
    out = x;
    out.back() = k[0];
  } else if (x != List{out[0], k[1]}) {
    y = shaped(y, {out[0], k[1]});
  }
  const bool gemm = out.size() == 2;
  Names inputs = {y, gemm ? in(1) : moved(in(1), {1, 0})};
  Name added = kNone;
  if (has(2)) added = bias(2, k[0]);
  if (gemm) {
    if (added != kNone) inputs.push_back(added);
    y = add("Gemm", inputs, {{"transB", 1}});
  } else {
    y = add("MatMul", inputs);
    if (added != kNone) y = add("Add", {y, added});
  }
  y = activated(y, integer_option(0));
  define(0, y, out);
}

void TfliteGraph::batch_matmul() {
  Names inputs;
  List dims_of[2];
  for (size_t i = 0; i < 2; ++i) {
    List& have = dims_of[i];
    have = dims(i);
    if (have.size() < 2) return refuse("is read of two axes and more");
    inputs.push_back(in(i));
    if (!flag(i)) continue;
    List order;
    for (size_t k = 0; k < have.size(); ++k) order.push_back(static_cast<int64_t>(k));
    std::swap(order[order.size() - 2], order.back());
    std::swap(have[have.size() - 2], have.back());
    inputs[i] = moved(inputs[i], order);
  }
  const int64_t rows = dims_of[0][dims_of[0].size() - 2], columns = dims_of[1].back();
  if (dims_of[0].back() != dims_of[1][dims_of[1].size() - 2])
    return refuse("matrices that do not fit each other");
  for (List& have : dims_of) have.resize(have.size() - 2);
  List out = broadcast(dims_of[0], dims_of[1]);
  out.push_back(rows);
  out.push_back(columns);
  define(0, add("MatMul", inputs), out);
}

// Places by the interpreter's own arithmetic; where that is every place as often as any other, a
// Resize says it shorter.
TfliteGraph::Name TfliteGraph::nearest(Name x, const List& from, const List& to) {
  bool plain = true;
  List indices[2];
  for (size_t i = 0; i < 2; ++i) {
    if (to[i] > 65536) refuse("an extent that cannot be");
    if (failed()) return kNone;
    for (int64_t k = 0; k < to[i]; ++k) {
      indices[i].push_back(nearest_index(k, from[i], to[i], flag(0), flag(1)));
      plain = plain && to[i] % from[i] == 0 && indices[i].back() == k / (to[i] / from[i]);
    }
  }
  if (plain) {
    const float scales[] = {1, 1, static_cast<float>(to[0] / from[0]),
                            static_cast<float>(to[1] / from[1])};
    const Name by = keep(onnx_tensor("", {4}, std::span<const float>(scales)));
    return add("Resize", {x, kNone, by},
               {text_of("mode", "nearest"), text_of("coordinate_transformation_mode", "asymmetric"),
                text_of("nearest_mode", "floor")});
  }
  for (size_t i = 0; i < 2; ++i) {
    x = gather_at(x, indices[i], static_cast<int64_t>(i) + 2);
  }
  return x;
}

void TfliteGraph::resize() {
  const List& x = dims(0);
  const List to = integers(1);
  if (x.size() != 4 || to.size() != 2 || to[0] < 1 || to[1] < 1)
    return refuse("needs an image, and a height and a width");
  const bool linear = op_->code == kResizeBilinear;
  const bool corners = flag(linear ? 2 : 0), centers = flag(linear ? 3 : 1);
  if (linear && corners && centers) return refuse("align_corners beside half_pixel_centers");
  Name y = in(0, Order::first);
  if (!linear) {
    y = nearest(y, {x[1], x[2]}, to);
  } else {
    // One place alone is the first: ONNX's align_corners says so, and in its other ways it is the
    // same.
    const std::string_view way = corners ? "align_corners" : centers ? "half_pixel" : "asymmetric";
    y = add("Resize", {y, kNone, kNone, list({x[0], x[3], to[0], to[1]})},
            {text_of("mode", "linear"), text_of("coordinate_transformation_mode", way)});
  }
  define(0, y, {x[0], to[0], to[1], x[3]}, Order::first);
}

void TfliteGraph::blocks() {
  const List& x = dims(0);
  const int64_t b = integer_option(0);
  const bool to_space = op_->code == kDepthToSpace;
  if (x.size() != 4 || b < 1 || b > 4096) return refuse("needs an image, and blocks of 1 and more");
  if (to_space ? x[3] % (b * b) != 0 : (x[1] % b != 0 || x[2] % b != 0))
    return refuse("blocks that do not divide its input");
  Name y = in(0, Order::first);
  y = add(to_space ? "DepthToSpace" : "SpaceToDepth", {y}, {{"blocksize", b}});
  const List out = to_space ? List{x[0], x[1] * b, x[2] * b, x[3] / (b * b)}
                            : List{x[0], x[1] / b, x[2] / b, x[3] * b * b};
  define(0, y, out, Order::first);
}

}  // namespace loom::core
