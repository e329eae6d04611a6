// loom predict: a network's predictions for samples of a file, as CSV, JSON or NPZ.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

#include "../plots/learning.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "table_flags.hpp"

namespace loom::cli {
namespace {

struct PredictFlags {
  MediaFlags media;
  TableTextFlags text;
  EngineFlags engine;
  MemoryFlags memory;
  WeightFlags weight_flags;
  std::string model, data, x = "x", lengths, header = "auto", dtype, output;
  bool force = false;
  int64_t targets = 1, batch = 64, top = 0;
  bool proba = false, json = false, quiet = false, columns_by_order = false;
};

// Outputs of all samples, and their classes if they are class scores.
struct Predicted {
  Tensor outputs, probabilities;
  NetworkInfo network;
  int64_t samples = 0, width = 1;
  std::vector<int64_t> heads;      // of a row; a single one of the whole width without heads
  bool classes = false;            // outputs are class scores
  std::vector<std::string> files;  // of the samples, if each is a file

  int64_t rows() const { return outputs.size() / width; }
  int64_t rows_per_sample() const { return rows() / std::max<int64_t>(samples, 1); }
};

std::span<const float> row_of(const Tensor& t, int64_t row, int64_t width) {
  const auto values = t.values<float>();
  return values->subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
}

// Classes of a row of scores, best first; equal ones by number.
std::vector<int64_t> ranked(std::span<const float> scores, int64_t most) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](int64_t a, int64_t b) {
    const float sa = scores[static_cast<size_t>(a)], sb = scores[static_cast<size_t>(b)];
    return sa > sb || (sa == sb && a < b);
  };
  const auto kept = std::min<size_t>(order.size(), static_cast<size_t>(most));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    better);
  order.resize(kept);
  return order;
}

std::string class_text(const Predicted& p, int64_t index) {
  const auto& names = p.network.classes;
  if (index < static_cast<int64_t>(names.size())) return names[static_cast<size_t>(index)];
  return fmt::format("{}", index);
}

Result<DatasetOptions> reading(const PredictFlags& f) {
  DatasetOptions options;
  options.x = f.x;
  options.targets = f.targets;
  options.lengths = f.lengths;
  options.inputs_only = true;
  options.columns_by_order = f.columns_by_order;
  LOOM_ASSIGN(options.header, parse_csv_header(f.header));
  LOOM_TRY(f.media.set(options));
  f.text.set(options);
  return options;
}

Result<Tensor> first_output(Session& session, const std::vector<Tensor>& inputs) {
  if (inputs.size() == 1) return session.run(inputs[0]);
  LOOM_ASSIGN(const std::vector<Tensor> outputs, session.run(inputs));
  return outputs[0];
}

// In pieces, for progress and Ctrl-C.
Result<Tensor> run_all(const PredictFlags& f, const Network& net, const Dataset& data) {
  const int64_t samples = data.samples(), batch = std::min(f.batch, samples);
  LOOM_ASSIGN(Session session, net.session({.max_batch = batch, .lengths = !f.lengths.empty()}));
  std::vector<int64_t> lengths;
  if (!f.lengths.empty()) {
    LOOM_ASSIGN(const Tensor real, data.lengths().to(DType::int64));
    LOOM_ASSIGN(const std::span<const int64_t> values, real.values<int64_t>());
    lengths.assign(values.begin(), values.end());
  }
  Shape shape = net.info().output;
  shape.insert(shape.begin(), samples);
  LOOM_ASSIGN(Tensor outputs, Tensor::zeros(shape));
  LOOM_ASSIGN(const std::span<float> to, outputs.mutable_values<float>());
  const int64_t each = outputs.size() / samples;
  Progress bar("predicting", "samples", f.quiet);
  for (int64_t first = 0; first < samples; first += batch) {
    if (interrupted()) return Error{Code::cancelled, "stopped", {}, -1};
    LOOM_ASSIGN(const Tensor piece, data.inputs(first, std::min(batch, samples - first)));
    if (!lengths.empty()) {
      const auto at = static_cast<size_t>(first), count = static_cast<size_t>(piece.shape()[0]);
      LOOM_TRY(session.set_lengths(std::span(lengths).subspan(at, count)));
    }
    std::vector<Tensor> inputs = {piece};
    for (size_t i = 1; i < net.info().inputs.size(); ++i) {
      LOOM_ASSIGN(inputs.emplace_back(),
                  data.input(net.info().inputs[i].name, first, piece.shape()[0]));
    }
    LOOM_ASSIGN(const Tensor y, first_output(session, inputs));
    LOOM_ASSIGN(const auto values, y.values<float>());
    std::copy(values.begin(), values.end(), to.begin() + first * each);
    bar.update(std::min(first + batch, samples), samples);
  }
  bar.finish();
  return outputs;
}

Result<Predicted> predict(const PredictFlags& f, const Engine& engine) {
  LoadOptions load{.for_training = false,
                   .allow_nonfinite = f.weight_flags.allow_nonfinite,
                   .state_dict = f.weight_flags.answers,
                   .engine = engine};
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(load.dtype, parse_dtype(f.dtype));
  }
  LOOM_ASSIGN(const Network net, Network::load(f.model, load));
  if (net.info().fresh) {
    return Error{Code::invalid_argument,
                 "this is a description without weights; train it first: loom train", f.model, -1};
  }
  LOOM_ASSIGN(const DatasetOptions how, reading(f));
  LOOM_ASSIGN(const Dataset data, read_samples(f.data, net, how));
  if (!f.quiet) {
    for (const std::string& text : data.notes()) note(text);
  }
  Predicted p;
  p.network = net.info();
  p.samples = data.samples();
  p.files = data.files();
  LOOM_ASSIGN(p.outputs, run_all(f, net, data));
  p.width = p.network.output.empty() ? 1 : p.network.output.back();
  p.heads = p.network.heads.empty() ? std::vector<int64_t>{p.width} : p.network.heads;
  p.classes = info_of_loss(p.network.loss).classes;
  if (f.proba || f.top > 0 || p.classes) {
    LOOM_ASSIGN(p.probabilities, net.probabilities(p.outputs));
  }
  return p;
}

// ---- CSV ----------------------------------------------------------------------------------------

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// The name of a target of a table with a plan; else y0, y1, and so on.
std::string output_name(const Predicted& p, const PredictFlags& f, int64_t i) {
  const std::vector<std::string>& columns = p.network.columns;
  const auto first = std::ssize(columns) - p.width;
  if (p.network.plan.empty() || f.proba || first < 0)
    return fmt::format("{}{}", f.proba ? "p" : "y", i);
  return csv_text(columns[static_cast<size_t>(first + i)]);
}

std::string number_text(float value) {
  return fmt::format("{}", value);  // the shortest text that reads back as the same number
}

std::string csv_header(const Predicted& p, const PredictFlags& f) {
  std::vector<std::string> columns;
  if (!p.files.empty()) columns = {"file"};
  if (p.rows_per_sample() > 1) columns.insert(columns.end(), {"sample", "place"});
  for (size_t h = 0; h < p.heads.size() && p.classes; ++h) {
    const std::string suffix = p.heads.size() > 1 ? fmt::format("{}", h) : "";
    columns.push_back("label" + suffix);
    for (int64_t i = 0; i < std::min(f.top, p.heads[h]); ++i) {
      columns.push_back(fmt::format("top{}{}", suffix.empty() ? "" : suffix + "_", i + 1));
      columns.push_back(fmt::format("p{}{}", suffix.empty() ? "" : suffix + "_", i + 1));
    }
    for (int64_t c = 0; c < p.heads[h] && f.proba; ++c)
      columns.push_back(csv_text(fmt::format("p{}({})", suffix, class_text(p, c))));
  }
  for (int64_t i = 0; i < p.width && !p.classes; ++i) columns.push_back(output_name(p, f, i));
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) line += (i > 0 ? "," : "") + columns[i];
  return line + "\n";
}

void add_cell(std::string& line, const std::string& cell) {
  if (!line.empty()) line += ',';
  line += cell;
}

std::string csv_row(const Predicted& p, const PredictFlags& f, int64_t row) {
  std::string line;
  const int64_t each = p.rows_per_sample();
  if (!p.files.empty()) line = csv_text(p.files[static_cast<size_t>(row / each)]);
  if (each > 1) add_cell(line, fmt::format("{},{}", row / each, row % each));
  if (!p.classes) {
    for (const float v : row_of(f.proba ? p.probabilities : p.outputs, row, p.width))
      add_cell(line, number_text(v));
    return line + "\n";
  }
  const std::span<const float> scores = row_of(p.outputs, row, p.width);
  const std::span<const float> shares = row_of(p.probabilities, row, p.width);
  size_t at = 0;
  for (const int64_t head : p.heads) {
    const auto width = static_cast<size_t>(head);
    const std::span<const float> share = shares.subspan(at, width);
    const std::vector<int64_t> order =
        ranked(scores.subspan(at, width), std::max<int64_t>(f.top, 1));
    add_cell(line, csv_text(class_text(p, order[0])));
    for (size_t i = 0; i < order.size() && f.top > 0; ++i) {
      add_cell(line, csv_text(class_text(p, order[i])));
      add_cell(line, number_text(share[static_cast<size_t>(order[i])]));
    }
    for (size_t c = 0; c < width && f.proba; ++c) add_cell(line, number_text(share[c]));
    at += width;
  }
  return line + "\n";
}

// ---- JSON and NPZ -------------------------------------------------------------------------------

Json numbers_json(std::span<const float> values) {
  Json list = Json::array();
  for (const float v : values) list.push(Json::real(static_cast<double>(v)));
  return list;
}

Json row_json(const Predicted& p, const PredictFlags& f, int64_t row) {
  Json item = Json::object();
  const int64_t each = p.rows_per_sample();
  if (!p.files.empty()) item.add("file", Json::string(p.files[static_cast<size_t>(row / each)]));
  if (each > 1) {
    item.add("sample", Json::integer(row / each));
    item.add("place", Json::integer(row % each));
  }
  const std::span<const float> scores = row_of(p.outputs, row, p.width);
  std::vector<Json> labels, tops;
  size_t at = 0;
  for (size_t h = 0; h < p.heads.size() && p.classes; ++h) {
    const auto width = static_cast<size_t>(p.heads[h]);
    const std::vector<int64_t> order =
        ranked(scores.subspan(at, width), std::max<int64_t>(f.top, 1));
    labels.push_back(Json::string(class_text(p, order[0])));
    Json top = Json::array();
    for (const int64_t c : order) {
      const float share = row_of(p.probabilities, row, p.width)[at + static_cast<size_t>(c)];
      Json one = Json::object();
      one.add("label", Json::string(class_text(p, c)));
      one.add("probability", Json::real(static_cast<double>(share)));
      top.push(std::move(one));
    }
    tops.push_back(std::move(top));
    at += width;
  }
  const bool one = p.heads.size() == 1;
  if (p.classes) item.add(one ? "label" : "labels", one ? labels[0] : Json::array_of(labels));
  if (p.classes && f.top > 0) item.add("top", one ? tops[0] : Json::array_of(tops));
  if (f.proba) item.add("probabilities", numbers_json(row_of(p.probabilities, row, p.width)));
  item.add("outputs", numbers_json(scores));
  return item;
}

Status write_npz(const std::string& path, const Predicted& p, const PredictFlags& f) {
  std::vector<NamedTensor> arrays = {{"outputs", p.outputs}};
  std::vector<int32_t> labels;
  for (int64_t row = 0; row < p.rows() && p.classes; ++row) {
    size_t at = 0;
    for (const int64_t head : p.heads) {
      const auto scores = row_of(p.outputs, row, p.width).subspan(at, static_cast<size_t>(head));
      labels.push_back(static_cast<int32_t>(ranked(scores, 1)[0]));
      at += static_cast<size_t>(head);
    }
  }
  if (p.classes) {
    const int64_t each = static_cast<int64_t>(labels.size()) / std::max<int64_t>(p.samples, 1);
    Shape shape = {p.samples};
    if (each > 1) shape.push_back(each);
    arrays.push_back({"labels", Tensor::view(labels.data(), shape)});
  }
  if (f.proba) arrays.push_back({"probabilities", p.probabilities});
  return save_arrays(path, arrays);
}

std::string as_csv(const Predicted& p, const PredictFlags& f) {
  std::string text = csv_header(p, f);
  for (int64_t row = 0; row < p.rows(); ++row) text += csv_row(p, f, row);
  return text;
}

std::string as_json(const Predicted& p, const PredictFlags& f) {
  Json list = Json::array();
  for (int64_t row = 0; row < p.rows(); ++row) list.push(row_json(p, f, row));
  return list.text() + "\n";
}

int run(const PredictFlags& f) {
  const Status order = refuse_table(f.model, "loom predict MODEL DATA");
  if (!order.ok()) return fail(order.error());
  const Status writable = Outputs(f.force)
                              .input("MODEL", f.model)
                              .input("DATA", f.data)
                              .text("-o", f.output, {".csv", ".json", ".npz"}, "predictions")
                              .check();
  if (!writable.ok()) return fail(writable.error());
  const Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  const Result<Predicted> predicted = predict(f, *engine);
  if (!predicted.ok()) {
    return predicted.error().code == Code::cancelled ? fail_interrupted() : fail(predicted.error());
  }
  const bool json = f.json || f.output.ends_with(".json");
  Status written;
  if (f.output.ends_with(".npz")) {
    written = write_npz(f.output, *predicted, f);
  } else {
    const std::string text = json ? as_json(*predicted, f) : as_csv(*predicted, f);
    if (f.output.empty() || f.output == "-") {
      write_out(text);
      return kDone;
    }
    written = write_file(f.output, text);
  }
  if (!written.ok()) return fail(written.error());
  if (!f.quiet) note(fmt::format("{} predictions are in {}", predicted->rows(), f.output));
  return kDone;
}

}  // namespace

Verb add_predict(Command app) {
  auto f = std::make_shared<PredictFlags>();
  const Command verb = app.command("predict", "Apply a trained network to samples from a file.");
  verb.examples(
      "  loom predict net.entity new.csv\n"
      "  loom predict net.entity new.csv --top 3 -o answers.csv\n"
      "  loom predict net.entity images.npz --proba -o answers.npz\n"
      "  loom predict net.entity new.csv --json | jq '.[].label'\n"
      "  loom predict net.entity photo.jpg --top 3");
  verb.option("MODEL", f->model,
              "A trained network: .entity, .safetensors, .onnx, .tflite, .npz or .json")
      .required();
  verb.option(
          "DATA", f->data,
          "CSV, NPY, NPZ, IDX (also .gz) or safetensors, whose targets, if any, are left out; an "
          "image or a sound, or a folder of them")
      .required();
  const Command answers = verb.group("Answers"), data = verb.group("Data");
  answers.option(
      "-o,--output", f->output,
      "Where predictions go, by ending: .csv, .json, .npz; -: CSV on stdout, the default");
  add_force(answers, f->force);
  answers.flag("--proba", f->proba, "The probability of every class, too");
  answers.option("--top", f->top, "The N likeliest classes with their probabilities")
      .range(1, 1 << 20);
  answers.flag("--json", f->json, "JSON instead of CSV");
  f->media.add(verb);
  data.option("--x", f->x, "Name of the inputs in an NPZ or safetensors file").show_default();
  data.option("--lengths", f->lengths,
              "How many positions of each sample are real: an array, or a column of the CSV");
  data.option("--targets", f->targets, "CSV: how many of the last columns are targets, if any are")
      .range(1, 1 << 24)
      .show_default();
  data.option("--header", f->header, "CSV: is the first row a header: yes, no, auto")
      .show_default();
  data.flag("--columns-by-order", f->columns_by_order, kColumnsByOrder);
  f->text.add(data);
  verb.option("--dtype", f->dtype, "Number type of the matrices (default: as stored)");
  verb.option("--batch", f->batch, "Samples at a time").range(1, 1 << 20).show_default();
  f->engine.add(verb);
  f->engine.add_device(verb);
  f->memory.add(verb);
  f->weight_flags.add(verb);
  verb.flag("--quiet", f->quiet, "No progress, no notes");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
