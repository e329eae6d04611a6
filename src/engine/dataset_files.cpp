// See dataset_files.hpp. What the network takes and gives (ids or numbers, how many, how many
// classes) is asked once, of a network finalized for one sample.
#include "engine/dataset_files.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text.hpp"
#include "engine/training_parts.hpp"
#include "grid/network.hpp"
#include "io/array_file.hpp"
#include "io/csv.hpp"

namespace loom {
namespace {

struct Wanted {
  Shape sample;
  int64_t values = 0;  // of one input
  bool ids = false;    // the input are ids below `vocab`
  int64_t vocab = 0;
  int64_t rows = 0;     // predictions per sample
  int64_t outputs = 0;  // values per prediction
  // How many classes each label of a prediction has: the outputs, or the widths of several heads.
  std::vector<int64_t> classes;
  int64_t labels() const { return rows * static_cast<int64_t>(classes.size()); }
  int64_t classes_of(size_t label) const { return classes[label % classes.size()]; }
};

Result<Wanted> wanted_by(const NetworkSpec& network, const std::vector<int64_t>& heads) {
  LOOM_ASSIGN(const Network whole, Network::finalize(network.grid, network.input.after(1)));
  Wanted w;
  w.sample = network.input;
  w.values = network.input.count();
  w.vocab = whole.vocab();
  w.ids = w.vocab > 0;
  w.rows = whole.output().rows();
  w.outputs = whole.output().last();
  w.classes = heads.empty() ? std::vector<int64_t>{w.outputs} : heads;
  const int64_t sum = std::accumulate(w.classes.begin(), w.classes.end(), int64_t{0});
  if (sum == w.outputs) return w;
  return invalid(cat("the heads have ", sum, " values together, the network gives ", w.outputs));
}

// Numbers from 0 to limits - 1 (value i has limit i mod their count), or the Error of the first
// that is not.
Status check_below(const std::vector<int32_t>& values, const std::vector<int64_t>& limits,
                   std::string_view what, int64_t samples, const std::string& where) {
  const int64_t each = std::max<int64_t>(static_cast<int64_t>(values.size()) / samples, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t limit = limits[i % limits.size()];
    if (values[i] >= 0 && values[i] < limit) continue;
    return bad_file(cat("sample ", static_cast<int64_t>(i) / each, ": ", what, " ", values[i],
                        " must be from 0 to ", limit - 1),
                    where);
  }
  return {};
}

// ---- arrays -------------------------------------------------------------------------------------

Result<int64_t> samples_of(const ArrayView& array) {
  if (array.shape.empty()) return bad_file("the array has no axis of samples", array.where);
  if (array.shape[0] < 1) return bad_file("the dataset is empty: no samples", array.where);
  return array.shape[0];
}

Status set_inputs(const ArrayView& x, bool idx, const Wanted& w, Dataset& data) {
  LOOM_ASSIGN(data.samples, samples_of(x));
  data.sample = w.sample;
  if (x.count() != data.samples * w.values) {
    ArrayView one = x;
    one.shape.erase(one.shape.begin());
    return bad_file(cat("a sample is ", one.shape_text(), ", the network takes ", w.sample.str()),
                    x.where);
  }
  if (w.ids) {
    LOOM_ASSIGN(data.ids, array_i32(x));
    return check_below(data.ids, {w.vocab}, "id", data.samples, x.where);
  }
  const bool picture = idx && x.type == ElementType::u8;
  LOOM_ASSIGN(data.inputs, array_f32(x, picture ? 1.0f / 255.0f : 1.0f));
  return {};
}

Status set_targets(const ArrayView& y, const Wanted& w, const DatasetOptions& options,
                   Dataset& data) {
  LOOM_ASSIGN(const int64_t samples, samples_of(y));
  if (samples != data.samples) {
    return bad_file(cat(samples, " targets for ", data.samples, " samples"), y.where);
  }
  const int64_t each = y.count() / samples;
  if (options.classes && is_whole(y.type) && each == w.labels() && w.outputs > 1) {
    LOOM_ASSIGN(data.labels, array_i32(y));
    data.classes = w.outputs;
    return check_below(data.labels, w.classes, "label", samples, y.where);
  }
  if (each != w.rows * w.outputs) {
    return bad_file(cat("a target has ", each, " values, the network gives ", w.rows * w.outputs),
                    y.where);
  }
  data.outputs = each;
  LOOM_ASSIGN(data.targets, array_f32(y));
  return {};
}

Result<LoadedDataset> from_arrays(ArrayFile file, const std::string& path, const Wanted& w,
                                  const DatasetOptions& options) {
  LoadedDataset out;
  LOOM_ASSIGN(const ArrayView x, file.find(options.x));
  LOOM_TRY(set_inputs(x, file.kind() == ArrayFile::Kind::idx, w, out.data));
  const bool one = file.kind() == ArrayFile::Kind::idx || file.kind() == ArrayFile::Kind::npy;
  if (options.labels.empty()) {
    if (one) return invalid("holds the inputs alone; give the targets with --labels FILE", path);
    LOOM_ASSIGN(const ArrayView y, file.find(options.y));
    LOOM_TRY(set_targets(y, w, options, out.data));
    return out;
  }
  LOOM_ASSIGN(const ArrayFile labels, ArrayFile::open(options.labels));
  LOOM_ASSIGN(const ArrayView y, labels.find(options.y));
  LOOM_TRY(set_targets(y, w, options, out.data));
  return out;
}

// ---- CSV ----------------------------------------------------------------------------------------

Result<int32_t> whole_cell(const CsvTable& table, int64_t row, int64_t col, int64_t limit,
                           std::string_view what) {
  LOOM_ASSIGN(const float value, table.number(row, col));
  if (value == std::floor(value) && value >= 0.0f && value < static_cast<float>(limit))
    return static_cast<int32_t>(value);
  return table.error(row, col,
                     cat(what, " ", printable(table.cell(row, col)),
                         " must be a whole number from 0 to ", limit - 1));
}

Status set_csv_inputs(const CsvTable& table, const Wanted& w, Dataset& data) {
  for (int64_t row = 0; row < data.samples; ++row) {
    for (int64_t col = 0; col < w.values; ++col) {
      if (w.ids) {
        LOOM_ASSIGN(const int32_t id, whole_cell(table, row, col, w.vocab, "id"));
        data.ids.push_back(id);
      } else {
        LOOM_ASSIGN(const float value, table.number(row, col));
        data.inputs.push_back(value);
      }
    }
  }
  return {};
}

// Text labels become classes in order of first appearance; names that training knows come first.
Status set_csv_names(const CsvTable& table, int64_t col, const Wanted& w,
                     const std::vector<std::string>& known, LoadedDataset& out) {
  out.names = known;
  std::map<std::string, int32_t, std::less<>> index;
  for (size_t i = 0; i < known.size(); ++i) index[known[i]] = static_cast<int32_t>(i);
  for (int64_t row = 0; row < table.rows(); ++row) {
    const std::string_view cell = table.cell(row, col);
    auto at = index.find(cell);
    if (at == index.end()) {
      if (!known.empty())
        return table.error(row, col, cat("class '", printable(cell), "' was not in training"));
      if (static_cast<int64_t>(index.size()) == w.outputs) {
        return table.error(row, col,
                           cat("'", printable(cell), "' would be class ", index.size(),
                               ", but the network has ", w.outputs, " outputs"));
      }
      at = index.emplace(std::string(cell), static_cast<int32_t>(index.size())).first;
      out.names.emplace_back(cell);
    }
    out.data.labels.push_back(at->second);
  }
  out.data.classes = w.outputs;
  return {};
}

Status set_csv_targets(const CsvTable& table, const Wanted& w, const DatasetOptions& options,
                       LoadedDataset& out) {
  Dataset& data = out.data;
  const int64_t first = table.cols() - options.targets;
  const bool labels = options.classes && options.targets == w.labels() && w.outputs > 1;
  if (labels && options.targets == 1 && (!options.names.empty() || !table.is_numeric(first)))
    return set_csv_names(table, first, w, options.names, out);
  if (labels) {
    data.classes = w.outputs;
  } else if (options.targets != w.rows * w.outputs) {
    return table.error(0, first,
                       cat("a target has ", options.targets, " values, the network gives ",
                           w.rows * w.outputs, "; --targets says how many columns there are"));
  } else {
    data.outputs = options.targets;
  }
  for (int64_t row = 0; row < data.samples; ++row) {
    for (int64_t col = first; col < table.cols(); ++col) {
      if (labels) {
        const int64_t limit = w.classes_of(static_cast<size_t>(col - first));
        LOOM_ASSIGN(const int32_t label, whole_cell(table, row, col, limit, "label"));
        data.labels.push_back(label);
      } else {
        LOOM_ASSIGN(const float value, table.number(row, col));
        data.targets.push_back(value);
      }
    }
  }
  return {};
}

Result<LoadedDataset> from_csv(std::span<const std::byte> bytes, const std::string& path,
                               const Wanted& w, const DatasetOptions& options) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, 4096).find('\0') != std::string_view::npos)
    return bad_file("neither CSV, NPY, NPZ, IDX nor safetensors", path, 0);
  LOOM_ASSIGN(const CsvTable table, CsvTable::parse(text, path));
  if (table.rows() == 0) return bad_file("the dataset is empty: no samples", path);
  if (!options.labels.empty())
    return invalid("a CSV holds its targets in its last columns; leave --labels out", path);
  if (table.cols() != w.values + options.targets) {
    return bad_file(cat(table.cols(), " columns, must be ", w.values, " for the network's input ",
                        w.sample.str(), " and ", options.targets, " for the target"),
                    path);
  }
  LoadedDataset out;
  out.data.samples = table.rows();
  out.data.sample = w.sample;
  LOOM_TRY(set_csv_inputs(table, w, out.data));
  LOOM_TRY(set_csv_targets(table, w, options, out));
  return out;
}

}  // namespace

Result<LoadedDataset> load_dataset(const std::string& path, const NetworkSpec& network,
                                   const DatasetOptions& options) {
  LOOM_ASSIGN(const Wanted wanted, wanted_by(network, options.heads));
  LOOM_ASSIGN(DataFile file, DataFile::open(path));
  if (file.bytes().empty()) return bad_file("the dataset is empty: no bytes", path);
  LoadedDataset out;
  if (ArrayFile::known(file.bytes())) {
    LOOM_ASSIGN(ArrayFile arrays, ArrayFile::from(std::move(file), path));
    LOOM_ASSIGN(out, from_arrays(std::move(arrays), path, wanted, options));
  } else {
    LOOM_ASSIGN(out, from_csv(file.bytes(), path, wanted, options));
  }
  const Status fine = out.data.check();
  if (!fine.ok()) return bad_file(fine.error().message, path);
  return out;
}

void add_dataset(const Dataset& data, BitsHash& hash) {
  static_assert(sizeof(int32_t) == sizeof(float));  // only hashed, as bytes
  const auto as_floats = [](const std::vector<int32_t>& values) {
    return std::span(reinterpret_cast<const float*>(values.data()), values.size());
  };
  hash.add(data.inputs);
  hash.add(as_floats(data.ids));
  hash.add(data.targets);
  hash.add(as_floats(data.labels));
}

std::string hash_dataset(const Dataset& data) {
  BitsHash hash;
  add_dataset(data, hash);
  return hash.hex();
}

}  // namespace loom
