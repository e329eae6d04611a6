// The structs of layers.hpp as Layers: names of fields are those of the tables in layers/.
#include "loom/layers.hpp"

#include <iterator>

#include "layers/blocks.hpp"
#include "ops/activation.hpp"

namespace loom {
namespace {

static_assert(static_cast<int>(Activation::gelu) == static_cast<int>(core::Activation::gelu_erf));
static_assert(static_cast<int>(Activation::hard_swish) + 1 == core::kActivations);

std::string name_of(Activation activation) {
  return std::string(core::activation_name(static_cast<core::Activation>(activation)));
}

std::vector<LayerField> with(std::vector<LayerField> fields, const std::vector<LayerField>& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

template <class C>
std::vector<LayerField> conv_fields(const C& c) {
  return {{"channels", c.in},   {"filters", c.out},     {"kernel", c.kernel},
          {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation},
          {"groups", c.groups}, {"bias", c.bias},       {"activation", name_of(c.activation)}};
}

template <class R>
std::vector<LayerField> recurrent_fields(const R& r) {
  return {{"in", r.in},
          {"hidden", r.hidden},
          {"return_sequence", r.return_sequence},
          {"initial_state", r.initial_state},
          {"final_state", r.final_state}};
}

}  // namespace

std::vector<std::string> layer_types() {
  return core::layer_names();
}

Dense::operator Layer() const {
  return {"Dense",
          {{"in", in},
           {"out", out},
           {"bias", bias},
           {"activation", name_of(activation)},
           {"soft_cap", soft_cap}}};
}

template <int kAxes>
Conv<kAxes>::operator Layer() const {
  return {"CNN" + std::to_string(kAxes), conv_fields(*this)};
}
template struct Conv<1>;
template struct Conv<2>;
template struct Conv<3>;

template <int kAxes>
ConvTransposed<kAxes>::operator Layer() const {
  return {"ConvTransposed" + std::to_string(kAxes) + "D",
          with(conv_fields(*this), {{"output_padding", output_padding}})};
}
template struct ConvTransposed<1>;
template struct ConvTransposed<2>;
template struct ConvTransposed<3>;

Rnn::operator Layer() const {
  return {"RNN", with(recurrent_fields(*this),
                      {{"activation", name_of(activation)}, {"state_bias", state_bias}})};
}
Lstm::operator Layer() const {
  return {"LSTM", with(recurrent_fields(*this), {{"state_bias", state_bias}})};
}
Gru::operator Layer() const {
  return {"GRU", recurrent_fields(*this)};
}

Embedding::operator Layer() const {
  return {"Embedding",
          {{"vocab", vocab},
           {"width", width},
           {"padding_id", padding_id},
           {"activation", name_of(activation)},
           {"sparse", sparse},
           {"scale", scale},
           {"positions", positions}}};
}

MultiHeadAttention::operator Layer() const {
  return {"MultiHeadAttention",
          with({{"width", width},
                {"heads", heads},
                {"kv_heads", kv_heads > 0 ? kv_heads : heads},
                {"head_dim", head_dim > 0 || heads < 1 ? head_dim : width / heads},
                {"causal", causal},
                {"window", window},
                {"rope", rope},
                {"rope_theta", rope_theta},
                {"bias", bias},
                {"out_bias", out_bias},
                {"qk_norm", qk_norm},
                {"scale", scale},
                {"soft_cap", soft_cap}},
               more)};
}

SwiGlu::operator Layer() const {
  return {
      "SwiGLU",
      {{"width", width}, {"inner", inner}, {"bias", bias}, {"activation", name_of(activation)}}};
}

RmsNorm::operator Layer() const {
  return {"RMSNorm", {{"width", width}, {"eps", eps}}};
}
LayerNorm::operator Layer() const {
  return {"LayerNorm", {{"width", width}, {"eps", eps}}};
}

Dropout::operator Layer() const {
  constexpr const char* kForms[] = {"elementwise", "channel", "alpha"};
  return {"Dropout", {{"rate", rate}, {"form", std::string(kForms[static_cast<size_t>(form)])}}};
}
BatchNorm::operator Layer() const {
  return {"BatchNorm",
          {{"channels", channels}, {"eps", eps}, {"momentum", momentum}, {"affine", affine}}};
}
GroupNorm::operator Layer() const {
  return {"GroupNorm",
          {{"channels", channels}, {"groups", groups}, {"eps", eps}, {"affine", affine}}};
}
InstanceNorm::operator Layer() const {
  return {"InstanceNorm", {{"channels", channels}, {"eps", eps}, {"affine", affine}}};
}

KMeans::operator Layer() const {
  return {"KMeans",
          {{"clusters", clusters},
           {"width", width},
           {"temperature", temperature},
           {"mode", std::string(features ? "features" : "probabilities")}}};
}

Softmax::operator Layer() const {
  constexpr const char* kVariants[] = {"standard", "grid",   "hierarchical", "temperature",
                                       "gumbel",   "masked", "sparse",       "adaptive",
                                       "mixture",  "entmax"};
  return {"Softmax", with({{"variant", std::string(kVariants[static_cast<size_t>(variant)])},
                           {"temperature", temperature}},
                          more)};
}

Pool::operator Layer() const {
  static constexpr const char* kKinds[] = {"max", "average", "lp"};
  return {"Pool",
          {{"kind", std::string(kKinds[static_cast<size_t>(kind)])},
           {"kernel", kernel},
           {"stride", stride},
           {"padding", padding},
           {"dilation", dilation},
           {"ceil", ceil},
           {"include_padding", include_padding},
           {"p", p},
           {"output", output}}};
}

Flatten::operator Layer() const {
  return {"Flatten", {{"first", first}}};
}

Reshape::operator Layer() const {
  return {"Reshape", {{"shape", shape}}};
}

Permute::operator Layer() const {
  return {"Permute", {{"axes", axes}}};
}

Pad::operator Layer() const {
  static constexpr const char* kModes[] = {"constant", "reflect", "edge", "wrap"};
  return {"Pad",
          {{"before", before},
           {"after", after},
           {"mode", std::string(kModes[static_cast<size_t>(mode)])},
           {"value", value}}};
}

Upsample::operator Layer() const {
  static constexpr const char* kModes[] = {"nearest", "linear"};
  return {"Upsample",
          {{"mode", std::string(kModes[static_cast<size_t>(mode)])},
           {"factor", factor},
           {"output", output},
           {"align_corners", align_corners}}};
}

PixelShuffle::operator Layer() const {
  return {"PixelShuffle", {{"factor", factor}, {"inverse", inverse}}};
}

Sequential::operator Layer() const {
  return {"Sequential", {}, children};
}
Residual::operator Layer() const {
  return {"Residual", {}, children};
}

Parallel::operator Layer() const {
  constexpr const char* kNames[] = {"concat", "add", "avg", "grid_scatter", "filter"};
  return {"Parallel",
          with({{"combine", std::string(kNames[static_cast<size_t>(combine)])},
                {"top_k", top_k},
                {"balance", balance}},
               more),
          children};
}

}  // namespace loom
