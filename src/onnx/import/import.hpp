// ONNX files as networks: operators become layers of a grid, initializers their parameters.
// docs/onnx.md lists the operators. Nothing is approximated: a graph that no layers compute is an
// Error that
// names the node, its operator and its domain.
// The first axis of the input is the batch; every other extent must be known, or given for all open
// ones (`open_extent`). Layers are found by what a part of the graph computes, not by how it is
// spelt: x * Sigmoid(x) and 0.5 x (1 + Erf(x / sqrt 2)) are activations, a square, a mean and a
// root are a norm. Afterwards Network::finalize checks the whole.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bridge/normalization.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "io/files/file_ref.hpp"
#include "onnx/file/model.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct ImportedParam {
  std::string path;  // as in Network::params()
  Shape shape;
  std::vector<float> values;  // row-major
};

struct ImportedNetwork {
  NetworkSpec network;
  std::vector<ImportedParam> params;
  std::string input, output;    // their names in the file
  Normalization normalization;  // of the input, where the options ask for it
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> notes;  // what of the file is left out
  // The number of trained values that are not values of the file: identities, folded scales, zeros
  // for a missing bias. Predictions are those of the file; training would be another one.
  int64_t made_up = 0;

  // Loads every parameter of `made`, a network finalized from `network`, matrices packed in
  // `dtype`. Errors: a parameter that the file does not have, or has in another shape.
  Status fill(Network& made, ThreadPool& pool, DType dtype) const;
};

// Computes a node whose inputs are all known and whose operator is not in onnx/operators. An input
// that is left out is null. One tensor for each output, or an Error that names the node.
using OnnxFolder = std::function<Result<std::vector<OnnxTensor>>(
    const OnnxNode& node, int64_t opset, std::span<const OnnxTensor* const> inputs)>;

struct OnnxImportOptions {
  int64_t open_extent =
      0;  // of axes but the batch that the file leaves open; 0 makes them an Error
  // A shift and a scale of the input, before anything else reads it, become
  // ImportedNetwork::normalization instead of layers. The caller then applies it.
  bool take_normalization = false;
  // Batch norms stay layers, which training takes statistics for, and do not go into the weights of
  // the layers before them; as far as a graph of nodes reads the file.
  bool for_training = false;
  // Patterns over names of initializers: what trains, and what does not, whatever the rule says
  // (docs/onnx.md, "What trains"). `frozen` goes before `trainable`.
  std::vector<std::string> trainable, frozen;
  bool has_batch = false;  // the first axis of an input is the batch, whatever is computed with it
  OnnxFolder folder = {};  // none: such a node is refused (onnx/interpreter/folder.hpp has one)
};

// `model` may be of any opset from 7 on.
Result<ImportedNetwork> import_onnx(const OnnxModel& model, const std::string& where,
                                    const OnnxImportOptions& options = {});
Result<ImportedNetwork> load_onnx(const FileRef& path, const OnnxImportOptions& options = {});

}  // namespace loom::core
