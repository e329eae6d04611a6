// See dataset_files.hpp. The inputs and outputs of the network (ids or numbers, sizes, classes) are
// computed once, from a network finalized for one sample.
#include "train_io/dataset_files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "base/text.hpp"
#include "grid/network.hpp"
#include "io/arrays/array_file.hpp"
#include "io/bytes/utf8.hpp"
#include "io/files/foreign_file.hpp"
#include "table/text_source.hpp"
#include "train_io/media_files.hpp"
#include "train_io/sequences.hpp"
#include "train_io/table_dataset.hpp"
#include "train_io/weights/training_parts.hpp"

namespace loom::core {
namespace {

Result<InputSchema> wanted_by(const NetworkSpec& network, const DatasetOptions& options) {
  const std::vector<int64_t>& heads = options.heads;
  LOOM_ASSIGN(const Network whole, Network::finalize(network.grid, network.input.after(1)));
  InputSchema w;
  w.sample = network.input;
  w.values = network.input.count();
  w.vocab = whole.vocab();
  w.ids = w.vocab > 0;
  w.more = whole.extra_inputs();
  for (InputSpec spec : options.inputs) {
    spec.ids = InputSchema::kAnyIds;
    w.more.push_back(std::move(spec));
  }
  w.rows = whole.output().rows();
  w.outputs = whole.output().last();
  w.embeddings = options.embeddings;
  w.classes = heads.empty() ? std::vector<int64_t>{w.outputs} : heads;
  if (w.embeddings) {
    w.classes = {InputSchema::kMaxLabels};
    return w;
  }
  const int64_t sum = std::accumulate(w.classes.begin(), w.classes.end(), int64_t{0});
  if (sum == w.outputs) return w;
  return invalid(cat("the heads have ", sum, " values together, the network gives ", w.outputs));
}

// Numbers from 0 to limits - 1 (value i has limit i mod their count), or the Error of the first
// that is not.
Status check_below(const std::vector<int32_t>& values, const std::vector<int64_t>& limits,
                   std::string_view what, int64_t samples, const std::string& where,
                   std::optional<int32_t> ignored = {}) {
  const int64_t each = std::max<int64_t>(static_cast<int64_t>(values.size()) / samples, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t limit = limits[i % limits.size()];
    if ((values[i] >= 0 && values[i] < limit) || (ignored && values[i] == *ignored)) continue;
    return bad_file(cat("sample ", static_cast<int64_t>(i) / each, ": ", what, " ", values[i],
                        " must be from 0 to ", limit - 1),
                    where);
  }
  return {};
}

// Labels of embeddings have no limit from the network; the largest label of the file sets it.
void count_classes(Dataset& data) {
  data.classes = 1;
  for (const int32_t label : data.labels)
    data.classes = std::max<int64_t>(data.classes, int64_t{label} + 1);
}

// ---- arrays -------------------------------------------------------------------------------------

Result<int64_t> samples_of(const ArrayView& array) {
  if (array.shape.empty()) return bad_file("the array has no axis of samples", array.where);
  if (array.shape[0] < 1) return bad_file("the dataset is empty: no samples", array.where);
  return array.shape[0];
}

// The inputs of samples of different lengths.
Status set_sequences(const ArrayView& x, const InputSchema& w, const Spreading& spreading,
                     Dataset& data) {
  data.samples = spreading.samples();
  data.sample = w.sample;
  data.lengths = spreading.lengths();
  const int64_t each = w.values / w.sample[0];
  if (!spreading.spreads(x, each)) {
    return bad_file(cat("an array ", x.shape_text(), " of ", data.samples,
                        " samples that have lengths; it must be [samples, positions, ..] or "
                        "[all positions, ..], of ",
                        each, " values a position"),
                    x.where);
  }
  if (!w.ids) {
    LOOM_ASSIGN(const std::vector<float> values, array_f32(x));
    data.inputs = spreading.spread(values, x, each);
    return {};
  }
  LOOM_ASSIGN(const std::vector<int32_t> ids, array_i32(x));
  data.ids = spreading.spread(ids, x, each);
  return check_below(data.ids, {w.vocab}, "id", data.samples, x.where);
}

Status set_inputs(const ArrayView& x, bool idx, const InputSchema& w, Dataset& data) {
  LOOM_ASSIGN(data.samples, samples_of(x));
  data.sample = w.sample;
  if (x.count() % data.samples != 0 || x.count() / data.samples != w.values) {
    ArrayView one = x;
    one.shape.erase(one.shape.begin());
    return bad_file(cat("a sample is ", one.shape_text(), ", the network takes ", w.sample.str()),
                    x.where);
  }
  if (w.ids) {
    LOOM_ASSIGN(data.ids, array_i32(x));
    return check_below(data.ids, {w.vocab}, "id", data.samples, x.where);
  }
  const bool image = idx && x.type == ElementType::u8;
  LOOM_ASSIGN(data.inputs, array_f32(x, image ? 1.0f / 255.0f : 1.0f));
  return {};
}

// Whether integers are taken for class labels.
bool are_labels(const ArrayView& y, const InputSchema& w, const DatasetOptions& options) {
  return options.classes && is_whole(y.type) && (w.outputs > 1 || w.embeddings);
}

// The number of values per position of targets that have positions.
int64_t values_of_position(const ArrayView& y, const InputSchema& w,
                           const DatasetOptions& options) {
  return are_labels(y, w, options) ? std::ssize(w.classes) : w.outputs;
}

Status set_sequence_targets(const ArrayView& y, const InputSchema& w, const DatasetOptions& options,
                            const Spreading& spreading, Dataset& data) {
  const int64_t each = values_of_position(y, w, options);
  if (!are_labels(y, w, options)) {
    LOOM_ASSIGN(const std::vector<float> values, array_f32(y));
    data.outputs = w.rows * w.outputs;
    data.targets = spreading.spread(values, y, each);
    return {};
  }
  LOOM_ASSIGN(const std::vector<int32_t> values, array_i32(y));
  data.classes = w.outputs;
  data.labels = spreading.spread(values, y, each);
  return check_below(data.labels, w.classes, "label", data.samples, y.where, options.ignored);
}

Status set_targets(const ArrayView& y, const InputSchema& w, const DatasetOptions& options,
                   Dataset& data) {
  LOOM_ASSIGN(const int64_t samples, samples_of(y));
  if (samples != data.samples) {
    return bad_file(cat(samples, " targets for ", data.samples, " samples"), y.where);
  }
  const int64_t each = y.count() / samples;
  if (are_labels(y, w, options) && (w.takes(each) || options.sequences)) {
    LOOM_ASSIGN(data.labels, array_i32(y));
    data.classes = w.outputs;
    return check_below(data.labels, w.classes, "label", samples, y.where, options.ignored);
  }
  if (each != w.rows * w.outputs) {
    return bad_file(cat("a target has ", each, " values, the network gives ", w.rows * w.outputs),
                    y.where);
  }
  data.outputs = each;
  LOOM_ASSIGN(data.targets, array_f32(y));
  return {};
}

// Memory of the values of the arrays, as floats or ids.
Status book(const ArrayView& x, const ArrayView& y, const DatasetOptions& options, uint64_t padded,
            LoadedDataset& out) {
  const auto values = static_cast<uint64_t>(x.count()) + static_cast<uint64_t>(y.count()) + padded;
  LOOM_ASSIGN(out.memory, options.memory.take(values * sizeof(float), "the values", x.where));
  return {};
}

Result<LoadedDataset> from_arrays(ArrayFile file, const std::string& path, const InputSchema& w,
                                  const DatasetOptions& options) {
  LoadedDataset out;
  LOOM_ASSIGN(const ArrayView x, file.find(options.x));
  std::optional<Spreading> spreading;
  // Values beside those of x and y.
  LOOM_ASSIGN(const std::vector<ArrayView> more, find_more(file, w, path));
  uint64_t padded = 0;
  for (const ArrayView& array : more) padded += static_cast<uint64_t>(array.count());
  if (!options.lengths.empty()) {
    LOOM_ASSIGN(const ArrayView array, file.find(options.lengths));
    LOOM_ASSIGN(std::vector<int32_t> lengths, array_i32(array));
    LOOM_ASSIGN(spreading, Spreading::create(std::move(lengths), w.sample[0], array.where));
    padded += static_cast<uint64_t>(spreading->samples()) *
              static_cast<uint64_t>(w.values + w.rows * w.outputs);
  }
  if (options.inputs_only) {
    const auto values = (static_cast<uint64_t>(x.count()) + padded) * sizeof(float);
    LOOM_ASSIGN(out.memory, options.memory.take(values, "the values", x.where));
    LOOM_TRY(spreading ? set_sequences(x, w, *spreading, out.data)
                       : set_inputs(x, file.kind() == ArrayFile::Kind::idx, w, out.data));
    LOOM_TRY(set_more(more, w, out.data));
    return out;
  }
  const bool idx = file.kind() == ArrayFile::Kind::idx;
  std::optional<ArrayFile> labels;
  if (!options.labels.empty()) {
    LOOM_ASSIGN(labels, ArrayFile::open(options.labels, options.memory));
  } else if (idx || file.kind() == ArrayFile::Kind::npy) {
    return invalid("holds the inputs alone; give the targets with --labels FILE", path);
  }
  LOOM_ASSIGN(const ArrayView y, (labels.has_value() ? *labels : file).find(options.y));
  LOOM_TRY(book(x, y, options, padded, out));
  LOOM_TRY(spreading ? set_sequences(x, w, *spreading, out.data) : set_inputs(x, idx, w, out.data));
  LOOM_TRY(set_more(more, w, out.data));
  const bool each = spreading && w.rows == w.sample[0] && !options.sequences &&
                    spreading->spreads(y, values_of_position(y, w, options));
  LOOM_TRY(each ? set_sequence_targets(y, w, options, *spreading, out.data)
                : set_targets(y, w, options, out.data));
  if (options.weights.empty()) return out;
  LOOM_ASSIGN(const ArrayView weights, file.find(options.weights));
  if (weights.count() != out.data.samples) {
    return bad_file(cat(weights.count(), " weights for ", out.data.samples, " samples"),
                    weights.where);
  }
  LOOM_ASSIGN(out.data.weights, array_f32(weights));
  return out;
}

// ---- CSV ----------------------------------------------------------------------------------------

Result<int32_t> whole_cell(const CsvFile& file, const CsvCell& cell, int64_t limit,
                           std::string_view what, std::optional<int32_t> ignored = {}) {
  LOOM_ASSIGN(const float value, file.number(cell));
  if (value == std::floor(value) && value >= 0.0f && value < static_cast<float>(limit))
    return static_cast<int32_t>(value);
  if (ignored && value == static_cast<float>(*ignored)) return *ignored;
  return file.error(
      cell, cat(what, " ", printable(cell.text), " must be an integer from 0 to ", limit - 1));
}

// Takes the cells of a CSV in their order: the inputs of a row, then its targets.
class CsvDataset {
 public:
  // weights, lengths: the columns of sample weights and lengths, or -1. places: the index of each
  // column among inputs and targets.
  CsvDataset(const CsvFile& file, const std::string& path, const InputSchema& w,
             const DatasetOptions& options, int64_t weights, int64_t lengths,
             const std::vector<int64_t>& column_index, LoadedDataset& out)
      : file_(file),
        path_(path),
        w_(w),
        options_(options),
        weights_(weights),
        lengths_(lengths),
        places_(column_index),
        out_(out) {}

  // The layout of the columns, and memory for all of them. numeric: no target of one column is
  // text.
  Status begin(bool numeric);
  // Reports progress after every so many rows.
  Status add_told(const CsvCell& cell) {
    constexpr int64_t kRows = 4096;
    const bool last = cell.row + 1 == file_.rows();
    LOOM_TRY(add(cell));
    if (!options_.progress || cell.col + 1 < file_.cols()) return {};
    if (!last && (cell.row + 1) % kRows != 0) return {};
    if (options_.progress(cell.row + 1, file_.rows())) return {};
    return make_error(Code::cancelled, "reading the samples was stopped", path_);
  }
  Status add(const CsvCell& cell) {
    if (cell.col == weights_) return add_weight(cell);
    if (cell.col == lengths_) return add_length(cell);
    if (place_of(cell) < w_.values) return add_input(cell);
    return options_.inputs_only ? Status() : add_target(cell);
  }

 private:
  enum class Targets : uint8_t { numbers, labels, names };

  // The index of the cell among inputs and targets.
  int64_t place_of(const CsvCell& cell) const { return places_[static_cast<size_t>(cell.col)]; }
  // The element of this cell in a list with `each` values per row.
  static size_t at(const CsvCell& cell, int64_t each, int64_t index) {
    return static_cast<size_t>(cell.row * each + index);
  }
  // An empty cell of a sample that has a length. It must be after the end; finish() checks that.
  bool skipped(const CsvCell& cell) const { return lengths_ >= 0 && cell.text.empty(); }
  Status begin_inputs();
  Status add_weight(const CsvCell& cell);
  Status add_length(const CsvCell& cell);
  Status add_input(const CsvCell& cell);
  Status add_target(const CsvCell& cell);
  Result<int32_t> class_of(const CsvCell& cell);

  const CsvFile& file_;
  const std::string& path_;
  const InputSchema& w_;
  const DatasetOptions& options_;
  const int64_t weights_, lengths_;
  const std::vector<int64_t>& places_;
  LoadedDataset& out_;
  Targets targets_ = Targets::numbers;
  std::map<std::string, int32_t, std::less<>> classes_;  // by name
};

Status CsvDataset::begin_inputs() {
  Dataset& data = out_.data;
  data.samples = file_.rows();
  data.sample = w_.sample;
  const auto inputs = static_cast<size_t>(data.samples * w_.values);
  LOOM_ASSIGN(out_.memory, options_.memory.take(inputs * sizeof(float), "the values", path_));
  w_.ids ? data.ids.resize(inputs) : data.inputs.resize(inputs);
  return {};
}

Status CsvDataset::begin(bool numeric) {
  if (options_.inputs_only) return begin_inputs();
  Dataset& data = out_.data;
  const bool labels = options_.classes && (w_.takes(options_.targets) || options_.sequences) &&
                      (w_.outputs > 1 || w_.embeddings);
  if (labels) {
    const bool text = !options_.names.empty() || !numeric;
    targets_ = text && options_.targets == 1 ? Targets::names : Targets::labels;
    data.classes = w_.outputs;
    out_.names = targets_ == Targets::names ? options_.names : std::vector<std::string>();
    for (const std::string& name : out_.names)
      classes_.emplace(name, static_cast<int32_t>(classes_.size()));
  } else if (options_.targets != w_.rows * w_.outputs) {
    return bad_file(cat("a target has ", options_.targets, " values, the network gives ",
                        w_.rows * w_.outputs, "; --targets says how many columns there are"),
                    path_);
  } else {
    data.outputs = options_.targets;
  }
  data.samples = file_.rows();
  data.sample = w_.sample;
  const auto inputs = static_cast<size_t>(data.samples * w_.values);
  const auto targets = static_cast<size_t>(data.samples * options_.targets);
  LOOM_ASSIGN(out_.memory,
              options_.memory.take((inputs + targets) * sizeof(float), "the values", path_));
  w_.ids ? data.ids.resize(inputs) : data.inputs.resize(inputs);
  labels ? data.labels.resize(targets) : data.targets.resize(targets);
  return {};
}

Status CsvDataset::add_weight(const CsvCell& cell) {
  LOOM_ASSIGN(const float value, file_.number(cell));
  out_.data.weights.push_back(value);
  return {};
}

Status CsvDataset::add_length(const CsvCell& cell) {
  LOOM_ASSIGN(const int32_t length, whole_cell(file_, cell, w_.sample[0] + 1, "length"));
  if (length == 0) return file_.error(cell, "a length of 0; a sample has at least one position");
  out_.data.lengths.push_back(length);
  return {};
}

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kMissingId = -1;

Status CsvDataset::add_input(const CsvCell& cell) {
  if (w_.ids) {
    int32_t id = kMissingId;
    if (!skipped(cell)) {
      LOOM_ASSIGN(id, whole_cell(file_, cell, w_.vocab, "id"));
    }
    out_.data.ids[at(cell, w_.values, place_of(cell))] = id;
    return {};
  }
  float value = kMissing;
  if (!skipped(cell)) {
    LOOM_ASSIGN(value, file_.number(cell));
  }
  out_.data.inputs[at(cell, w_.values, place_of(cell))] = value;
  return {};
}

Status CsvDataset::add_target(const CsvCell& cell) {
  const size_t here = at(cell, options_.targets, place_of(cell) - w_.values);
  if (targets_ == Targets::numbers) {
    float value = kMissing;
    if (!skipped(cell)) {
      LOOM_ASSIGN(value, file_.number(cell));
    }
    out_.data.targets[here] = value;
    return {};
  }
  int32_t label = kMissingId;
  if (skipped(cell)) {
    // Padding, or Dataset::check() finds it.
  } else if (targets_ == Targets::names) {
    LOOM_ASSIGN(label, class_of(cell));
  } else {
    const int64_t limit = w_.classes_of(static_cast<size_t>(place_of(cell) - w_.values));
    LOOM_ASSIGN(label, whole_cell(file_, cell, limit, "label", options_.ignored));
  }
  out_.data.labels[here] = label;
  return {};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Text labels become classes in order of first appearance; names that training knows come first.
Result<int32_t> CsvDataset::class_of(const CsvCell& cell) {
  const auto at = classes_.find(cell.text);
  if (at != classes_.end()) return at->second;
  if (!options_.names.empty())
    return file_.error(cell, cat("class '", printable(cell.text), "' was not in training"));
  const auto next = static_cast<int32_t>(classes_.size());
  if (next == (w_.embeddings ? InputSchema::kMaxLabels : w_.outputs)) {
    return file_.error(cell, cat("'", printable(cell.text), "' would be class ", next,
                                 ", but the network has ", w_.outputs, " outputs"));
  }
  if (!is_utf8(cell.text))
    return file_.error(cell,
                       cat("'", printable(cell.text), "' is not UTF-8; save the table as UTF-8"));
  classes_.emplace(std::string(cell.text), next);
  out_.names.emplace_back(cell.text);
  return next;
}

std::string header_note(const std::vector<std::string>& header, const std::string& path) {
  std::vector<std::string> names;
  for (const std::string& name : header) {
    if (names.size() == 8) break;
    names.push_back(printable(name, 24));
  }
  if (names.size() < header.size()) names.emplace_back("...");
  return cat(path, ": the first row is taken as the header: ", join(names, ", "));
}

// The column of that name or number, from 0; -1 if `name` is empty. `what` names its contents. The
// target stays last, and its cells decide whether labels are text.
Result<int64_t> column_of(const CsvFile& file, const std::string& name, std::string_view what,
                          const std::string& path) {
  if (name.empty()) return int64_t{-1};
  const auto& header = file.header();
  int64_t column = std::find(header.begin(), header.end(), name) - header.begin();
  if (column == static_cast<int64_t>(header.size())) {
    column = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), column);
    const bool number = code == std::errc() && end == name.data() + name.size();
    if (!number || column < 1 || column > file.cols())
      return bad_file(cat("no column '", printable(name), "' for the ", what, " of samples"), path);
    --column;
  }
  if (column + 1 < file.cols()) return column;
  return bad_file(
      cat("the ", what, " of samples are in the last column, which is the target's; move them"),
      path);
}

// Whether every cell of the last target is a number. Only a target that is not in the last column
// takes a pass of its own.
Result<bool> target_is_numeric(CsvFile& file, const std::vector<int64_t>& column_index,
                               int64_t inputs) {
  const int64_t column =
      std::max_element(column_index.begin(), column_index.end()) - column_index.begin();
  if (column + 1 == file.cols() || column_index[static_cast<size_t>(column)] < inputs)
    return file.last_is_numeric();
  bool numeric = true;
  LOOM_TRY(file.read([&](const CsvCell& cell) -> Status {
    if (cell.col == column) numeric = numeric && file.number(cell).ok();
    return {};
  }));
  return numeric;
}

Result<LoadedDataset> from_csv(ByteSource source, const std::string& path, const InputSchema& w,
                               const DatasetOptions& options) {
  if (!options.labels.empty())
    return invalid("a CSV holds its targets in its last columns; leave --labels out", path);
  const bool weighted = !options.weights.empty(), early = !options.lengths.empty();
  const int64_t cols = w.values + options.targets + (weighted ? 1 : 0) + (early ? 1 : 0);
  LOOM_ASSIGN(CsvFile file, CsvFile::open(std::move(source), cols, options.header));
  if (file.rows() == 0 && file.cols() <= cols)
    return bad_file("the dataset is empty: no samples", path);
  const bool inputs_alone =
      options.inputs_only && file.cols() == w.values + (early ? 1 : 0) && !weighted;
  if (file.cols() != cols && !inputs_alone) {
    return bad_file(cat(file.cols() > cols ? "at least " : "", file.cols(), " columns, must be ",
                        w.values, " for the network's input ", w.sample.str(), " and ",
                        options.targets, " for the target", weighted ? " and 1 for weights" : "",
                        early ? " and 1 for lengths" : ""),
                    path);
  }
  LoadedDataset out;
  for (const std::string& name : file.header()) {
    if (!is_utf8(name))
      return bad_file(
          cat("the column '", printable(name), "' is not UTF-8; save the table as UTF-8"), path);
  }
  if (!file.header().empty()) out.notes.push_back(header_note(file.header(), path));
  if (file.trailing_separator())
    out.notes.push_back(
        cat(path, ": rows end with a separator; the empty last column is left out"));
  if (file.header().empty() && !options.columns.empty())
    out.notes.push_back(
        cat(path, ": has no header; its columns are taken in the order of training"));
  LOOM_ASSIGN(const int64_t weights, column_of(file, options.weights, "weights", path));
  LOOM_ASSIGN(const int64_t lengths, column_of(file, options.lengths, "lengths", path));
  TableLayout layout{file.header(), file.cols(), w.values, inputs_alone ? 0 : options.targets, {}};
  for (const int64_t other : {weights, lengths}) {
    if (other >= 0) layout.others.push_back(other);
  }
  LOOM_ASSIGN(const std::vector<int64_t> column_index,
              places_of_columns(layout, options.columns, path));
  out.columns = names_of_columns(layout, column_index);
  LOOM_ASSIGN(const bool numeric, target_is_numeric(file, column_index, w.values));
  CsvDataset cells(file, path, w, options, weights, lengths, column_index, out);
  LOOM_TRY(cells.begin(numeric));
  LOOM_TRY(file.read([&](const CsvCell& cell) { return cells.add_told(cell); }));
  return out;
}

}  // namespace

Result<LoadedDataset> load_dataset(const FileRef& path, const NetworkSpec& network,
                                   const DatasetOptions& options) {
  LOOM_ASSIGN(const InputSchema schema, wanted_by(network, options));
  // UTF-16 begins as some sounds do.
  bool media = false;
  if (options.columns.plan.empty()) {
    LOOM_ASSIGN(media, are_media(path));
  }
  if (media) {
    LOOM_TRY(one_input(schema, "a folder", path));
    return load_media(path, schema, options);
  }
  LOOM_ASSIGN(ByteSource source, ByteSource::open(path, options.memory));
  LOOM_ASSIGN(const auto head, source.next());
  if (head.empty()) return bad_file("the dataset is empty: no bytes", path);
  LoadedDataset out;
  const bool wide = !options.columns.plan.empty() && may_be_wide(head);  // a table in UTF-16
  if (const auto foreign = foreign_file(head, path, true); foreign && !wide) return *foreign;
  if (ArrayFile::known(head)) {
    LOOM_ASSIGN(ArrayFile arrays, ArrayFile::from(std::move(source)));
    LOOM_ASSIGN(out, from_arrays(std::move(arrays), path, schema, options));
  } else if (!options.columns.plan.empty()) {
    LOOM_TRY(one_input(schema, "a CSV", path));
    LOOM_ASSIGN(out, load_table(std::move(source), schema, options));
  } else {
    const auto start = head.first(std::min<size_t>(head.size(), 4096));
    if (std::find(start.begin(), start.end(), std::byte{0}) != start.end())
      return bad_file("neither CSV, NPY, NPZ, IDX nor safetensors", path, 0);
    LOOM_TRY(one_input(schema, "a CSV", path));
    LOOM_ASSIGN(out, from_csv(std::move(source), path, schema, options));
  }
  out.data.ignored = options.ignored;
  LOOM_TRY(out.data.check_lengths());
  out.data.clear_padding();
  if (schema.embeddings) count_classes(out.data);
  const Status fine = options.inputs_only ? out.data.check_inputs() : out.data.check();
  if (!fine.ok()) return bad_file(fine.error().message, path);
  return out;
}

void add_dataset(const Dataset& data, BitsHash& hash) {
  static_assert(sizeof(int32_t) == sizeof(float));  // only hashed, as bytes
  const auto as_floats = [](const std::vector<int32_t>& values) {
    return std::span(reinterpret_cast<const float*>(values.data()), values.size());
  };
  hash.add(data.inputs);
  std::vector<float> row(data.source != nullptr ? static_cast<size_t>(data.sample.count()) : 0);
  for (int64_t i = 0; i < data.samples && data.source != nullptr; ++i) {
    if (!data.read_inputs(i, row.data()).ok()) break;  // training says what is wrong
    hash.add(row);
  }
  hash.add(as_floats(data.ids));
  for (const ExtraInput& input : data.more) {
    hash.add(input.values);
    hash.add(as_floats(input.ids));
  }
  hash.add(data.targets);
  hash.add(as_floats(data.labels));
  hash.add(data.weights);
  hash.add(as_floats(data.lengths));
  if (data.ignored) hash.add(as_floats({*data.ignored}));
}

std::string hash_dataset(const Dataset& data) {
  BitsHash hash;
  add_dataset(data, hash);
  return hash.hex();
}

}  // namespace loom::core
