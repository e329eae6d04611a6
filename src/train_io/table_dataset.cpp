#include "train_io/table_dataset.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "io/files/foreign_file.hpp"
#include "table/encoder.hpp"
#include "table/text_source.hpp"
#include "train_io/target_scale.hpp"
#include "train_io/training_files.hpp"

namespace loom::core {
namespace {

// The labels of samples, numbered in any order: only which are equal matters to a split.
std::vector<int32_t> split_labels(const Table& table, const TablePlan& plan,
                                  const std::vector<int64_t>& rows) {
  std::vector<int32_t> out;
  if (!plan.has_classes()) return out;
  const auto target = std::ranges::find(plan.columns, ColumnRole::target, &TableColumn::role);
  const ColumnData& column = table.columns[static_cast<size_t>(target - plan.columns.begin())];
  const int64_t ahead = plan.window.rows > 0 ? plan.window.horizon : 0;
  for (const int64_t row : rows) {
    const auto i = static_cast<size_t>(row + ahead);
    out.push_back(column.codes.empty() ? static_cast<int32_t>(column.values[i]) : column.codes[i]);
  }
  return out;
}

// Which rows of the table the split trains. With windows these are all rows up to the last target.
Result<std::vector<bool>> training_rows(const Table& table, const TablePlan& plan,
                                        const std::optional<SplitSpec>& split,
                                        const std::vector<int64_t>& rows) {
  std::vector<bool> out;
  if (!split) return out;
  if (table.rows > std::numeric_limits<int32_t>::max())
    return unsupported("has more than 2^31 rows", table.path);
  Dataset samples;
  samples.samples = std::ssize(rows);
  samples.sample = Shape{1};
  samples.ids.assign(rows.begin(), rows.end());
  samples.labels = split_labels(table, plan, rows);
  SplitSpec spec = *split;
  if (plan.window.rows > 0) spec.shuffle = false;
  Result<SplitDataset> parts = split_dataset(std::move(samples), spec);
  if (!parts.ok()) return invalid(parts.error().message, table.path);
  out.resize(static_cast<size_t>(table.rows), false);
  for (const int32_t row : parts->train.ids) out[static_cast<size_t>(row)] = true;
  if (plan.window.rows == 0) return out;
  const auto last = static_cast<size_t>(parts->train.ids.back() + plan.window.horizon);
  for (size_t row = 0; row < out.size(); ++row) out[row] = row <= last;
  return out;
}

// Windows take rows as they are in the file; a column of times should ascend.
void note_order(const Table& table, const TablePlan& plan, std::vector<std::string>& notes) {
  if (plan.window.rows == 0) return;
  for (const ColumnData& column : table.columns) {
    if (column.kind != ColumnKind::date || std::ranges::is_sorted(column.values)) continue;
    notes.push_back(cat(table.path, ": the rows are not in the order of '", printable(column.name),
                        "'; windows take them as they are"));
  }
}

Error no_samples(const Table& table, const WindowSpec& window) {
  if (window.rows == 0) return bad_file("no row has a target", table.path);
  return bad_file(cat("has ", table.rows, " rows, too few for a window of ", window.rows,
                      " and a target ", window.horizon, " later"),
                  table.path);
}

// A text that begins as JSON does.
bool looks_like_json(std::string_view text) {
  const std::string_view s = trimmed_cell(text.substr(0, 64));
  return s.starts_with("{\"") || s.starts_with("[{") || s.starts_with("{\n") ||
         s.starts_with("[\n");
}

// Whether the samples of a plan fit the network.
Status check_table(const Dataset& data, const InputSchema& w, const std::string& path) {
  if (data.sample.count() != w.values) {
    return invalid(
        cat("the plan of the table gives ", data.sample.count(), " values, the network takes ",
            w.sample.str(), "; loom new --for DATA writes a network that fits"),
        path);
  }
  if (data.has_labels() && !w.embeddings && data.classes > w.outputs) {
    return invalid(
        cat("the target has ", data.classes, " classes, the network has ", w.outputs, " outputs"),
        path);
  }
  if (data.targets.empty() || data.outputs == w.rows * w.outputs) return {};
  return invalid(cat("the table has ", data.outputs, " numeric targets, the network gives ",
                     w.rows * w.outputs),
                 path);
}

// Widths of the hidden layers: more for more samples.
std::vector<int64_t> hidden_widths(int64_t samples) {
  if (samples < 300) return {32};
  if (samples < 3000) return {64, 32};
  return {128, 64};
}

}  // namespace

Result<PlannedTable> plan_table(const FileRef& path, const PlanRequest& request) {
  LOOM_ASSIGN(ByteSource source, ByteSource::open(path, request.memory));
  LOOM_ASSIGN(const auto head, source.next());
  if (head.empty()) return bad_file("the dataset is empty: no bytes", path);
  const auto foreign = foreign_file(head, path, true);
  if (foreign && !is_utf16(head)) return *foreign;
  if (looks_like_json({reinterpret_cast<const char*>(head.data()), head.size()}))
    return bad_file("is JSON, not a table; write it as .csv", path);
  TableReading how;
  how.dialect = request.dialect;
  for (const auto* names : {&request.plan.target, &request.plan.drop, &request.plan.columns})
    how.dialect.names.insert(how.dialect.names.end(), names->begin(), names->end());
  LOOM_ASSIGN(const Table table, read_table(std::move(source), how));
  PlannedTable out;
  out.notes = table.notes;
  LOOM_ASSIGN(out.plan, roles_of(table, request.plan, out.notes));
  const std::vector<int64_t> rows = rows_with_targets(table, out.plan);
  out.samples = std::ssize(rows);
  if (rows.empty()) return no_samples(table, out.plan.window);
  note_order(table, out.plan, out.notes);
  if (request.split) {
    const bool draws = request.split->shuffle && out.plan.window.rows == 0;
    out.plan.split = {request.split->share, draws ? request.split->seed : 1, draws};
  }
  LOOM_ASSIGN(const std::vector<bool> trains, training_rows(table, out.plan, request.split, rows));
  LOOM_TRY(fit_plan(table, trains, request.plan.one_hot_limit, out.plan, out.notes));
  return out;
}

std::string note_on_split(const TableColumns& columns, const SplitSpec& spec) {
  if (columns.plan.empty()) return {};
  const Result<JsonValue> json = parse_json(columns.plan, "plan");
  const Result<TablePlan> plan = json.ok() ? read_plan(*json, "plan") : json.error();
  const PlanSplit split{spec.share, spec.shuffle ? spec.seed : 1, spec.shuffle};
  if (!plan.ok() || (spec.folds == 0 && plan->split == split)) return {};
  return "means and levels of the table are of other rows than those that train; make the network "
         "with the same split";
}

TableColumns columns_of(const TablePlan& plan) {
  return {plan.inputs(), plan.targets(), dump_json(plan_json(plan))};
}

bool may_be_wide(std::span<const std::byte> head) {
  return is_utf16(head);
}

Result<LoadedDataset> load_table(ByteSource source, const InputSchema& network,
                                 const DatasetOptions& options) {
  const std::string path = source.where();
  LOOM_ASSIGN(const JsonValue json, parse_json(options.columns.plan, "the plan of the table"));
  LOOM_ASSIGN(const TablePlan plan, read_plan(json, "the plan of the table"));
  TableReading how;
  how.dialect = options.dialect;
  if (options.header != CsvHeader::automatic) how.dialect.header = options.header == CsvHeader::yes;
  how.types = types_of(plan, !options.inputs_only);
  for (const TableColumn& c : plan.columns) how.order.push_back(c.name);
  how.known = how.order;
  how.by_order = options.by_order;
  how.dialect.usual = plan.numbers;
  how.progress = options.progress;
  LOOM_ASSIGN(const Table table, read_table(std::move(source), how));
  LoadedDataset out;
  const auto values = static_cast<uint64_t>(table.rows) * static_cast<uint64_t>(plan.width() + 1) *
                      static_cast<uint64_t>(std::max<int64_t>(plan.window.rows, 1));
  LOOM_ASSIGN(out.memory, options.memory.take(values * sizeof(float), "the values", path));
  LOOM_ASSIGN(EncodedTable encoded, encode_table(table, plan, !options.inputs_only));
  out.notes = table.notes;
  out.notes.insert(out.notes.end(), encoded.notes.begin(), encoded.notes.end());
  Dataset& data = out.data;
  data.samples = encoded.samples;
  data.ordered = plan.window.rows > 0;
  data.sample = plan.window.rows > 0 ? Shape{plan.window.rows, plan.width()} : Shape{plan.width()};
  data.inputs = std::move(encoded.inputs);
  data.targets = std::move(encoded.targets);
  data.labels = std::move(encoded.labels);
  data.weights = std::move(encoded.weights);
  out.names = plan.classes();
  if (!data.targets.empty()) data.outputs = plan.outputs();
  if (!data.labels.empty()) data.classes = plan.outputs();
  out.columns = options.columns;
  LOOM_TRY(check_table(data, network, path));
  return out;
}

Result<std::string> describe_network(const TablePlan& plan, int64_t samples) {
  const std::vector<int64_t> widths = hidden_widths(samples);
  const int64_t in = plan.width(), out = plan.outputs();
  Result<NetworkSpec> spec = [&] {
    if (plan.window.rows == 0) return build_mlp({in, out, widths});
    return build_recurrent({.in = in,
                            .out = out,
                            .time = plan.window.rows,
                            .hidden = {widths[0]},
                            .dense = {widths.begin() + 1, widths.end()}});
  }();
  if (!spec.ok()) return spec.error();
  if (plan.scale_target && !plan.has_classes()) {
    Normalization stage;
    for (const TableColumn& c : plan.columns) {
      if (c.role != ColumnRole::target) continue;
      stage.shift.push_back(static_cast<float>(c.mean));
      stage.scale.push_back(static_cast<float>(c.deviation));
    }
    if (auto scaled = add_target_scale(*spec, stage)) *spec = std::move(*scaled);
  }
  return description_text(*spec, columns_of(plan));
}

}  // namespace loom::core
