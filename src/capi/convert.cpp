// Models between files: conversion, quantization, comparison, merging.
#include "loom/convert.hpp"

#include "capi/json_text.hpp"
#include "capi/options/read_options.hpp"
#include "capi/support.hpp"
#include "loom/inspect.hpp"
#include "loom/merge.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

std::function<void(const std::string&)> note_of(loom_note_fn note, void* user) {
  if (note == nullptr) return {};
  return [=](const std::string& text) { (void)note(user, text.c_str()); };
}

Status add_rules(const loom_convert_options& from, ConvertOptions& to) {
  LOOM_ASSIGN(const auto rules, texts_of(from.rules, from.rules_count, "rules"));
  for (const std::string& rule : rules) {
    const size_t equals = rule.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return invalid("the rule '" + rule + "' is not PATTERN=DTYPE, as */weight=q4_0");
    LOOM_ASSIGN(const DType dtype, parse_dtype(rule.substr(equals + 1)));
    to.rules.push_back({rule.substr(0, equals), dtype});
  }
  return {};
}

Result<ConvertOptions> convert_options(const loom_convert_options* given) {
  LOOM_ASSIGN(const loom_convert_options from, options_of(given, "loom_convert_options"));
  LOOM_ASSIGN(ConvertOptions to, read_options(from));
  if (from.has_dtype != 0) {
    LOOM_ASSIGN(to.dtype, dtype_of(from.dtype));
  }
  LOOM_TRY(add_rules(from, to));
  to.note = note_of(from.note, from.user);
  if (from.progress != nullptr) {
    to.progress = [from](std::string_view work, uint64_t done, uint64_t total) {
      return from.progress(from.user, std::string(work).c_str(), done, total) == 0;
    };
  }
  return to;
}

std::string converted_text(const Converted& done) {
  JsonText json;
  json.open('{');
  json.add("format", done.format);
  json.add("bytes", done.bytes);
  json.open('[', "tensors");
  for (const PackedTensor& t : done.tensors) {
    json.open('{');
    json.add("name", t.name);
    json.open('[', "shape");
    for (const int64_t extent : t.shape) json.add("", extent);
    json.close(']');
    json.add("from", dtype_name(t.from));
    json.add("to", dtype_name(t.to));
    json.add("bytes_from", t.bytes_from);
    json.add("bytes_to", t.bytes_to);
    json.add("rms", t.rms);
    json.add("error", t.error);
    json.add("max_error", t.max_error);
    json.add("cosine", t.cosine);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.text();
}

std::string differences_text(const std::vector<TensorDifference>& all) {
  JsonText json;
  json.open('[');
  for (const TensorDifference& d : all) {
    json.open('{');
    json.add("name", d.name);
    json.add("only_a", static_cast<int>(d.only_a));
    json.add("only_b", static_cast<int>(d.only_b));
    json.add("equal", static_cast<int>(d.equal()));
    json.add("dtype_a", d.dtype_a);
    json.add("dtype_b", d.dtype_b);
    json.add("shape_a", d.shape_a);
    json.add("shape_b", d.shape_b);
    json.add("count", d.count);
    json.add("different", d.different);
    json.add("max_ulp", d.max_ulp);
    json.add("max_abs", d.max_abs);
    json.add("relative", d.relative);
    json.add("cosine", d.cosine);
    json.close('}');
  }
  json.close(']');
  return json.text();
}

Result<MergeOptions> merge_options(const loom_merge_options& from) {
  LOOM_ASSIGN(MergeOptions to, read_options(from));
  if (from.has_dtype != 0) {
    LOOM_ASSIGN(to.dtype, dtype_of(from.dtype));
  }
  to.note = note_of(from.note, from.user);
  if (from.progress != nullptr) {
    to.progress = [from](uint64_t done, uint64_t total) {
      return from.progress(from.user, "merging", done, total) == 0;
    };
  }
  return to;
}

std::string merged_text(const MergeReport& done) {
  JsonText json;
  json.open('{');
  json.add("method", merge_method_name(done.method));
  json.add("models", done.models);
  json.add("parameters", done.parameters);
  json.add("weights", done.weights);
  json.add("bytes", done.bytes);
  json.close('}');
  return json.text();
}

}  // namespace

extern "C" {

loom_status loom_convert(loom_engine* engine, const char* input, const char* output,
                         const loom_convert_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string from, text_of(input, "input"));
    LOOM_ASSIGN(const std::string to, text_of(output, "output"));
    LOOM_ASSIGN(ConvertOptions how, convert_options(options));
    LOOM_ASSIGN(how.engine, engine_of(engine));
    LOOM_ASSIGN(const Converted done, convert(from, to, how));
    return give_text(out, converted_text(done));
  });
}

loom_status loom_diff(loom_engine* engine, const char* a, const char* b, int32_t by_parameters,
                      char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string first, text_of(a, "a"));
    LOOM_ASSIGN(const std::string second, text_of(b, "b"));
    DiffOptions how;
    how.by_parameters = by_parameters != 0;
    LOOM_ASSIGN(how.engine, engine_of(engine));
    LOOM_ASSIGN(const auto found, diff(first, second, how));
    return give_text(out, differences_text(found));
  });
}

loom_status loom_verify_hashes(loom_engine* engine, const char* path, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(*out, verify_hashes(file, on));
    return {};
  });
}

loom_status loom_merge(loom_engine* engine, const char* const* models, int64_t count,
                       const char* output, const loom_merge_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const auto paths, texts_of(models, count, "models"));
    LOOM_ASSIGN(const std::string to, text_of(output, "output"));
    LOOM_ASSIGN(const loom_merge_options from, options_of(options, "loom_merge_options"));
    LOOM_ASSIGN(MergeOptions how, merge_options(from));
    LOOM_ASSIGN(how.engine, engine_of(engine));
    std::vector<MergeInput> inputs;
    for (size_t i = 0; i < paths.size(); ++i) {
      inputs.push_back({paths[i], from.weights == nullptr ? 1 : from.weights[i],
                        from.densities == nullptr ? 1 : from.densities[i]});
    }
    LOOM_ASSIGN(const MergeReport done, merge(inputs, to, how));
    return give_text(out, merged_text(done));
  });
}

}  // extern "C"
