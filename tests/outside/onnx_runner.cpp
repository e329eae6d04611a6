// Runs ONNX files in Loom for tests/outside/onnx_random.py. It reads one file per line of stdin and
// writes one answer per line of stdout. So a file that ends the process is known by its line.
//
//   MODEL.onnx BATCH X.bin Y.bin [apart|whole [WRITTEN.onnx]]
//
// The files have bare f32 values, or i32 ids. With "apart" the normalization of the input is taken
// out of the file and applied here. WRITTEN gets the network, with its input as x.
//
//   -> ok EXTENT EXTENT ...          (of the output, whose values are in Y.bin).
//   -> ok EXTENT ... unwritten MESSAGE      (and the exporter refuses it).
//   -> refused MESSAGE               (by the importer).
//   -> failed MESSAGE                (the imported network does not run, or a build without the
//                                    interpreter of graphs makes another network).
#include <algorithm>
#include <cstring>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "backend/reference/reference.hpp"
#include "base/numbers/bits.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "bridge/random_network.hpp"
#include "io/files/file.hpp"
#include "onnx/export/export.hpp"
#include "onnx/file/external.hpp"
#include "onnx/import/import.hpp"
#include "onnx/interpreter/folder.hpp"
#include "onnx/operators/operator.hpp"

namespace loom::core {
namespace {

struct Case {
  std::string model, x, y, written;
  int64_t batch = 1;
  bool apart = false;
};

// The caller refuses ids beyond the table (src/layers/embedding.cpp). Here that is this function.
Status check_ids(const Network& network, std::span<const std::byte> bytes) {
  for (size_t at = 0; network.vocab() > 0 && at + 4 <= bytes.size(); at += 4) {
    const auto id = load_le<int32_t>(bytes.data() + at);
    if (id < 0 || id >= network.vocab()) return unsupported(cat("an id of ", id));
  }
  return {};
}

void normalize(const Normalization& n, std::vector<std::byte>& x) {
  for (size_t i = 0; !n.empty() && i * sizeof(float) < x.size(); ++i) {
    const size_t at = i % n.shift.size();
    const float value = (load_le<float>(x.data() + i * sizeof(float)) - n.shift[at]) * n.scale[at];
    std::memcpy(x.data() + i * sizeof(float), &value, sizeof(float));
  }
}

Result<std::string> run(const ImportedNetwork& imported, const Case& c, ThreadPool& pool) {
  LOOM_ASSIGN(Network network,
              Network::finalize(imported.network.grid, imported.network.input.after(c.batch)));
  LOOM_TRY(imported.fill(network, pool, DType::f32));
  LOOM_ASSIGN(const std::string read, read_file(c.x));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(read));
  LOOM_TRY(check_ids(network, bytes));
  std::vector<std::byte> x(bytes.begin(), bytes.end());
  normalize(imported.normalization, x);
  LOOM_ASSIGN(const std::vector<float> y,
              test::run_bytes(network, pool, std::move(x), ActivationMode::f32));
  LOOM_TRY(write_file_atomic(c.y, std::as_bytes(std::span(y))));
  std::string shape = "ok";
  const Shape& out = network.output();
  for (int i = 0; i < out.rank(); ++i) shape += cat(" ", out[i]);
  for (const std::string& note : imported.notes) {
    const bool transposed =
        note.starts_with("output") && note.ends_with("is given with its batch first");
    if (transposed) shape += " turned";
  }
  if (c.written.empty()) return shape;
  OnnxExportOptions options;
  options.input = "x";
  options.normalization = imported.normalization;
  const Status done = write_onnx(c.written, network, imported.network.input, options);
  return done.ok() ? shape : cat(shape, " unwritten ", done.error().str());
}

// Whether the constants of a model need operators that only the interpreter has.
bool needs_interpreter(const OnnxModel& model) {
  std::set<std::string> known = {""};
  for (const OnnxTensor& t : model.graph.initializers) known.insert(t.name);
  for (const OnnxNode& n : model.graph.nodes) {
    const auto is_known = [&](const std::string& name) { return known.contains(name); };
    if (!std::ranges::all_of(n.inputs, is_known)) continue;
    if (evaluate::find_common_operator("", n.op) == nullptr) return true;
    known.insert(n.outputs.begin(), n.outputs.end());
  }
  return false;
}

// The same network comes of a file without the interpreter, or none of both.
Status same_without(const Result<ImportedNetwork>& with, const Case& c) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(c.model));
  const Result<OnnxModel> model = parse_onnx_file(file.bytes(), c.model);
  if (!model.ok() || needs_interpreter(*model)) return {};
  const auto without = import_onnx(*model, c.model, {.take_normalization = c.apart});
  if (with.ok() != without.ok())
    return invalid(
        cat("without the interpreter: ", without.ok() ? "is not refused" : without.error().str()));
  if (!with.ok()) return {};
  const auto equal = [](const ImportedParam& a, const ImportedParam& b) {
    const auto x = std::as_bytes(std::span(a.values)), y = std::as_bytes(std::span(b.values));
    return a.path == b.path && a.shape == b.shape && std::ranges::equal(x, y);
  };
  if (write_network(with->network) == write_network(without->network) &&
      std::ranges::equal(with->params, without->params, equal))
    return {};
  return invalid("another network without the interpreter");
}

std::string answer(const Case& c, ThreadPool& pool) {
  const Result<ImportedNetwork> imported = load_onnx(
      c.model,
      {.take_normalization = c.apart, .folder = evaluate::evaluating_folder(reference_ops())});
  if (const Status same = same_without(imported, c); !same.ok())
    return cat("failed ", same.error().str());
  if (!imported.ok()) return cat("refused ", imported.error().str());
  const Result<std::string> done = run(*imported, c, pool);
  if (done.ok()) return *done;
  return cat(done.error().code == Code::unsupported ? "refused " : "failed ", done.error().str());
}

}  // namespace
}  // namespace loom::core

int main() {
  loom::core::ThreadPool pool(1);
  std::string line;
  while (std::getline(std::cin, line)) {
    loom::core::Case c;
    std::string apart;
    std::istringstream(line) >> c.model >> c.batch >> c.x >> c.y >> apart >> c.written;
    c.apart = apart == "apart";
    std::cout << loom::core::answer(c, pool) << std::endl;
  }
}
