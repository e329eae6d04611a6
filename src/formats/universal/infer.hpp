// The universal loader: a file of named tensors without a configuration becomes a network. Names
// come first ("layers.3.self_attn.q_proj.weight", "2.bias", "lstm.weight_ih_l0"), shapes decide
// what names leave open. A guess that changes numbers is an error with the option that settles it;
// a guess that does not is noted. Every tensor finds its place, or the file is refused with the
// list of those that did not.
#pragma once

#include <string>
#include <vector>

#include "formats/universal/infer_options.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "io/safetensors_file.hpp"
#include "io/tensor_file.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

// high: the names say it, shapes agree. medium: shapes alone say it, in one way only. low: it could
// be something else; an assumption says what was chosen.
enum class Confidence : uint8_t { high, medium, low };
std::string_view confidence_name(Confidence confidence);

struct InferredTensor {
  std::string tensor;
  std::string became;  // "(0, 0, 3, 0)/1/q": the parameter that holds it
  std::string why;
  Confidence confidence = Confidence::high;
};

// Where a parameter's values are: those of the tensor from `first` on. More than one piece: their
// sum (the two biases of a recurrent layer).
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
  std::vector<InferredParam> params;   // of every parameter that is not shared
  std::vector<InferredTensor> report;  // of every tensor, in the order of the file
  std::vector<std::string> assumptions;
};

// Errors: unsupported (tensors left over, an order that shapes contradict, too little to go by, a
// guess that changes numbers), invalid_argument (an unknown activation).
Result<InferredNetwork> infer_network(const TensorFile& file, const std::string& where,
                                      const InferOptions& options = {});
// A weights file of ours holds its network, which is then taken as it stands.
Result<InferredNetwork> infer_network(const SafeTensorsFile& file, const std::string& where,
                                      const InferOptions& options = {});

// Fills all parameters of `network`, which is inferred.spec finalized; cells without a number type
// take `dtype`.
Status load_inferred(const InferredNetwork& inferred, const TensorFile& file, Network& network,
                     DType dtype, ThreadPool& pool);
// The report and the assumptions as lines of text.
std::string describe(const InferredNetwork& inferred);

}  // namespace loom::core
