// The contents of a file with a model.
#include "capi/json_text.hpp"
#include "capi/support.hpp"
#include "loom/inspect.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

void add_layers(JsonText& json, const ModelFile& file) {
  json.open('[', "layers");
  file.layers([&](const LayerInfo& layer) {
    json.open('{');
    json.add("depth", layer.depth);
    json.add("at", layer.at);
    json.add("type", layer.type);
    json.add("settings", layer.settings);
    json.add("in", layer.in);
    json.add("out", layer.out);
    json.add("notes", layer.notes);
    json.add("parameters", layer.parameters);
    json.close('}');
  });
  json.close(']');
}

void add_tensors(JsonText& json, const ModelFile& file) {
  json.open('[', "tensors");
  for (const StoredTensor& tensor : file.tensors()) {
    json.open('{');
    json.add("name", tensor.name);
    json.add("dtype", tensor.dtype);
    json.open('[', "shape");
    for (const int64_t extent : tensor.shape) json.add({}, extent);
    json.close(']');
    json.add("bytes", tensor.bytes);
    json.close('}');
  }
  json.close(']');
}

void add_decoder(JsonText& json, const std::optional<DecoderInfo>& decoder) {
  if (!decoder) return json.null("decoder");
  json.open('{', "decoder");
  json.add("architecture", decoder->architecture);
  json.add("layers", decoder->layers);
  json.add("width", decoder->width);
  json.add("inner_width", decoder->inner_width);
  json.add("heads", decoder->heads);
  json.add("kv_heads", decoder->kv_heads);
  json.add("head_dim", decoder->head_dim);
  json.add("vocab", decoder->vocab);
  json.add("context", decoder->context);
  json.add("tokenizer_tokens", decoder->tokenizer_tokens);
  json.close('}');
}

// The index of a tensor. A value that is not an index becomes an index that the file does not have.
size_t place_of(int64_t tensor) {
  return tensor < 0 ? SIZE_MAX : static_cast<size_t>(tensor);
}

}  // namespace

extern "C" {

loom_status loom_model_file_open(loom_engine* engine, const char* path, loom_model_file** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string from, text_of(path, "path"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(ModelFile file, ModelFile::open(from, on));
    return give(out, std::move(file));
  });
}

loom_status loom_model_file_open_memory(loom_engine* engine, const void* bytes, int64_t size,
                                        const char* name, int32_t borrow, loom_model_file** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const FileBytes from, file_of(bytes, size, name, borrow != 0));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(ModelFile file, ModelFile::open(from, on));
    return give(out, std::move(file));
  });
}

loom_status loom_model_file_json(const loom_model_file* file, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const ModelFile* object, object_of(file));
    JsonText json;
    json.open('{');
    json.add("format", object->format());
    json.add("grid", object->grid());
    json.add("parameters", object->parameters());
    json.open('[', "notes");
    for (const std::string& note : object->notes()) json.add({}, note);
    json.close(']');
    add_layers(json, *object);
    add_tensors(json, *object);
    add_decoder(json, object->decoder());
    json.json("training", object->training().empty() ? "null" : object->training());
    json.close('}');
    return give_text(out, json.text());
  });
}

loom_status loom_model_file_values(const loom_model_file* file, int64_t tensor, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const ModelFile* object, object_of(file));
    LOOM_ASSIGN(Tensor values, object->values(place_of(tensor)));
    return give(out, std::move(values));
  });
}

loom_status loom_model_file_hash(const loom_model_file* file, int64_t tensor, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const ModelFile* object, object_of(file));
    LOOM_ASSIGN(const std::string hash, object->hash(place_of(tensor)));
    return give_text(out, hash);
  });
}

void loom_model_file_free(loom_model_file* file) {
  free_handle(file);
}

}  // extern "C"
