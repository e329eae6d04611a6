// Ops that are most of a layer: convolutions and recurrent cells.
// ops/args.hpp says what the letters mean, ops/operands.hpp what a struct tells about itself.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// A convolution of up to three axes (absent ones have extent, kernel and stride 1): samples
// [channels][in0][in1][in2] to [filters][out0][out1][out2]. Channels and filters are cut into
// `groups`; filter f sees the channels of its own. out[o] takes in[o * stride + k * dilation -
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

// y[B, F*out] = act(conv(x[B, C*in], w) + bias[F]). w R16 [F, patch], a row being [C/groups][taps].
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
};

// dx[B, C*in] (+)= the gradient of conv with respect to x: a transposed convolution of dy[B,
// F*out]. For each output position the patch gradient, rule 2 over the filters of the group, is
// formed; the ones that meet at an input value are added with the tap ascending, from +0. With bias
// [C] and activation, which may not be combined with accumulate, this is the forward pass of
// ConvTransposed.
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

// One step of an LSTM (Hochreiter and Schmidhuber, 1997; forget gate of Gers, 1999). gates [B,4H]
// hold the sums of i|f|g|o, to which `more` [B,4H] is added where there is one. acts [B,4H] =
// sigmoid, sigmoid, tanh, sigmoid of them; c = f c_before + i g; h = o tanh(c). c_before may be
// empty: zeros. With h_before [B,H] and w [4H,H] (R16), more = h_before . w^T as matmul has it.
// That form is for the recorder, which takes it apart unless the backend has it
// (Ops::lstm_products).
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

// One step of a GRU (Cho et al., 2014; reset after the product, as cuDNN and PyTorch). gx [B,3H] =
// sums from the input, gh [B,3H] = sums from the state, both r|z|n. r = sigmoid(gx_r + gh_r), z
// likewise, n = tanh(gx_n + r gh_n), h = (1 - z) n + z h_before. acts [B,3H] = r|z|n.
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
