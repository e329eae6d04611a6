// Runs ONNX files unchanged for tests/outside/onnx_standard.py. It reads one file per line of stdin
// and writes one answer per line of stdout. So a file that ends the process is known by its line.
//
//   MODEL.onnx INPUTS.onnx OUTPUTS.onnx [SECONDS [profile]]
//
//   -> ok [MILLISECONDS] | refused MESSAGE (by name, before the run or by an operator) |
//   failed MESSAGE
//
// Inputs and outputs are models without nodes. Their initializers are the values, "0", "1" ...,
// those of a sequence "0/0", "0/1" .... The metadata "kinds" has a letter each: t tensor, s
// sequence, n none. Types below 8 bits come out as int8 and uint8. With SECONDS a run is timed: the
// fastest of those that fit into that time. A model that is requested again stays open. The first
// argument of the program is the number of threads; the default is 2.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "interpreter/values.hpp"
#include "io/files/file.hpp"
#include "onnx/interpreter/evaluator.hpp"

namespace loom::core::evaluate {
namespace {

Result<std::vector<Slot>> read_values(const std::string& path, Memory& memory) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  return parse_values(file.bytes(), path, memory);
}

void append(OnnxModel& model, const Value& v, std::string name) {
  OnnxTensor t;
  t.name = std::move(name);
  t.type = v.type;
  if (onnx_type_bits(v.type) < 8) t.type = is_signed(v.type) ? OnnxType::i8 : OnnxType::u8;
  t.shape = v.dims;
  const auto* bytes = v.data<std::byte>();
  t.own.assign(bytes, bytes + v.bytes());
  model.graph.initializers.push_back(std::move(t));
}

Status write_values(const std::string& path, const std::vector<Slot>& values) {
  OnnxModel model;
  model.ir_version = 8;
  model.opsets = {{"", 20}};
  std::string kinds;
  for (size_t i = 0; i < values.size(); ++i) {
    const Slot& s = values[i];
    if (s.kind == Slot::Kind::tensor) append(model, s.tensor, cat(i));
    for (size_t k = 0; s.kind == Slot::Kind::sequence && k < s.items->size(); ++k)
      append(model, (*s.items)[k].tensor, cat(i, "/", k));
    kinds += s.kind == Slot::Kind::tensor ? 't' : s.kind == Slot::Kind::sequence ? 's' : 'n';
  }
  model.metadata = {{"kinds", kinds}};
  LOOM_ASSIGN(const std::string bytes, onnx_bytes(model));
  return write_file_atomic(path, std::as_bytes(std::span(bytes)));
}

struct Case {
  std::string model, inputs, outputs;
  double seconds = 0;
  bool profile = false;
};

// The fastest run of at least three, in milliseconds. So the load of other programs does not count.
Result<double> timed(Evaluator& evaluator, const std::vector<Slot>& values, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  while (times.size() < 3 || since(begin) < seconds) {
    const auto start = Clock::now();
    LOOM_TRY(evaluator.run(values));
    times.push_back(since(start) * 1e3);
  }
  return *std::ranges::min_element(times);
}

struct Opened {
  std::string path;
  Evaluator evaluator;
};

Result<std::string> run(const Case& c, ThreadPool& pool, Opened& open) {
  if (open.path != c.model) {
    open.path.clear();
    LOOM_ASSIGN(open.evaluator, Evaluator::load(c.model, cpu_ops(best_isa()), pool));
    open.path = c.model;
  }
  LOOM_ASSIGN(const std::vector<Slot> values, read_values(c.inputs, open.evaluator.memory()));
  LOOM_ASSIGN(const std::vector<Slot> made, open.evaluator.run(values));
  LOOM_TRY(write_values(c.outputs, made));
  if (c.seconds <= 0) return std::string("ok");
  LOOM_ASSIGN(const double ms, timed(open.evaluator, values, c.seconds));
  if (!c.profile) return cat("ok ", ms);
  Profile profile;
  open.evaluator.set_profile(&profile);
  LOOM_TRY(open.evaluator.run(values));
  open.evaluator.set_profile(nullptr);
  for (const auto& [name, time] : profile)
    std::cerr << static_cast<double>(time.nanoseconds) / 1e6 << " ms " << time.calls << " " << name
              << "\n";
  return cat("ok ", ms);
}

}  // namespace
}  // namespace loom::core::evaluate

int main(int argc, char** argv) {
  loom::core::ThreadPool pool(argc > 1 ? std::atoi(argv[1]) : 2);
  std::string line;
  loom::core::evaluate::Opened open;
  while (std::getline(std::cin, line)) {
    loom::core::evaluate::Case c;
    std::string profile;
    std::istringstream(line) >> c.model >> c.inputs >> c.outputs >> c.seconds >> profile;
    c.profile = profile == "profile";
    const loom::Result<std::string> done = loom::core::evaluate::run(c, pool, open);
    if (done.ok())
      std::cout << *done << std::endl;
    else
      std::cout << (done.error().code == loom::Code::unsupported ? "refused " : "failed ")
                << done.error().str() << std::endl;
  }
}
