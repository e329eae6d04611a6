// The layers a network is made of, as plain values: a struct per kind, with its fields and their
// defaults. Each becomes a Layer, which holds any kind by name; files and other languages know that
// one. A field that is out of range is an Error of the function that makes a network of the layer.
//
// In the shapes below B counts samples, T steps, and [..] is any number of extents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// f of y = f(x). gelu: that with erf.
enum class Activation : uint8_t {
  linear,
  relu,
  leaky_relu,
  relu2,
  silu,
  gelu_tanh,
  gelu,
  tanh,
  sigmoid,
  mish,
  softplus,
  elu,
  hard_swish
};

// Names as descriptions have them: "gelu_erf" is gelu. Errors list what there is.
LOOM_API std::string_view activation_name(Activation activation);
LOOM_API Result<Activation> parse_activation(std::string_view name);

struct LayerField {
  std::string name;
  std::variant<bool, int64_t, double, std::string, std::vector<int64_t>> value;
};

struct Layer {
  std::string type;                // "Dense": one of layer_types()
  std::vector<LayerField> fields;  // those that are left out have their defaults
  std::vector<Layer> children{};   // of Sequential, Residual, Parallel and Graph
  bool disabled = false;           // passes its input on
};
LOOM_API std::vector<std::string> layer_types();

// A number per axis, or one for all axes.
using Axes = std::vector<int64_t>;

// y = f(x W^T + b) over the last extent: [.., in] -> [.., out]. A sample of `in` values in several
// extents counts as one row: [B, C, H, W] -> [B, out].
struct LOOM_API Dense {
  int64_t in = 1, out = 1;
  bool bias = true;
  Activation activation = Activation::linear;
  double soft_cap = 0;  // c > 0: y becomes c tanh(y / c)
  operator Layer() const;
};

// [B, in, L], [B, in, H, W] or [B, in, D, H, W] -> the same with `out` channels, each axis being
// (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1 long. groups = in: depthwise.
template <int kAxes>
struct LOOM_API Conv {
  int64_t in = 1, out = 1;
  Axes kernel = {3}, stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::linear;
  operator Layer() const;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

// The gradient of Conv with respect to its input as a layer: each axis is
// (L - 1) stride - 2 padding + dilation (kernel - 1) + 1 + output_padding long.
template <int kAxes>
struct LOOM_API ConvTransposed {
  int64_t in = 1, out = 1;
  Axes kernel = {3}, stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::linear;
  Axes output_padding = {0};
  operator Layer() const;
};
using ConvTransposed1d = ConvTransposed<1>;
using ConvTransposed2d = ConvTransposed<2>;
using ConvTransposed3d = ConvTransposed<3>;

// [B, T, in] -> [B, T, hidden], or the last state [B, hidden] without return_sequence. As nodes of
// a Graph: with initial_state they read the state that they begin with behind x, [B, hidden], an
// Lstm h and c; with final_state they give the last one so behind their output.
struct LOOM_API Rnn {
  int64_t in = 1, hidden = 1;
  bool return_sequence = true;
  Activation activation = Activation::tanh;
  bool initial_state = false, final_state = false;
  bool state_bias = false;  // a second bias, of the product with the state
  operator Layer() const;
};
struct LOOM_API Lstm {
  int64_t in = 1, hidden = 1;
  bool return_sequence = true;
  bool initial_state = false, final_state = false;
  bool state_bias = false;  // a second bias, of the product with the state
  operator Layer() const;
};
struct LOOM_API Gru {
  int64_t in = 1, hidden = 1;
  bool return_sequence = true;
  bool initial_state = false, final_state = false;
  operator Layer() const;
};

// Rows of a table that ids name: [B, T] -> [B, T, width].
struct LOOM_API Embedding {
  int64_t vocab = 1, width = 1;
  int64_t padding_id = -1;  // its row is not trained; -1: none
  Activation activation = Activation::linear;
  bool sparse = false;    // only rows that a batch names are updated
  double scale = 1;       // factor of the rows
  int64_t positions = 0;  // learned ones: rows of a second table, added by place; 0: none
  operator Layer() const;
};

// Attention over [B, T, width]; grouped queries where kv_heads < heads (Ainslie et al., 2023).
struct LOOM_API MultiHeadAttention {
  int64_t width = 1, heads = 1;
  int64_t kv_heads = 0;  // 0: heads
  int64_t head_dim = 0;  // 0: width / heads
  bool causal = true;
  int64_t window = 0;                   // positions seen; 0: all
  bool rope = true;                     // rotary positions (Su et al., 2021)
  double rope_theta = 10000;            // base of their frequencies
  bool bias = false, out_bias = false;  // of q, k, v; of the output
  bool qk_norm = false;                 // RMS norm of every head of q and k
  double scale = 0;                     // of the scores; 0: 1 / sqrt(head_dim)
  double soft_cap = 0;                  // c > 0: scores s become c tanh(s / c)
  std::vector<LayerField> more = {};    // further fields by name: rope_scaling, ...
  operator Layer() const;
};

// down(f(gate(x)) * up(x)) over the last extent (Shazeer, 2020).
struct LOOM_API SwiGlu {
  int64_t width = 1, inner = 1;
  bool bias = false;
  Activation activation = Activation::silu;
  operator Layer() const;
};

// Over the last extent: x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich, 2019).
struct LOOM_API RmsNorm {
  int64_t width = 1;
  double eps = 1e-6;
  operator Layer() const;
};
// (x - mean) / sqrt(variance + eps) * weight + bias (Ba et al., 2016).
struct LOOM_API LayerNorm {
  int64_t width = 1;
  double eps = 1e-5;
  operator Layer() const;
};

// In training values are zero with probability `rate` and the others larger; elsewhere x itself.
// channel: all values of a channel of [B, C, ..] together. alpha: for networks of SELU units.
enum class DropoutForm : uint8_t { elementwise, channel, alpha };
struct LOOM_API Dropout {
  double rate = 0.5;
  DropoutForm form = DropoutForm::elementwise;
  operator Layer() const;
};
// Over [B, channels, ..]: each channel normalized by mean and variance of the batch in training, by
// their running values in use, times weight plus bias where `affine` (Ioffe and Szegedy, 2015).
// momentum: the share of a batch in the running values.
struct LOOM_API BatchNorm {
  int64_t channels = 1;
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;
  operator Layer() const;
};
// Over [B, channels, ..]: each group of channels of a sample normalized (Wu and He, 2018).
struct LOOM_API GroupNorm {
  int64_t channels = 1, groups = 1;
  double eps = 1e-5;
  bool affine = true;
  operator Layer() const;
};
// Over [B, channels, ..]: each channel of a sample normalized (Ulyanov et al., 2016).
struct LOOM_API InstanceNorm {
  int64_t channels = 1;
  double eps = 1e-5;
  bool affine = false;
  operator Layer() const;
};

// Distances to trained centres as probabilities [.., clusters], or, with features, the centre that
// they mix [.., width].
struct LOOM_API KMeans {
  int64_t clusters = 2, width = 1;
  double temperature = 1;
  bool features = false;
  operator Layer() const;
};

// Over the last extent. Other variants than `standard` take further fields: rows, cols, levels,
// alpha, mask, noise, kappa, target_entropy, hard.
enum class SoftmaxVariant : uint8_t {
  standard,
  grid,
  hierarchical,
  temperature,
  gumbel,
  masked,
  sparse,
  adaptive,
  mixture,
  entmax
};
struct LOOM_API Softmax {
  SoftmaxVariant variant = SoftmaxVariant::standard;
  double temperature = 1;
  std::vector<LayerField> more = {};
  operator Layer() const;
};

// Windows of each channel: [B, C, L], [B, C, H, W] or [B, C, D, H, W] -> the same with other
// extents, (L + padding - dilation (kernel - 1) - 1) / stride + 1 or those of `output`.
enum class Pooling : uint8_t { max, average, lp };
struct LOOM_API Pool {
  Pooling kind = Pooling::max;
  Axes kernel = {2}, stride = {0};  // stride 0: the kernel
  Axes padding = {0};               // one, one per axis, or one per axis before and then after it
  Axes dilation = {1};
  bool ceil = false;             // extents are rounded up
  bool include_padding = false;  // an average counts padding as zeros
  int64_t p = 2;                 // of lp: 1 or 2
  Axes output = {};              // adaptive: the extents to come; 1: one window over everything
  operator Layer() const;
};

// Axes from `first` on become one; axis 0 is the batch.
struct LOOM_API Flatten {
  int64_t first = 1;
  operator Layer() const;
};
// The values of a sample under other extents; one of them may be -1.
struct LOOM_API Reshape {
  Axes shape;
  operator Layer() const;
};
// Axis k of a sample becomes the one that was axes[k]; counted from 0, without the batch.
struct LOOM_API Permute {
  Axes axes;
  operator Layer() const;
};
// Places around the last axes of a sample, a number for each of them.
enum class Padding : uint8_t { constant, reflect, edge, wrap };
struct LOOM_API Pad {
  Axes before = {0}, after = {0};
  Padding mode = Padding::constant;
  double value = 0;
  operator Layer() const;
};
// Other extents: by a factor, or those of `output`.
enum class Interpolation : uint8_t { nearest, linear };
struct LOOM_API Upsample {
  Interpolation mode = Interpolation::nearest;
  Axes factor = {2}, output = {};
  bool align_corners = false;  // linear: first and last values stay
  operator Layer() const;
};
// [B, C r^k, L ..] -> [B, C, L r ..] over k = 1 or 2 extents (Shi et al., 2016); inverse: back.
struct LOOM_API PixelShuffle {
  int64_t factor = 2;
  bool inverse = false;
  operator Layer() const;
};

// Children one after the other.
struct LOOM_API Sequential {
  std::vector<Layer> children;
  operator Layer() const;
};
// x + F(x), F being the children one after the other; without children the second input is what the
// layer before was given.
struct LOOM_API Residual {
  std::vector<Layer> children = {};
  operator Layer() const;
};
// Children side by side on one input. filter: a gate mixes them (a mixture of experts).
enum class Combine : uint8_t { concat, add, average, grid_scatter, filter };
struct LOOM_API Parallel {
  std::vector<Layer> children;
  Combine combine = Combine::concat;
  int64_t top_k = 0;                  // filter: children kept per sample; 0: all
  double balance = 0;                 // filter: weight of the loss that balances their use
  std::vector<LayerField> more = {};  // grid_scatter: rows, cols, targets
  operator Layer() const;
};

}  // namespace loom
