// loom onnx: runs an ONNX or TFLite file unchanged, with arrays of NumPy in and out.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "../shared/outputs.hpp"
#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

struct OnnxFlags {
  EngineFlags engine;
  std::string model, output;
  std::vector<std::string> inputs;
  bool force = false;
  int64_t extent = 0, repeat = 1;
  bool made_up = false, json = false;
};

std::string value_text(const ValueInfo& v) {
  std::string shape;
  for (const int64_t d : v.shape)
    shape += (shape.empty() ? "" : ", ") + (d < 0 ? std::string("?") : fmt::format("{}", d));
  return fmt::format("{} {}{}", v.name, v.type, v.known_rank ? " [" + shape + "]" : "");
}

Json extents(const Shape& shape) {
  Json list = Json::array();
  for (const int64_t d : shape) list.push(Json::integer(d));
  return list;
}

Json value_json(const ValueInfo& v) {
  JsonObject item;
  item.set("name", v.name).set("type", v.type);
  if (v.known_rank) item.set("shape", extents(v.shape));
  return item.value();
}

Error usage(const std::string& message) {
  return {Code::invalid_argument, message, {}, -1};
}

// Numbers from a fixed seed: floats of a normal distribution, integers 0 to 3.
Result<Tensor> made_up(const ValueInfo& v, int64_t extent) {
  Shape shape = v.shape;
  for (int64_t& d : shape) {
    if (d < 0 && extent < 1)
      return usage(fmt::format("input '{}' has an open extent; say --extent", v.name));
    if (d < 0) d = extent;
  }
  std::mt19937_64 draw(7);
  LOOM_ASSIGN(Tensor x, Tensor::zeros(shape, DType::float32));
  LOOM_ASSIGN(const std::span<float> values, x.mutable_values<float>());
  const bool whole = v.type.find("int") != std::string::npos, truth = v.type == "bool";
  for (float& value : values) {
    double sum = -6;  // twelve uniform numbers minus their mean: close to normal
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(draw() >> 11) * 0x1p-53;
    value = static_cast<float>(sum);
    if (whole || truth) value = static_cast<float>(draw() % (truth ? 2 : 4));
  }
  return x.to(v.dtype);
}

// NAME=FILE, or NAME=FILE:ARRAY for files of several arrays.
Result<Tensor> read_input(const std::string& text, const ValueInfo& v) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  const bool named = colon != std::string::npos && colon > equals && !text.ends_with(".npy");
  const std::string path = text.substr(equals + 1, named ? colon - equals - 1 : std::string::npos);
  LOOM_ASSIGN(const Tensor x, load_array(path, named ? text.substr(colon + 1) : v.name));
  return x.dtype() == v.dtype ? Result<Tensor>(x) : x.to(v.dtype);
}

Result<std::vector<Tensor>> inputs_of(const OnnxFlags& f, const Evaluator& graph) {
  std::vector<Tensor> out;
  std::vector<bool> used(f.inputs.size(), false);
  for (const ValueInfo& v : graph.inputs()) {
    const auto have = std::ranges::find_if(f.inputs, [&](const std::string& text) {
      return text.substr(0, text.find('=')) == v.name;
    });
    if (have == f.inputs.end() && !f.made_up)
      return usage(fmt::format("input '{}' is missing; give --input {}=FILE.npy, or --made-up",
                               v.name, v.name));
    LOOM_ASSIGN(Tensor x, have == f.inputs.end() ? made_up(v, f.extent) : read_input(*have, v));
    if (have != f.inputs.end()) used[static_cast<size_t>(have - f.inputs.begin())] = true;
    out.push_back(std::move(x));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) return usage(fmt::format("the file has no input for --input {}", f.inputs[i]));
  }
  return out;
}

void print_graph(const OnnxFlags& f, const Evaluator& graph) {
  if (f.json) {
    Json in = Json::array(), out = Json::array();
    for (const ValueInfo& v : graph.inputs()) in.push(value_json(v));
    for (const ValueInfo& v : graph.outputs()) out.push(value_json(v));
    JsonObject object;
    object.set("model", f.model).set("inputs", in).set("outputs", out);
    object.print();
    return;
  }
  for (const ValueInfo& v : graph.inputs()) write_line("input  " + value_text(v));
  for (const ValueInfo& v : graph.outputs()) write_line("output " + value_text(v));
}

// Prints a few values of each output.
Status print_values(const OnnxFlags& f, const Evaluator& graph, const std::vector<Tensor>& made) {
  Json list = Json::array();
  for (size_t i = 0; i < made.size(); ++i) {
    LOOM_ASSIGN(const Tensor wide, made[i].to(DType::float64));
    LOOM_ASSIGN(const auto values, wide.values<double>());
    const size_t shown = f.json ? values.size() : std::min<size_t>(values.size(), 6);
    std::string text;
    Json numbers = Json::array();
    for (size_t k = 0; k < shown; ++k) {
      text += fmt::format("{}{:.6g}", k > 0 ? " " : "", values[k]);
      if (f.json) numbers.push(Json::real(values[k]));
    }
    const std::string& name = graph.outputs()[i].name;
    if (!f.json)
      write_line(fmt::format("{} {} {}: {}{}", name, graph.outputs()[i].type,
                             shape_text(made[i].shape()), text,
                             shown < values.size() ? " ..." : ""));
    JsonObject item;
    item.set("name", name)
        .set("type", graph.outputs()[i].type)
        .set("shape", extents(made[i].shape()));
    list.push(item.set("values", numbers).value());
  }
  if (f.json) {
    JsonObject object;
    object.set("model", f.model).set("outputs", list);
    object.print();
  }
  return {};
}

Status work(const OnnxFlags& f) {
  Outputs outputs(f.force);
  outputs.input("MODEL", f.model).file("-o", f.output, {".npz"}, "the outputs as .npz");
  LOOM_TRY(outputs.check());
  LOOM_ASSIGN(const Engine engine, f.engine.create());
  LOOM_ASSIGN(const Evaluator graph, Evaluator::load(f.model, &engine));
  if (f.inputs.empty() && !f.made_up && !graph.inputs().empty()) {
    print_graph(f, graph);
    return {};
  }
  LOOM_ASSIGN(const std::vector<Tensor> inputs, inputs_of(f, graph));
  std::vector<Tensor> made;
  std::vector<double> times;
  for (int64_t i = 0; i < f.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    LOOM_ASSIGN(made, graph.run(inputs));
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    times.push_back(taken.count());
  }
  std::ranges::sort(times);
  if (f.repeat > 1)
    note(fmt::format("{:.3f} ms, the median of {}", times[times.size() / 2], f.repeat));
  if (f.output.empty()) return print_values(f, graph, made);
  std::vector<NamedTensor> arrays;
  for (size_t i = 0; i < made.size(); ++i) {
    const ValueInfo& out = graph.outputs()[i];
    arrays.push_back({out.name, made[i], out.type == "bool"});
  }
  return save_arrays(f.output, arrays);
}

}  // namespace

Verb add_onnx(Command app) {
  auto f = std::make_shared<OnnxFlags>();
  const Command verb = app.command("onnx", "Run an ONNX or TFLite file without conversion.");
  verb.examples(
      "  loom onnx model.onnx                                # its inputs and outputs\n"
      "  loom onnx model.onnx --input x=x.npy -o y.npz\n"
      "  loom onnx model.onnx --made-up --extent 64 --repeat 20   # the time of one run");
  verb.option("MODEL", f->model,
              "ONNX or TFLite file; `loom convert` and `loom train` make networks of some")
      .required();
  verb.option("--input", f->inputs,
              "NAME=FILE.npy, or NAME=FILE.npz:ARRAY; once per input. None: lists them");
  verb.flag("--made-up", f->made_up,
            "Inputs that are not given are random numbers of a fixed seed");
  verb.option("--extent", f->extent, "--made-up: of axes that the file leaves open")
      .range(0, 1 << 20);
  verb.option("--repeat", f->repeat, "Runs; the median of their times goes to stderr")
      .range(1, 1000000);
  verb.option("-o,--output", f->output, "Write all outputs there, as .npz");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object instead of text, with all values");
  f->engine.add_lanes(verb);
  return {verb, [f] {
            const Status done = work(*f);
            return done.ok() ? kDone : fail(done.error());
          }};
}

}  // namespace loom::cli
