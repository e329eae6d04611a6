// The doors of the importer: files, models, and networks to be filled. See import.hpp.
#include "onnx/import/import.hpp"

#include <algorithm>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "io/files/file.hpp"
#include "onnx/file/external.hpp"
#include "onnx/import/general/general.hpp"
#include "onnx/import/lower/lower.hpp"
#include "onnx/import/one_sample.hpp"
#include "onnx/import/origins.hpp"

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

// The result of an importer for a file, or its error and the reason.
struct Attempt {
  Result<ImportedNetwork> made;
  Refusal refusal = Refusal::other;
  bool depends_on_batch = false;
  bool ok() const { return made.ok(); }
};

template <class Importer>
Attempt run(Importer importer) {
  Result<ImportedNetwork> made = importer.run();
  return {std::move(made), importer.refusal(), importer.depends_on_batch()};
}

Attempt refuse_size_of_batch(std::string_view what, const std::string& where) {
  return {unsupported(cat("computes with the size of the batch, which the file ", what), where),
          Refusal::size_of_batch};
}

// By nodes, a batch that the file fixes read as an open one: for two sizes, which have to give the
// same network.
Attempt import_opened(const OnnxModel& model, const std::string& where,
                      const OnnxImportOptions& options, int64_t fixed) {
  Attempt one = run(GraphImport(model, where, options, kOpenBatch, fixed));
  if (!one.ok()) return one;
  const Attempt other = run(GraphImport(model, where, options, kOtherBatch, fixed));
  if (!other.ok() || same_bits(*one.made, *other.made)) return other.ok() ? one : other;
  return refuse_size_of_batch("fixes", where);
}

// Whether a refused file may have no batch: the first axis of its only input may be the steps of
// one sequence, or the rows of one image.
bool may_have_no_batch(const OnnxModel& model, const OnnxImportOptions& options,
                       const Attempt& refused) {
  const Refusal why = refused.refusal;
  if (why == Refusal::size_of_batch) return false;
  if (why == Refusal::along_batch) return true;
  const OnnxValue* first = first_input(model);
  if (first == nullptr || options.has_batch) return false;
  for (const OnnxValue& v : model.graph.inputs)
    if (&v != first && !is_initializer(model, v)) return false;
  const int64_t extent = first->shape[0].extent;
  return extent < 0 || (extent == 1 && why == Refusal::not_the_batch);
}

// A file without a batch: a sample is a whole input of the file.
Result<ImportedNetwork> import_one_sample(const OnnxModel& model, const std::string& where,
                                          const OnnxImportOptions& options,
                                          const Attempt& refused) {
  const OnnxModel one = as_one_sample(model);
  LOOM_ASSIGN(ImportedNetwork made, GraphImport(one, where, options, kOpenBatch).run());
  std::erase_if(made.notes, [](const std::string& note) { return note == kOneByOne; });
  const std::string axis = cat("the first axis of '", printable(made.input), "'");
  made.notes.push_back(
      refused.refusal == Refusal::along_batch
          ? cat("a recurrence runs along ", axis, ": a sample is a whole input of the file")
          : cat(axis, " is not a batch (", refused.made.error().message,
                "): a sample is a whole input of the file"));
  return made;
}

// For a file that calls the first axis of its input a batch, and computes with all of it at once.
// It is imported for one sample at a time.
Result<ImportedNetwork> import_alone(const OnnxModel& model, const std::string& where,
                                     const OnnxImportOptions& options, const Attempt& refused) {
  const OnnxModel one = with_one_sample(model, first_input(model)->shape[0].symbol);
  LOOM_ASSIGN(ImportedNetwork made, GraphImport(one, where, options, kOpenBatch).run());
  std::erase_if(made.notes, [](const std::string& note) { return note == kOneByOne; });
  made.notes.push_back(cat(refused.made.error().message, "; here samples are computed one by one"));
  return made;
}

bool names_a_batch(const OnnxModel& model) {
  const OnnxValue* first = first_input(model);
  return first != nullptr && first->shape[0].extent < 0 &&
         to_lower_ascii(first->shape[0].symbol).find("batch") != std::string::npos;
}

// One of the two ways, with the batch left open as it is in the file.
template <class Way>
Attempt import_by(const OnnxModel& model, const std::string& where,
                  const OnnxImportOptions& options) {
  Attempt one = run(Way(model, where, options, kOpenBatch));
  const auto asks = [](const OnnxNode& n) { return n.op == "Shape"; };
  if (!one.ok() || !one.depends_on_batch || std::ranges::none_of(model.graph.nodes, asks))
    return one;
  // The size of the batch may have become a value by way of a Shape.
  const Attempt other = run(Way(model, where, options, kOtherBatch));
  if (other.ok() && same_bits(*one.made, *other.made)) return one;
  return refuse_size_of_batch("leaves open; export it with a fixed batch", where);
}

// Patterns first: the layers they find are faster. A file that they refuse may still be a graph of
// nodes. If no node computes it either, the error is that of the graph.
Attempt import_either(const OnnxModel& model, const std::string& where,
                      const OnnxImportOptions& options) {
  if (model.graph.outputs.size() > 1) {  // patterns find the first alone
    Attempt all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
  }
  // Patterns copy what two layers share, and training would part the copies.
  if (GraphImport::shares_weights(model)) {
    Attempt all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
  }
  const auto normed = [](const OnnxNode& n) { return n.op == "BatchNormalization"; };
  const bool needs_nodes =
      options.for_training &&
      (std::ranges::any_of(model.graph.nodes, normed) || Origins(model, options).needs_nodes());
  std::string reason;  // that training would differ
  if (needs_nodes) {
    Attempt all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
    reason = cat("training would differ from the file's: ", all.made.error().message);
  }
  Attempt lowered = import_by<Lowering>(model, where, options);
  if (lowered.ok() && !reason.empty()) lowered.made->notes.push_back(reason);
  if (lowered.ok() &&
      lowered.made->made_up > 0) {  // nodes may have the weights of the file and no others
    Attempt all = import_by<GraphImport>(model, where, options);
    if (all.ok()) return all;
    lowered.made->notes.push_back(cat("training would learn ", lowered.made->made_up,
                                      " values that are not weights of the file"));
  }
  if (lowered.ok() || lowered.made.error().code != Code::unsupported) return lowered;
  return import_by<GraphImport>(model, where, options);
}

// A refused file whose inputs give their first axes different names. If it can be read as soon as
// these axes are equal, as what joins or adds its inputs needs them, each is the batch.
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
  LOOM_ASSIGN(ImportedNetwork made, import_either(named, where, options).made);
  made.notes.push_back(cat("the first axis of ", join(others, ", "), " is read as the batch of '",
                           printable(first->name), "'; the file gives it another name"));
  return made;
}

// Other readings of the first axes of a file that is refused unchanged.
Result<ImportedNetwork> import_again(const OnnxModel& model, const std::string& where,
                                     const OnnxImportOptions& options, Attempt refused) {
  const int64_t fixed = fixed_batch(model);
  if (fixed != 0) {
    Attempt opened = import_opened(model, where, options, fixed);
    if (opened.ok()) return std::move(opened.made);
  }
  Result<ImportedNetwork> named = import_one_batch(model, where, options);
  if (named.ok()) return named;
  if (refused.refusal == Refusal::mixes_samples && names_a_batch(model)) {
    Result<ImportedNetwork> alone = import_alone(model, where, options, refused);
    if (alone.ok()) return alone;
  }
  if (may_have_no_batch(model, options, refused)) {
    Result<ImportedNetwork> one = import_one_sample(model, where, options, refused);
    if (one.ok() || refused.refusal == Refusal::along_batch) return one;
  }
  return std::move(refused.made);
}

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
  Attempt first = import_either(model, where, options);
  const bool refused = !first.ok() && first.made.error().code == Code::unsupported;
  Result<ImportedNetwork> made =
      refused ? import_again(model, where, options, std::move(first)) : std::move(first.made);
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
