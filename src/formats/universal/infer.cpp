// See infer.hpp. This file has the entry points, Loom's own weights files, and the loading of
// values.
#include "formats/universal/infer.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "formats/universal/parts.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

constexpr size_t kShown = 16;  // tensors in a message
constexpr std::string_view kDescribe =
    "; describe the network in JSON, and give this file with --weights";

Error left_over(const std::vector<std::string>& names, const std::string& where) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() < kShown) shown.push_back(printable(name));
  }
  return unsupported(cat(names.size(), names.size() == 1 ? " tensor has" : " tensors have",
                         " no place in a network of ours: ", join(shown, ", "),
                         names.size() > kShown ? ", ..." : "", kDescribe),
                     where);
}

std::string_view metadata(const SafeTensors& tensors, std::string_view key) {
  for (const auto& [name, value] : tensors.metadata()) {
    if (name == key) return value;
  }
  return {};
}

bool same_shape(const TensorEntry& entry, const Shape& shape) {
  if (entry.shape.size() != static_cast<size_t>(shape.rank())) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (entry.shape[static_cast<size_t>(i)] != shape[i]) return false;
  }
  return true;
}

std::map<std::string_view, size_t> params_by_path(const Network& network) {
  std::map<std::string_view, size_t> index;
  for (size_t i = 0; i < network.params().size(); ++i) index.emplace(network.params()[i].path, i);
  return index;
}

// A file that holds its network: tensors bear the paths of parameters.
Result<InferredNetwork> own_network(const SafeTensorsFile& file, std::string_view network,
                                    const std::string& where) {
  LOOM_ASSIGN(NetworkSpec spec, parse_network(network, where + ": network"));
  const Shape input = spec.input.after(1);
  LOOM_ASSIGN(const Network whole, Network::finalize(spec.grid, input));
  InferredNetwork made{std::move(spec), {}, {}, {}};
  const std::map<std::string_view, size_t> params = params_by_path(whole);
  std::map<std::string_view, size_t> tensors;
  for (const TensorEntry& entry : file.entries()) {
    const auto param = params.find(entry.name);
    const bool known = param != params.end();
    tensors.emplace(entry.name, made.report.size());
    if (known && !same_shape(entry, whole.params()[param->second].spec.shape)) {
      return bad_file(cat("'", printable(entry.name), "' has another shape than its parameter"),
                      where);
    }
    const bool normal = entry.name.starts_with("input/");
    if (normal) {
      made.assumptions.push_back(
          cat(entry.name, ": inputs are to be normalized with it before they come in"));
    }
    made.report.push_back({entry.name, known ? entry.name : "nothing",
                           known    ? "the network in the file names it"
                           : normal ? "normalizes inputs"
                                    : "state of training",
                           Confidence::high});
  }
  for (const Param& p : whole.params()) {
    const auto tensor = tensors.find(p.path);
    if (tensor == tensors.end()) return bad_file(cat("has no tensor '", p.path, "'"), where);
    made.params.push_back({p.path, {{tensor->second, 0}}});
  }
  return made;
}

// Values [first, first + count) of all pieces, added up.
Status read_values(const InferredParam& param, const TensorFile& file, int64_t first, int64_t count,
                   float* out) {
  LOOM_TRY(file.to_f32(param.pieces[0].tensor, param.pieces[0].first + first, count, out));
  std::vector<float> more;
  for (size_t i = 1; i < param.pieces.size(); ++i) {
    more.resize(static_cast<size_t>(count));
    LOOM_TRY(
        file.to_f32(param.pieces[i].tensor, param.pieces[i].first + first, count, more.data()));
    for (size_t j = 0; j < more.size(); ++j) out[j] += more[j];
  }
  return {};
}

}  // namespace

std::string_view confidence_name(Confidence confidence) {
  constexpr std::string_view kNames[] = {"high", "medium", "low"};
  return kNames[static_cast<size_t>(confidence)];
}

Result<InferredNetwork> infer_network(const TensorFile& file, const std::string& where,
                                      const InferOptions& options) {
  if (!options.activation.empty()) {
    const Result<Activation> known = parse_activation(options.activation);
    if (!known.ok()) return known.error();
  }
  ModuleReader reader(file, options);
  Result<std::vector<ModuleLayer>> layers = reader.read();
  if (!layers.ok()) return unsupported(layers.error().message, where);
  const std::vector<std::string> rest = reader.untaken();
  if (!rest.empty()) return left_over(rest, where);
  return arrange_modules(std::move(*layers), reader, file, where, options);
}

Result<InferredNetwork> infer_network(const SafeTensorsFile& file, const std::string& where,
                                      const InferOptions& options) {
  const std::string_view network = metadata(file.tensors(), "network");
  if (!network.empty() && !metadata(file.tensors(), "loom").empty())
    return own_network(file, network, where);
  return infer_network(static_cast<const TensorFile&>(file), where, options);
}

Status load_inferred(const InferredNetwork& inferred, const TensorFile& file, Network& network,
                     DType dtype, ThreadPool& pool) {
  const std::map<std::string_view, size_t> index = params_by_path(network);
  for (const InferredParam& from : inferred.params) {
    const auto at = index.find(from.path);
    if (at == index.end()) return invalid(cat("the network has no parameter ", from.path));
    const Param& p = network.params()[at->second];
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) {
      return read_values(from, file, first * cols, count * cols, out);
    };
    LOOM_TRY(network.load_param(static_cast<int>(at->second), p.dtype.value_or(dtype), rows, pool));
    for (const InferredPiece& piece : from.pieces) file.release(piece.tensor);
  }
  return network.check_loaded();
}

std::string describe(const InferredNetwork& inferred) {
  std::string text;
  for (const InferredTensor& t : inferred.report) {
    text +=
        cat(t.tensor, " -> ", t.became, " (", confidence_name(t.confidence), "; ", t.why, ")\n");
  }
  for (const std::string& line : inferred.assumptions) text += cat("assumed: ", line, "\n");
  return text;
}

}  // namespace loom::core
