// Which known values of an ONNX graph are weights. The file decides, never the numbers: see
// docs/onnx.md, "What trains". Room-private.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "onnx/import/import.hpp"

namespace loom::core {

// Metadata of files whose float initializers are all weights, whatever they are called.
constexpr std::string_view kOnnxInitializers = "loom.initializers", kOnnxAllWeights = "weights";

enum class Origin : uint8_t {
  computed,  // from an input; also a name that the graph does not have
  constant,  // of Constant nodes, of numbers of the exporter, and of functions of such
  weight,    // an initializer, in whatever layout
  derived    // a function of weights: training changes the weights, not what is made of them
};

class Origins {
 public:
  Origins(const OnnxModel& model, const OnnxImportOptions& options);
  // Whether Constants of several floats are read as initializers: the file has no initializer of
  // floats. Paddle's exporter and traces of modules write weights so.
  static bool constants_are_weights(const OnnxModel& model);
  Origin of(std::string_view name) const;
  // Whether training needs a node for each operator: layers that patterns find would fold a
  // function of weights, or take a weight of one value for a number of a formula.
  bool needs_nodes() const { return needs_nodes_; }
  // Whether the file says that each of its float initializers is one weight.
  bool all_weights() const { return all_weights_; }
  // Whether layers that learn apart are made of one initializer.
  bool parts_weights() const { return parts_weights_; }
  // How layers read the initializer that a value is, in whatever layout.
  enum class Sharing : uint8_t {
    one,      // by one layer, or by several that are alike: they share all their weights
    rows,     // as a table that is looked up, and as the matrix of a product that has it as it is
    multiple  // by products of other kinds, biases or layouts
  };
  Sharing sharing(std::string_view name) const;
  // The tensor that it is; "" if there is none.
  std::string_view tensor(std::string_view name) const {
    const auto form = forms_.find(name);
    return form == forms_.end() ? std::string_view() : std::string_view(form->second.tensor);
  }
  // Both biases of a recurrence are one value. Exporters write a recurrence with one bias as a
  // weight and a constant. This is the one that trains (0 or 1); -1 means both or none.
  int trained_half(std::string_view name) const {
    const auto found = trained_halves_.find(name);
    return found == trained_halves_.end() ? -1 : found->second;
  }

 private:
  void read(const OnnxGraph& graph, const OnnxImportOptions& options);
  Origin origin_of(const OnnxTensor& tensor, const OnnxImportOptions& options) const;
  void read(const OnnxGraph& graph, const OnnxNode& n, const OnnxImportOptions& options);
  bool read_constant(const OnnxNode& n, const OnnxImportOptions& options);
  void follow(const OnnxNode& n);
  void read_weight(const OnnxNode& n, size_t i);
  bool is_factor(const OnnxNode& n, size_t i) const;
  Origin made_by(const OnnxNode& n) const;

  std::map<std::string, Origin, std::less<>> origins_;
  std::map<std::string, int64_t, std::less<>> counts_;  // of weights: values
  std::map<std::string, int, std::less<>> trained_halves_;
  // An initializer in one of its two layouts.
  struct Form {
    std::string tensor;
    bool transposed = false;
  };
  std::map<std::string, Form, std::less<>> forms_;  // by the name of a value
  struct Readers {
    std::set<std::string> kinds;  // operators with their other weights and the layout
    bool table = false, as_it_is = true, products = true;
  };
  std::map<std::string, Readers, std::less<>> readers_;  // by initializer
  bool all_weights_ = false;                             // the file says so: kOnnxInitializers
  bool constants_are_weights_ = false;
  bool needs_nodes_ = false;
  bool parts_weights_ = false;
};

}  // namespace loom::core
