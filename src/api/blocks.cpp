// The fields of blocks.hpp under the names that layers/blocks*.cpp reads.
#include "loom/blocks.hpp"

namespace loom {
namespace {

std::string text(Activation activation) {
  return std::string(activation_name(activation));
}

// The name of a value of an enum, in its order.
template <class Enum, size_t N>
std::string text(Enum value, const char* const (&names)[N]) {
  return names[static_cast<size_t>(value)];
}

}  // namespace

SqueezeExcite::operator Layer() const {
  return {"SqueezeExcite",
          {{"channels", channels},
           {"hidden", hidden},
           {"axes", axes},
           {"activation", text(activation)},
           {"gate", text(gate)}}};
}
SeparableConv::operator Layer() const {
  return {"SeparableConv",
          {{"channels", channels},
           {"filters", filters},
           {"axes", axes},
           {"kernel", kernel},
           {"stride", stride},
           {"padding", padding},
           {"dilation", dilation},
           {"activation", text(activation)}}};
}
Positions::operator Layer() const {
  return {"Positions",
          {{"length", length}, {"width", width}, {"kind", text(kind, {"learned", "sinusoidal"})}}};
}
CrossAttention::operator Layer() const {
  return {"CrossAttention", {{"width", width}, {"context", context}, {"heads", heads}}};
}
BiasedAttention::operator Layer() const {
  return {"BiasedAttention",
          {{"width", width},
           {"heads", heads},
           {"length", length},
           {"bias", text(bias, {"alibi", "relative", "none"})},
           {"causal", causal}}};
}
EmbeddingBag::operator Layer() const {
  return {"EmbeddingBag",
          {{"vocab", vocab}, {"width", width}, {"mode", text(mode, {"mean", "sum", "max"})}}};
}
RecurrentStack::operator Layer() const {
  return {"RecurrentStack",
          {{"kind", text(kind, {"rnn", "lstm", "gru"})},
           {"in", in},
           {"hidden", hidden},
           {"layers", layers},
           {"bidirectional", bidirectional},
           {"return_sequence", return_sequence},
           {"activation", text(activation)},
           {"initial_state", initial_state},
           {"final_state", final_state}}};
}
WeightNormDense::operator Layer() const {
  return {"WeightNormDense",
          {{"in", in}, {"out", out}, {"bias", bias}, {"activation", text(activation)}}};
}
WeightNormConv::operator Layer() const {
  return {"WeightNormConv",
          {{"channels", channels},
           {"filters", filters},
           {"axes", axes},
           {"kernel", kernel},
           {"stride", stride},
           {"padding", padding},
           {"dilation", dilation},
           {"bias", bias},
           {"activation", text(activation)}}};
}
SpectralNormDense::operator Layer() const {
  return {"SpectralNormDense",
          {{"in", in},
           {"out", out},
           {"bias", bias},
           {"activation", text(activation)},
           {"iterations", iterations},
           {"eps", eps}}};
}
SpectralNormConv::operator Layer() const {
  return {"SpectralNormConv",
          {{"channels", channels},
           {"filters", filters},
           {"axes", axes},
           {"kernel", kernel},
           {"stride", stride},
           {"padding", padding},
           {"dilation", dilation},
           {"bias", bias},
           {"activation", text(activation)},
           {"iterations", iterations},
           {"eps", eps}}};
}
Mamba::operator Layer() const {
  return {
      "Mamba",
      {{"width", width}, {"state", state}, {"expand", expand}, {"kernel", kernel}, {"rank", rank}}};
}

}  // namespace loom
