// The universal loader: a file of named tensors without a configuration becomes a network. Names
// come first ("layers.3.self_attn.q_proj.weight", "2.bias", "lstm.weight_ih_l0"); shapes resolve
// the rest. A guess that changes numbers is an error that names the option to settle it; other
// guesses are notes. If a tensor is left over, the file is refused with a list of such tensors.
#pragma once

#include <string>
#include <vector>

#include "formats/universal/infer_options.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "io/weights/safetensors_file.hpp"
#include "io/weights/tensor_file.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// high: names and shapes agree. medium: only shapes decide, without alternatives. low: there are
// alternatives; an assumption records the choice.
enum class Confidence : uint8_t { high, medium, low };
std::string_view confidence_name(Confidence confidence);

struct InferredTensor {
  std::string tensor;
  std::string became;  // "(0, 0, 3, 0)/1/q": the parameter that holds it
  std::string why;
  Confidence confidence = Confidence::high;
};

// The location of a parameter's values: those of the tensor from `first` on. Several pieces are
// summed (the two biases of a recurrent layer).
struct InferredPiece {
  size_t tensor = 0;  // index in TensorFile::entries()
  int64_t first = 0;
};
struct InferredParam {
  std::string path;
  std::vector<InferredPiece> pieces;
};

struct InferredNetwork {
  NetworkSpec spec;
  std::vector<InferredParam> params;   // every parameter that is not shared
  std::vector<InferredTensor> report;  // every tensor, in file order
  std::vector<std::string> assumptions;
};

// Errors: unsupported (tensors left over, an order that shapes contradict, too little information,
// a guess that changes numbers), invalid_argument (an unknown activation).
Result<InferredNetwork> infer_network(const TensorFile& file, const std::string& where,
                                      const InferOptions& options = {});
// A Loom weights file contains its network, which is used unchanged.
Result<InferredNetwork> infer_network(const SafeTensorsFile& file, const std::string& where,
                                      const InferOptions& options = {});

// Fills all parameters of `network`, which is the finalized inferred.spec; cells without a number
// type take `dtype`.
Status load_inferred(const InferredNetwork& inferred, const TensorFile& file, Network& network,
                     DType dtype, ThreadPool& pool);
// The report and the assumptions as lines of text.
std::string describe(const InferredNetwork& inferred);

}  // namespace loom::core
