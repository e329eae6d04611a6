#include "loom/proof.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "bridge/proof.hpp"
#include "loom/session.hpp"

namespace loom::core {
namespace {

// Below this source value a relative difference is meaningless.
constexpr double kRelativeFloor = 1e-6;

Result<ProofArray> proof_array(const loom::Tensor& tensor, bool ids, std::string_view what) {
  LOOM_ASSIGN(const Shape shape, core_shape(tensor.shape(), what));
  LOOM_ASSIGN(const loom::Tensor plain, tensor.to(ids ? loom::DType::int32 : loom::DType::float32));
  return ProofArray{
      ids ? DType::i32 : DType::f32, shape, {plain.data(), plain.data() + plain.bytes()}};
}

loom::Tensor proof_tensor(const ProofArray& array) {
  return loom::Tensor::borrow(array.bytes.data(), static_cast<loom::DType>(array.dtype),
                              public_shape(array.shape));
}

// Maps float32 to integers in order, so that neighbours differ by one.
int64_t ordered_bits(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits < 0 ? -static_cast<int64_t>(bits & INT32_MAX) : bits;
}

float proof_value(const ProofArray& array, int64_t i) {
  float value = 0;
  std::memcpy(&value, array.bytes.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

ProofOutput compared(const ProofArray& desired, const ProofArray& got, double abs_tol,
                     double rel_tol) {
  ProofOutput out;
  double product = 0, wanted_squares = 0, got_squares = 0;
  for (int64_t i = 0; i < desired.shape.count(); ++i) {
    const float w = proof_value(desired, i), g = proof_value(got, i);
    const double a = static_cast<double>(w), b = static_cast<double>(g);
    const double far = std::fabs(a - b), size = std::fabs(a);
    // A NaN on either side exceeds every tolerance.
    if (!(far <= abs_tol + rel_tol * size) && out.first_beyond < 0) out.first_beyond = i;
    out.max_abs = std::max(out.max_abs, far);
    if (size > kRelativeFloor) out.max_rel = std::max(out.max_rel, far / size);
    out.max_ulp = std::max(out.max_ulp, std::abs(ordered_bits(w) - ordered_bits(g)));
    product += a * b, wanted_squares += a * a, got_squares += b * b;
  }
  const double lengths = std::sqrt(wanted_squares) * std::sqrt(got_squares);
  if (lengths > 0) out.cosine = product / lengths;
  return out;
}

// The network's outputs for the inputs of a proof.
Result<std::vector<ProofArray>> proof_outputs(const loom::Network& network,
                                              const std::vector<ProofArray>& inputs) {
  loom::SessionOptions options;
  options.max_batch = inputs.front().shape.rank() > 0 ? inputs.front().shape[0] : 1;
  LOOM_ASSIGN(loom::Session session, network.session(options));
  std::vector<loom::Tensor> given;
  for (const ProofArray& input : inputs) given.push_back(proof_tensor(input));
  LOOM_ASSIGN(const std::vector<loom::Tensor> actual, session.run(given));
  std::vector<ProofArray> out;
  for (const loom::Tensor& each : actual) {
    LOOM_ASSIGN(out.emplace_back(), proof_array(each, false, "an output"));
  }
  return out;
}

// The first mismatch of counts and shapes; empty if there is none.
std::string differing_shapes(const ProofRecord& record, const std::vector<ProofArray>& got) {
  if (got.size() != record.expected.size()) {
    return cat("the proof has ", record.expected.size(), " outputs, the network ", got.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (record.expected[i].shape == got[i].shape) continue;
    return cat("output ", i, " of the proof is ", record.expected[i].shape.str(),
               ", that of the network ", got[i].shape.str());
  }
  return {};
}

ProofReport proof_report(const ProofRecord& record, const std::vector<ProofArray>& got) {
  ProofReport report;
  report.source = record.source;
  report.rungs = record.rungs;
  report.inputs_sha256 = proof_digest(record.inputs);
  report.expected_sha256 = proof_digest(record.expected);
  report.outputs_sha256 = proof_digest(got);
  report.problem = differing_shapes(record, got);
  if (!report.problem.empty()) return report;
  for (size_t i = 0; i < got.size(); ++i) {
    report.outputs.push_back(compared(record.expected[i], got[i], record.abs_tol, record.rel_tol));
    const ProofOutput& output = report.outputs.back();
    if (output.first_beyond < 0 || !report.problem.empty()) continue;
    report.problem = cat("value ", output.first_beyond, " of output ", i,
                         " is beyond the tolerance: the source computed ",
                         proof_value(record.expected[i], output.first_beyond), ", the engine ",
                         proof_value(got[i], output.first_beyond));
  }
  report.holds = report.problem.empty();
  return report;
}

std::string short_hash(const std::string& hex) {
  return hex.substr(0, 16);
}

// Compares current outputs with the proof. Different bits are a problem, whether within the
// tolerance or not.
void hold_against(const ProofRecord& record, ProofReport& report) {
  const auto differs = [&](const std::string& now, const std::string& then, std::string_view what) {
    if (now == then) return false;
    report.problem = cat(what, " have SHA-256 ", short_hash(now), "..., the proof says ",
                         short_hash(printable(then)), "...");
    return true;
  };
  if (!differs(report.inputs_sha256, record.inputs_sha256, "the inputs in the file") &&
      !differs(report.expected_sha256, record.expected_sha256, "the expected outputs in the file"))
    differs(report.outputs_sha256, record.outputs_sha256, "the outputs that the engine computes");
  report.holds = report.problem.empty();
}

}  // namespace
}  // namespace loom::core

namespace loom {

std::string ProofReport::text() const {
  if (!holds) return core::cat("the proof does NOT hold: ", problem, " (", source, ")");
  double far = 0, relative = 0;
  for (const ProofOutput& output : outputs) {
    far = std::max(far, output.max_abs);
    relative = std::max(relative, output.max_rel);
  }
  char figures[64];
  std::snprintf(figures, sizeof figures, "max abs %.2g, max rel %.2g", far, relative);
  return core::cat("the proof holds: ", source, "; rungs ", rungs, "; ", outputs.size(),
                   outputs.size() == 1 ? " output, " : " outputs, ", figures);
}

std::string ProofReport::json() const {
  using core::JsonValue;
  JsonValue out = JsonValue::object();
  out.add("holds", JsonValue::boolean(holds));
  out.add("problem", JsonValue::string(problem));
  out.add("text", JsonValue::string(text()));
  out.add("source", JsonValue::string(source));
  out.add("rungs", JsonValue::string(rungs));
  JsonValue figures = JsonValue::array();
  for (const ProofOutput& output : outputs) {
    JsonValue one = JsonValue::object();
    one.add("max_abs", JsonValue::real(output.max_abs));
    one.add("max_rel", JsonValue::real(output.max_rel));
    one.add("max_ulp", JsonValue::integer(output.max_ulp));
    one.add("cosine", JsonValue::real(output.cosine));
    one.add("first_beyond", JsonValue::integer(output.first_beyond));
    figures.push(std::move(one));
  }
  out.add("outputs", std::move(figures));
  out.add("inputs_sha256", JsonValue::string(inputs_sha256));
  out.add("expected_sha256", JsonValue::string(expected_sha256));
  out.add("outputs_sha256", JsonValue::string(outputs_sha256));
  return core::dump_json(out);
}

Result<ProofReport> prove(Network& network, const Proof& proof) {
  const NetworkInfo info = network.info();
  if (proof.inputs.size() != info.inputs.size()) {
    return core::invalid(core::cat("the proof has ", proof.inputs.size(),
                                   " inputs, the network takes ", info.inputs.size()));
  }
  auto record = std::make_shared<core::ProofRecord>();
  record->source = proof.source;
  record->rungs = proof.rungs;
  record->abs_tol = proof.abs_tol;
  record->rel_tol = proof.rel_tol;
  for (size_t i = 0; i < proof.inputs.size(); ++i) {
    LOOM_ASSIGN(record->inputs.emplace_back(),
                core::proof_array(proof.inputs[i], info.inputs[i].ids > 0, "an input"));
  }
  for (const Tensor& expected : proof.expected) {
    LOOM_ASSIGN(record->expected.emplace_back(),
                core::proof_array(expected, false, "an expected output"));
  }
  LOOM_ASSIGN(const std::vector<core::ProofArray> got,
              core::proof_outputs(network, record->inputs));
  ProofReport report = core::proof_report(*record, got);
  if (!report.holds) return report;
  record->inputs_sha256 = report.inputs_sha256;
  record->expected_sha256 = report.expected_sha256;
  record->outputs_sha256 = report.outputs_sha256;
  for (const ProofOutput& o : report.outputs)
    record->figures.push_back({o.max_abs, o.max_rel, o.max_ulp, o.cosine});
  network.impl().set_proof(std::move(record));
  return report;
}

Result<ProofReport> verify_proof(const Network& network) {
  LOOM_ASSIGN(const auto record, network.impl().proof());
  if (record == nullptr) {
    return core::make_error(
        Code::not_found,
        "carries no proof: networks have one that loom.absorb() made and nothing changed since");
  }
  LOOM_ASSIGN(const std::vector<core::ProofArray> got,
              core::proof_outputs(network, record->inputs));
  ProofReport report = core::proof_report(*record, got);
  core::hold_against(*record, report);
  return report;
}

std::string proof_json(const Network& network) {
  const auto record = network.impl().proof();
  if (!record.ok() || *record == nullptr) return {};
  return core::dump_json(core::proof_section(**record));
}

}  // namespace loom
