#include "bridge/proof.hpp"

#include <cstring>

#include "base/text.hpp"
#include "io/bytes/sha256.hpp"

namespace loom::core {
namespace {

constexpr const char* kProofSchema = "loom.proof/1";

// Returns a member of the section. Errors: it is absent or of another type.
struct ProofReader {
  const JsonValue& json;
  std::string where;

  Result<std::string> text(const char* key) const {
    LOOM_ASSIGN(const JsonValue* found, member(key));
    return found->as_string(cat(where, ".", key));
  }
  Result<double> number(const char* key) const {
    LOOM_ASSIGN(const JsonValue* found, member(key));
    return found->as_double(cat(where, ".", key));
  }
  Result<int64_t> integer_field(const char* key) const {
    LOOM_ASSIGN(const JsonValue* found, member(key));
    return found->as_int(cat(where, ".", key));
  }
  Result<const JsonValue*> member(const char* key) const {
    const JsonValue* found = json.find(key);
    if (found == nullptr) return bad_file(cat(where, " has no '", key, "'"));
    return found;
  }
};

Result<ProofFigures> figures_of(const JsonValue& json, const std::string& where) {
  const ProofReader read{json, where};
  ProofFigures figures;
  LOOM_ASSIGN(figures.max_abs, read.number("max_abs"));
  LOOM_ASSIGN(figures.max_rel, read.number("max_rel"));
  LOOM_ASSIGN(figures.max_ulp, read.integer_field("max_ulp"));
  LOOM_ASSIGN(figures.cosine, read.number("cosine"));
  return figures;
}

Result<ProofRecord> record_of(const JsonValue& section, const std::string& where) {
  const ProofReader read{section, where};
  ProofRecord record;
  LOOM_ASSIGN(const std::string schema, read.text("schema"));
  if (schema != kProofSchema) {
    return unsupported(
        cat("is a proof of schema '", printable(schema), "', this release reads ", kProofSchema),
        where);
  }
  LOOM_ASSIGN(record.source, read.text("source"));
  LOOM_ASSIGN(record.rungs, read.text("rungs"));
  LOOM_ASSIGN(record.abs_tol, read.number("abs_tol"));
  LOOM_ASSIGN(record.rel_tol, read.number("rel_tol"));
  LOOM_ASSIGN(record.inputs_sha256, read.text("inputs_sha256"));
  LOOM_ASSIGN(record.expected_sha256, read.text("expected_sha256"));
  LOOM_ASSIGN(record.outputs_sha256, read.text("outputs_sha256"));
  LOOM_ASSIGN(const JsonValue* outputs, read.member("outputs"));
  for (const JsonValue& output : outputs->elements()) {
    LOOM_ASSIGN(record.figures.emplace_back(), figures_of(output, cat(where, ".outputs")));
  }
  return record;
}

// The blobs PREFIX0, PREFIX1 and so on, in that order.
Result<std::vector<ProofArray>> arrays_of(const NetworkSource& source, const std::string& prefix) {
  std::vector<ProofArray> out;
  for (const EntityOutput& blob : source.blobs) {
    if (blob.path != cat(prefix, out.size())) continue;
    const bool plain = blob.layout == BlobLayout::plain;
    if (!plain || (blob.dtype != DType::f32 && blob.dtype != DType::i32))
      return bad_file(cat(blob.path, " must hold float32 or int32 values"), source.path);
    LOOM_ASSIGN(const std::span<const std::byte> bytes, blob.data());
    out.push_back({blob.dtype, blob.shape, {bytes.begin(), bytes.end()}});
  }
  return out;
}

void add_arrays(const std::shared_ptr<const ProofRecord>& record,
                const std::vector<ProofArray>& arrays, std::string_view prefix,
                NetworkSource& source) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ProofArray* array = &arrays[i];
    EntityOutput out;
    out.path = cat(prefix, i);
    out.dtype = array->dtype;
    out.shape = array->shape;
    out.data = [record, array]() -> Result<std::span<const std::byte>> {
      return std::span<const std::byte>(array->bytes);
    };
    source.blobs.push_back(std::move(out));
  }
}

}  // namespace

std::string proof_digest(const std::vector<ProofArray>& arrays) {
  Sha256 hash;
  for (const ProofArray& array : arrays) {
    std::string line = cat(dtype_name(array.dtype), " ");
    for (int i = 0; i < array.shape.rank(); ++i) line += cat(i > 0 ? "x" : "", array.shape[i]);
    line += '\n';
    hash.add(std::as_bytes(std::span(line)));
    hash.add(array.bytes);
  }
  return hash.finish();
}

JsonValue proof_section(const ProofRecord& record) {
  JsonValue out = JsonValue::object();
  out.add("schema", JsonValue::string(kProofSchema));
  out.add("source", JsonValue::string(record.source));
  out.add("rungs", JsonValue::string(record.rungs));
  out.add("abs_tol", JsonValue::real(record.abs_tol));
  out.add("rel_tol", JsonValue::real(record.rel_tol));
  out.add("inputs", JsonValue::integer(static_cast<int64_t>(record.inputs.size())));
  out.add("inputs_sha256", JsonValue::string(record.inputs_sha256));
  out.add("expected_sha256", JsonValue::string(record.expected_sha256));
  out.add("outputs_sha256", JsonValue::string(record.outputs_sha256));
  JsonValue outputs = JsonValue::array();
  for (const ProofFigures& figures : record.figures) {
    JsonValue output = JsonValue::object();
    output.add("max_abs", JsonValue::real(figures.max_abs));
    output.add("max_rel", JsonValue::real(figures.max_rel));
    output.add("max_ulp", JsonValue::integer(figures.max_ulp));
    output.add("cosine", JsonValue::real(figures.cosine));
    outputs.push(std::move(output));
  }
  out.add("outputs", std::move(outputs));
  return out;
}

void add_proof(std::shared_ptr<const ProofRecord> record, NetworkSource& source) {
  source.sections.add(std::string(kProofSection), proof_section(*record));
  add_arrays(record, record->inputs, cat(kProofFolder, "input"), source);
  add_arrays(record, record->expected, cat(kProofFolder, "expected"), source);
}

Result<std::shared_ptr<const ProofRecord>> read_proof(const NetworkSource& source) {
  const JsonValue* section = source.sections.find(kProofSection);
  const std::string where = cat(source.path, ": proof");
  if (section == nullptr) return std::shared_ptr<const ProofRecord>();
  LOOM_ASSIGN(ProofRecord record, record_of(*section, where));
  LOOM_ASSIGN(const int64_t inputs, ProofReader({*section, where}).integer_field("inputs"));
  LOOM_ASSIGN(record.inputs, arrays_of(source, cat(kProofFolder, "input")));
  LOOM_ASSIGN(record.expected, arrays_of(source, cat(kProofFolder, "expected")));
  if (static_cast<int64_t>(record.inputs.size()) != inputs ||
      record.expected.size() != record.figures.size()) {
    return bad_file(
        cat("names ", inputs, " inputs and ", record.figures.size(), " outputs; the file holds ",
            record.inputs.size(), " and ", record.expected.size()),
        where);
  }
  return std::make_shared<const ProofRecord>(std::move(record));
}

}  // namespace loom::core
