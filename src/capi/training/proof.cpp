// The proofs of absorbed networks.
#include "loom/proof.hpp"
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

Result<std::vector<Tensor>> tensors_of(const loom_tensor* tensors, int64_t count,
                                       const char* name) {
  LOOM_ASSIGN(const std::span<const loom_tensor> given, list_of(tensors, count, name));
  std::vector<Tensor> out;
  for (const loom_tensor& each : given) {
    LOOM_ASSIGN(out.emplace_back(), tensor_of(&each, name));
  }
  return out;
}

double tolerance_of(double given, double otherwise) {
  return given < 0 ? 0 : non_zero(given, otherwise);
}

}  // namespace

extern "C" {

loom_status loom_network_prove(loom_network* network, const loom_tensor* inputs,
                               int64_t input_count, const loom_tensor* expected,
                               int64_t expected_count, const loom_prove_options* options,
                               char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Network * object, object_of(network));
    LOOM_ASSIGN(const loom_prove_options from, options_of(options, "loom_prove_options"));
    Proof proof;
    proof.source = text_or(from.source, "");
    proof.rungs = text_or(from.rungs, proof.rungs);
    proof.abs_tol = tolerance_of(from.abs_tol, proof.abs_tol);
    proof.rel_tol = tolerance_of(from.rel_tol, proof.rel_tol);
    LOOM_ASSIGN(proof.inputs, tensors_of(inputs, input_count, "inputs"));
    LOOM_ASSIGN(proof.expected, tensors_of(expected, expected_count, "expected"));
    LOOM_ASSIGN(const ProofReport report, prove(*object, proof));
    return give_text(out, report.json());
  });
}

loom_status loom_network_proof(const loom_network* network, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    const std::string proof = proof_json(*object);
    if (proof.empty()) return Error{Code::not_found, "the network carries no proof", {}};
    return give_text(out, proof);
  });
}

loom_status loom_network_verify_proof(const loom_network* network, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const ProofReport report, verify_proof(*object));
    return give_text(out, report.json());
  });
}

}  // extern "C"
