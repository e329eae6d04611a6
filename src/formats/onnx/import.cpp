// The doors of the importer: files, models, and networks to be filled. See import.hpp.
#include "formats/onnx/import.hpp"

#include <algorithm>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "formats/onnx/general.hpp"
#include "formats/onnx/lower.hpp"
#include "formats/onnx/one_sample.hpp"
#include "formats/onnx/origins.hpp"
#include "io/file.hpp"
#include "onnx/file/external.hpp"

namespace loom::core {

Status ImportedNetwork::fill(Network& made, ThreadPool& pool, DType dtype) const {
  for (int i = 0; i < static_cast<int>(made.params().size()); ++i) {
    const Param& want = made.params()[static_cast<size_t>(i)];
    const auto have = std::find_if(params.begin(), params.end(),
                                   [&](const ImportedParam& p) { return p.path == want.path; });
    if (have == params.end())
      return make_error(Code::not_found, cat("the file has no parameter ", want.path));
    if (!(have->shape == want.spec.shape) ||
        have->values.size() != static_cast<size_t>(want.spec.shape.count()))
      return invalid(cat("parameter ", want.path, " is ", have->shape.str(), " in the file, ",
                         want.spec.shape.str(), " in the network"));
    const int64_t cols = want.spec.matrix() ? want.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(have->values.begin() + first * cols, count * cols, out);
      return {};
    };
    LOOM_TRY(made.load_param(i, dtype, rows, pool));
  }
  return {};
}

namespace {

bool same_bits(const ImportedNetwork& a, const ImportedNetwork& b) {
  const auto equal = [](const ImportedParam& p, const ImportedParam& q) {
    const auto x = std::as_bytes(std::span(p.values)), y = std::as_bytes(std::span(q.values));
    return p.path == q.path && p.shape == q.shape && std::ranges::equal(x, y);
  };
  return a.normalization == b.normalization &&
         write_network(a.network) == write_network(b.network) &&
         std::ranges::equal(a.params, b.params, equal);
}

bool is_initializer(const OnnxModel& model, const OnnxValue& value) {
  const auto same = [&](const OnnxTensor& t) { return t.name == value.name; };
  return std::ranges::any_of(model.graph.initializers, same);
}

// The first input that can hold samples; null: there is none.
const OnnxValue* first_input(const OnnxModel& model) {
  for (const OnnxValue& v : model.graph.inputs) {
    if (v.shape.size() > 1 && !is_initializer(model, v)) return &v;
  }
  return nullptr;
}

// The batch that the first input of a model is fixed at, where that is several samples; else 0.
int64_t fixed_batch(const OnnxModel& model) {
  const OnnxValue* first = first_input(model);
  return first != nullptr && first->shape[0].extent > 1 ? first->shape[0].extent : 0;
}

// By nodes, a batch that the file fixes read as an open one: for two sizes, which have to give the
// same network.
Result<ImportedNetwork> import_opened(const OnnxModel& model, const std::string& where,
                                      const OnnxImportOptions& options, int64_t fixed) {
  LOOM_ASSIGN(ImportedNetwork made, GraphImport(model, where, options, kOpenBatch, fixed).run());
  LOOM_ASSIGN(const ImportedNetwork other,
              GraphImport(model, where, options, kOtherBatch, fixed).run());
  if (same_bits(made, other)) return made;
  return unsupported(cat(kSizeOfBatch, ", which the file fixes"), where);
}

bool says(const Error& error, std::string_view what) {
  return error.message.find(what) != std::string::npos;
}

// Whether a file that is refused for `error` may have no batch: the first axis of its only input
// may be the steps of one sequence, or the rows of one picture.
bool may_have_no_batch(const OnnxModel& model, const OnnxImportOptions& options,
                       const Error& error) {
  if (error.code != Code::unsupported || says(error, kSizeOfBatch)) return false;
  if (says(error, kAlongBatch)) return true;
  const OnnxValue* first = first_input(model);
  if (first == nullptr || options.has_batch) return false;
  for (const OnnxValue& v : model.graph.inputs)
    if (&v != first && !is_initializer(model, v)) return false;
  return first->shape[0].extent < 0 || (first->shape[0].extent == 1 && says(error, kNotTheBatch));
}

// A file without a batch: a sample is a whole input of the file.
Result<ImportedNetwork> import_one_sample(const OnnxModel& model, const std::string& where,
                                          const OnnxImportOptions& options, const Error& refused) {
  const OnnxModel one = as_one_sample(model);
  LOOM_ASSIGN(ImportedNetwork made, GraphImport(one, where, options, kOpenBatch).run());
  std::erase_if(made.notes, [](const std::string& note) { return note == kOneByOne; });
  const std::string axis = cat("the first axis of '", printable(made.input), "'");
  made.notes.push_back(
      says(refused, kAlongBatch)
          ? cat("a recurrence runs along ", axis, ": a sample is a whole input of the file")
          : cat(axis, " is not a batch (", refused.message,
                "): a sample is a whole input of the file"));
  return made;
}

// One of the two ways, with the batch left open as it is in the file.
template <class Way>
Result<ImportedNetwork> import_by(const OnnxModel& model, const std::string& where,
                                  const OnnxImportOptions& options) {
  LOOM_ASSIGN(ImportedNetwork made, Way(model, where, options, kOpenBatch).run());
  const auto asks = [](const OnnxNode& n) { return n.op == "Shape"; };
  if (std::ranges::none_of(model.graph.nodes, asks)) return made;
  // The size of the batch may have become a value by way of a Shape.
  const Result<ImportedNetwork> other = Way(model, where, options, kOtherBatch).run();
  if (other.ok() && same_bits(made, *other)) return made;
  return unsupported(
      cat(kSizeOfBatch, ", which the file leaves open; export it with a fixed batch"), where);
}

// Patterns first: the layers they find are faster. What they refuse may still be a graph of nodes;
// what no node computes either is said in the words of that.
Result<ImportedNetwork> import_both(const OnnxModel& model, const std::string& where,
                                    const OnnxImportOptions& options) {
  if (model.graph.outputs.size() > 1) {  // patterns find the first alone
    Result<ImportedNetwork> all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
  }
  // Patterns copy what two layers share, and training would part the copies.
  if (GraphImport::shares_weights(model)) {
    Result<ImportedNetwork> all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
  }
  const auto normed = [](const OnnxNode& n) { return n.op == "BatchNormalization"; };
  const bool needs_nodes =
      options.for_training &&
      (std::ranges::any_of(model.graph.nodes, normed) || Origins(model, options).needs_nodes());
  std::string reason;  // that training would differ
  if (needs_nodes) {
    Result<ImportedNetwork> all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
    reason = cat("training would differ from the file's: ", all.error().message);
  }
  Result<ImportedNetwork> made = import_by<Lowering>(model, where, options);
  if (made.ok() && !reason.empty()) made->notes.push_back(reason);
  if (made.ok() && made->made_up > 0) {  // nodes may have the weights of the file and no others
    Result<ImportedNetwork> all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
    made->notes.push_back(
        cat("training would learn ", made->made_up, " values that are not weights of the file"));
  }
  if (made.ok() || made.error().code != Code::unsupported) return made;
  return import_by<GraphImport>(model, where, options);
}

// Whether a file is refused because an axis of one input is not that of another.
bool may_be_one_batch(const Error& error) {
  return says(error, "must agree in all axes but") || says(error, "cannot be broadcast");
}

// A file whose inputs give their first axes different names. What joins or adds them needs these
// axes to be equal, so each is read as the batch.
Result<ImportedNetwork> import_one_batch(const OnnxModel& model, const std::string& where,
                                         const OnnxImportOptions& options) {
  OnnxModel named = model;
  const OnnxValue* first = first_input(model);
  std::vector<std::string> others;
  for (OnnxValue& v : named.graph.inputs) {
    if (first == nullptr || is_initializer(model, v) || v.shape.empty()) continue;
    OnnxDim& mine = v.shape[0];
    if (mine.extent >= 0 || first->shape[0].extent >= 0 || mine.symbol == first->shape[0].symbol)
      continue;
    mine.symbol = first->shape[0].symbol;
    others.push_back(cat("'", printable(v.name), "'"));
  }
  if (others.empty()) return unsupported("its inputs share one batch", where);
  LOOM_ASSIGN(ImportedNetwork made, import_both(named, where, options));
  made.notes.push_back(cat("the first axis of ", join(others, ", "), " is read as the batch of '",
                           printable(first->name), "'; the file gives it another name"));
  return made;
}

}  // namespace

namespace {

Status check_patterns(std::string_view option, const std::vector<std::string>& patterns,
                      const OnnxModel& model) {
  for (const std::string& pattern : patterns) {
    const auto fits = [&](const OnnxTensor& t) { return matches_pattern(pattern, t.name); };
    if (std::ranges::any_of(model.graph.initializers, fits)) continue;
    if (Origins::constants_are_weights(model) &&
        std::ranges::any_of(model.graph.nodes, [&](const OnnxNode& n) {
          return n.op == "Constant" && !n.outputs.empty() && matches_pattern(pattern, n.outputs[0]);
        }))
      continue;
    return make_error(Code::invalid_argument,
                      cat("no initializer of the file matches '", printable(pattern), "'"),
                      std::string(option));
  }
  return {};
}

}  // namespace

Result<ImportedNetwork> import_onnx(const OnnxModel& model, const std::string& where,
                                    const OnnxImportOptions& options) {
  LOOM_TRY(check_patterns("--trainable", options.trainable, model));
  LOOM_TRY(check_patterns("--frozen", options.frozen, model));
  Result<ImportedNetwork> made = import_both(model, where, options);
  const int64_t fixed = fixed_batch(model);
  if (!made.ok() && made.error().code == Code::unsupported && fixed != 0) {
    Result<ImportedNetwork> opened = import_opened(model, where, options, fixed);
    if (opened.ok()) made = std::move(opened);
  }
  if (!made.ok() && may_be_one_batch(made.error())) {
    Result<ImportedNetwork> named = import_one_batch(model, where, options);
    if (named.ok()) made = std::move(named);
  }
  if (!made.ok() && may_have_no_batch(model, options, made.error())) {
    Result<ImportedNetwork> one = import_one_sample(model, where, options, made.error());
    if (one.ok() || says(made.error(), kAlongBatch)) made = std::move(one);
  }
  if (made.ok() && options.for_training && Origins(model, options).parts_weights())
    made->notes.emplace_back(
        "layers that share weights in the file each have a copy, which trains");
  return made;
}

Result<ImportedNetwork> load_onnx(const FileRef& path, const OnnxImportOptions& options) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  LOOM_ASSIGN(const OnnxModel model, parse_onnx_file(file.bytes(), path));
  return import_onnx(model, path, options);
}

}  // namespace loom::core
