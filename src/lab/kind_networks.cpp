// The networks behind `loom verify training` and the tests that run over every layer kind: small,
// of odd sizes, each with what its kind has (biases, grouped heads, strides, a gate).
#include "lab/training_hash.hpp"

namespace loom::core {

const std::vector<KindNetwork>& kind_networks() {
  static const std::vector<KindNetwork> all = {
      {"Dense", R"({"loom": 1, "input": [9], "layers": [
        {"type": "Dense", "in": 9, "out": 17, "activation": "tanh"},
        {"type": "Dense", "in": 17, "out": 3}]})"},
      {"MultiHeadAttention", R"({"loom": 1, "input": [8, 12], "layers": [
        {"type": "MultiHeadAttention", "width": 12, "heads": 4, "kv_heads": 2, "head_dim": 4,
         "bias": true, "out_bias": true, "qk_norm": true}]})",
       3},
      {"SwiGLU", R"({"loom": 1, "input": [9], "layers": [
        {"type": "SwiGLU", "width": 9, "inner": 14, "bias": true}]})"},
      {"RMSNorm", R"({"loom": 1, "input": [9], "layers": [
        {"type": "RMSNorm", "width": 9}, {"type": "Dense", "in": 9, "out": 3}]})"},
      {"CNN1", R"({"loom": 1, "input": [2, 17], "layers": [
        {"type": "CNN1", "channels": 2, "filters": 5, "padding": 1, "activation": "relu"},
        {"type": "Dense", "in": 85, "out": 3}]})",
       3},
      {"CNN2", R"({"loom": 1, "input": [2, 7, 5], "layers": [
        {"type": "CNN2", "channels": 2, "filters": 5, "stride": 2, "padding": 1},
        {"type": "Dense", "in": 60, "out": 3}]})",
       3},
      {"CNN3", R"({"loom": 1, "input": [2, 4, 3, 5], "layers": [
        {"type": "CNN3", "channels": 2, "filters": 3, "kernel": 2},
        {"type": "Dense", "in": 72, "out": 3}]})",
       2},
      {"RNN", R"({"loom": 1, "input": [9, 5], "layers": [{"type": "RNN", "in": 5, "hidden": 11}]})",
       3},
      {"LSTM", R"({"loom": 1, "input": [9, 5], "layers": [
        {"type": "LSTM", "in": 5, "hidden": 11}, {"type": "Dense", "in": 11, "out": 3}]})",
       3},
      {"LayerNorm", R"({"loom": 1, "input": [9], "layers": [
        {"type": "LayerNorm", "width": 9}, {"type": "Dense", "in": 9, "out": 3}]})"},
      {"ConvTransposed1D", R"({"loom": 1, "input": [3, 5], "layers": [
        {"type": "ConvTransposed1D", "channels": 3, "filters": 2, "stride": 2}]})",
       3},
      {"ConvTransposed2D", R"({"loom": 1, "input": [3, 3, 4], "layers": [
        {"type": "ConvTransposed2D", "channels": 3, "filters": 2, "stride": 2}]})",
       3},
      {"ConvTransposed3D", R"({"loom": 1, "input": [2, 2, 3, 2], "layers": [
        {"type": "ConvTransposed3D", "channels": 2, "filters": 2, "kernel": 2}]})",
       2},
      {"Embedding", R"({"loom": 1, "input": [8], "layers": [
        {"type": "Embedding", "vocab": 19, "width": 6}, {"type": "Dense", "in": 6, "out": 3}]})",
       4},
      {"KMeans", R"({"loom": 1, "input": [5], "layers": [
        {"type": "KMeans", "clusters": 6, "width": 5, "mode": "features"},
        {"type": "Dense", "in": 5, "out": 3}]})"},
      {"Softmax", R"({"loom": 1, "input": [5], "layers": [
        {"type": "Dense", "in": 5, "out": 6}, {"type": "Softmax", "variant": "entmax"},
        {"type": "Dense", "in": 6, "out": 3}]})"},
      {"Parallel", R"({"loom": 1, "input": [5], "layers": [
        {"type": "Parallel", "combine": "filter", "top_k": 2, "balance": 0.01, "children": [
          {"type": "Dense", "in": 5, "out": 4, "activation": "tanh"},
          {"type": "Dense", "in": 5, "out": 4},
          {"type": "Dense", "in": 5, "out": 4, "activation": "silu"},
          {"type": "Dense", "in": 5, "out": 3}]}]})"},
      {"Sequential", R"({"loom": 1, "input": [5], "layers": [
        {"type": "Sequential", "children": [
          {"type": "Dense", "in": 5, "out": 9, "activation": "tanh"},
          {"type": "Dense", "in": 9, "out": 4}]}]})"},
      {"Residual", R"({"loom": 1, "input": [5], "layers": [
        {"type": "Dense", "in": 5, "out": 5, "activation": "tanh"}, {"type": "Residual"},
        {"type": "Residual", "children": [
          {"type": "Dense", "in": 5, "out": 9, "activation": "relu"},
          {"type": "Dense", "in": 9, "out": 5}]}]})"},
      {"GRU", R"({"loom": 1, "input": [9, 5], "layers": [
        {"type": "GRU", "in": 5, "hidden": 11}, {"type": "Dense", "in": 11, "out": 3}]})",
       3},
  };
  return all;
}

}  // namespace loom::core
