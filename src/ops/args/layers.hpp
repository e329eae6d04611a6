// Ops that are most of a layer: convolutions, pooling and recurrent cells. ops/args.hpp defines the
// letters, ops/operands.hpp the members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// A convolution of up to three axes (absent ones have extent, kernel and stride 1): samples
// [channels][in0][in1][in2] to [filters][out0][out1][out2]. Channels and filters are split into
// `groups`; filter f reads the channels of its group. out[o] reads in[o * stride + k * dilation -
// pad], zeros outside.
struct ConvShape {
  int64_t channels = 1, filters = 1, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t patch() const { return channels / groups * taps(); }
};

// y[B, F*out] = act(conv(x[B, C*in], w) + bias[F]). w is R16 [F, patch]; a row is [C/groups][taps].
// Each output is the rule 2 dot product of its row of w with its patch, zeros included.
struct ConvArgs {
  Tensor x, w, bias, y;
  ConvShape shape;
  Activation activation = Activation::linear;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.w, self.bias);
    writes(f, self.y);
  }
  int64_t work() const { return y.shape.count() * shape.patch() / 2; }
  // The CPU keeps the offset of each k of a patch, two decoded groups of sixteen filters, and
  // samples with their padding; less if a patch or a sample is larger.
  static constexpr int64_t kLongPatch = 1 << 14, kMaxSamples = 1 << 20;
  int64_t scratch() const {
    const int64_t k = shape.patch() < kLongPatch ? shape.patch() : kLongPatch;
    const int64_t values = shape.channels / shape.groups * shape.in_positions();
    const int64_t samples = values < kMaxSamples / 6 ? values * 6 : kMaxSamples;
    return kMatmulScratch + (k + 16) * (w.dtype == DType::f32 ? 1 : 33) * 4 + samples;
  }
};

// dx[B, C*in] (+)= the gradient of conv with respect to x: a transposed convolution of dy[B,
// F*out]. Each output position forms its patch gradient by rule 2 over the filters of the group.
// Patch gradients of one input value are added with the tap ascending, from +0. With bias [C] and
// activation it is the forward pass of ConvTransposed; these exclude accumulate.
struct ConvDxArgs {
  Tensor dy, w, bias, dx;
  ConvShape shape;
  Activation activation = Activation::linear;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.w, self.bias);
    f(self.dx, written(self.accumulate));
  }
  int64_t work() const { return dy.shape.count() * shape.patch() / 2; }
};

// dw[F, patch] (+)= the gradient with respect to w, plain: rule 2 over samples and, inside a
// sample, output positions.
struct ConvDwArgs {
  Tensor x, dy, dw;
  ConvShape shape;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.dy);
    f(self.dw, written(self.accumulate));
  }
  int64_t work() const { return dy.shape.count() * shape.patch() / 2; }
};

enum class PoolKind : uint8_t { max, average, lp };
// strided: as in a convolution, without taps outside of the input. adaptive: output o of an axis
// reads inputs floor(o in / out) to ceil((o + 1) in / out) - 1; kernel, stride, pad and dilation
// are ignored.
enum class PoolWindows : uint8_t { strided, adaptive };

// Pooling: y[B, C*out] from windows of each channel of x[B, C*in]. Channels, filters and groups of
// the shape are all C. `out` accounts for padding at the end and for rounding up. The taps of a
// window are counted with the last axis fastest:
//   max      the first of the largest values; a NaN is larger, the last NaN largest. ids (i32,
//            as y; may be empty) is its index inside of the channel. No tap: -inf, -1.
//   average  rule 2 over x * 1, divided by the number of taps inside of the input; with include_pad
//            by those inside of the input extended by `pad` before and `pad_end` after. No tap: 0.
//   lp       p = 1: rule 2 over |x| * 1; p = 2: the square root of rule 2 over x * x.
struct PoolArgs {
  Tensor x, y, ids;
  ConvShape shape;
  PoolKind kind = PoolKind::max;
  PoolWindows windows = PoolWindows::strided;
  bool include_pad = false;
  int p = 2;
  int64_t pad_end[3] = {0, 0, 0};

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.y, self.ids);
  }
  int64_t work() const {
    return windows == PoolWindows::strided ? 2 * y.shape.count() * shape.taps()
                                           : 2 * x.shape.count() + y.shape.count();
  }
};

// dx[B, C*in]: each input value adds up, from +0 and with the outputs ascending, the gradients of
// the windows that contain it. max: dy if ids names it; average: dy / divisor; lp: dy * sign(x), or
// dy * (x / y), 0 if y is 0. lp reads x and y, max reads ids.
struct PoolDxArgs {
  Tensor dy, x, y, ids, dx;
  ConvShape shape;
  PoolKind kind = PoolKind::max;
  PoolWindows windows = PoolWindows::strided;
  bool include_pad = false;
  int p = 2;
  int64_t pad_end[3] = {0, 0, 0};

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.x, self.y, self.ids);
    writes(f, self.dx);
  }
  int64_t work() const {
    const bool taps = windows == PoolWindows::strided && kind != PoolKind::max;
    return 2 * dx.shape.count() + 2 * dy.shape.count() * (taps ? shape.taps() : 2);
  }
};

// One step of an LSTM (Hochreiter and Schmidhuber, 1997; forget gate of Gers, 1999). gates [B,4H]
// hold the sums of i|f|g|o; `more` [B,4H], if present, is added. acts [B,4H] = sigmoid, sigmoid,
// tanh, sigmoid of them; c = f c_before + i g; h = o tanh(c). c_before may be empty: zeros. With
// h_before [B,H] and w [4H,H] (R16), more = h_before . w^T as in matmul. That form is for the
// recorder, which decomposes it unless the backend supports it (Ops::lstm_products).
struct LstmCellArgs {
  Tensor gates, c_before, acts, c, h;
  Tensor more, h_before, w;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.gates, self.c_before, self.more, self.h_before, self.w);
    writes(f, self.acts, self.c, self.h);
  }
  int64_t work() const { return (4 + h_before.cols() / 2) * gates.shape.count(); }
};

// dc_next and dh may be empty (zeros). dgates [B,4H], dc_before [B,H].
struct LstmCellDxArgs {
  Tensor acts, c_before, c, dh, dc_next, dgates, dc_before;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.acts, self.c_before, self.c, self.dh, self.dc_next);
    writes(f, self.dgates, self.dc_before);
  }
  int64_t work() const { return 2 * acts.shape.count(); }
};

// One step of a GRU (Cho et al., 2014; reset after the product, as in cuDNN and PyTorch). gx [B,3H]
// are the sums from the input, gh [B,3H] those from the state, both r|z|n. r = sigmoid(gx_r +
// gh_r), z likewise, n = tanh(gx_n + r gh_n), h = (1 - z) n + z h_before. acts [B,3H] = r|z|n.
struct GruCellArgs {
  Tensor gx, gh, h_before, acts, h;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.gx, self.gh, self.h_before);
    writes(f, self.acts, self.h);
  }
  int64_t work() const { return 4 * gx.shape.count(); }
};

struct GruCellDxArgs {
  Tensor acts, gh, h_before, dh, dgx, dgh, dh_before;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.acts, self.gh, self.h_before, self.dh);
    writes(f, self.dgx, self.dgh, self.dh_before);
  }
  int64_t work() const { return 2 * acts.shape.count(); }
};

}  // namespace loom::core
