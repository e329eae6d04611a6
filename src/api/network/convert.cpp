#include "loom/convert.hpp"

#include <memory>

#include "api/network/network_impl.hpp"
#include "api/network/quantize.hpp"
#include "base/text.hpp"
#include "convert/convert.hpp"
#include "convert/network_decoder.hpp"
#include "io/files/file.hpp"
#include "llm/decoder.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

// A network with a tokenizer is a language model.
Status add_tokenizer(const std::string& input, const loom::ConvertOptions& options,
                     OpenedModel& model) {
  if (options.tokenizer.empty()) return {};
  if (model.network == nullptr)
    return invalid("this is a language model, which has its tokenizer; leave the other out", input);
  if (options.context < 1)
    return invalid(cat("context is ", options.context, ", must be 1 or more"));
  LOOM_ASSIGN(model.decoder,
              decoder_of_network(std::move(model.network), options.tokenizer, options.context));
  model.decoder->allow_nonfinite = options.allow_nonfinite;
  return {};
}

Result<OpenedModel> open_input(const std::string& input, const loom::ConvertOptions& options,
                               Engine::Impl& engine) {
  OpenedModel model;
  if (options.shape.empty()) {
    OpenOptions how = {.open_extent = options.open_extent,
                       .for_training = options.for_training,
                       .trainable = options.trainable,
                       .frozen = options.frozen,
                       .memory = engine.budget()};
    how.allow_nonfinite = options.allow_nonfinite;
    LOOM_ASSIGN(how.infer, infer_options(options.state_dict));
    LOOM_ASSIGN(model, open_model(input, how));
    LOOM_TRY(add_tokenizer(input, options, model));
    return model;
  }
  model.format = "random weights";
  LOOM_ASSIGN(const DecoderConfig config, shape_config(options.shape));
  LOOM_ASSIGN(model.decoder, random_source(config, options.seed, engine.pool));
  return model;
}

PackedTensor packed(const PackReport& r) {
  PackedTensor t;
  t.name = r.path;
  t.shape = public_shape(r.shape);
  t.from = static_cast<loom::DType>(r.from);
  t.to = static_cast<loom::DType>(r.to);
  t.bytes_from = r.bytes_from;
  t.bytes_to = r.bytes_to;
  t.rms = r.rms;
  t.error = r.error;
  t.max_error = r.max_error;
  t.cosine = r.cosine;
  return t;
}

WriteOptions how_to(const loom::ConvertOptions& options, Converted& out) {
  WriteOptions how;
  if (options.dtype) how.dtype = static_cast<DType>(*options.dtype);
  for (const DTypeRule& rule : options.rules)
    how.rules.push_back({rule.pattern, static_cast<DType>(rule.dtype)});
  how.per_tensor = options.per_tensor;
  how.with_weights = options.with_weights;
  if (options.measure)
    how.report = [&out](const PackReport& r) { out.tensors.push_back(packed(r)); };
  if (options.progress) {
    how.progress = [&options](uint64_t done, uint64_t total) {
      return options.progress("writing", done, total);
    };
  }
  return how;
}

// The size of a file, or of a folder's weights.
int64_t bytes_of(const std::string& path) {
  if (is_directory(path)) return bytes_of(checkpoint_in(path));
  const Result<MappedFile> file = MappedFile::open(path);
  return file.ok() ? static_cast<int64_t>(file->bytes().size()) : 0;
}

}  // namespace
}  // namespace loom::core

namespace loom {

Result<Converted> convert(const std::string& input, const std::string& output,
                          const ConvertOptions& options) {
  LOOM_TRY(check_options(options));
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  Engine::Impl& engine = on.impl();
  const std::lock_guard turn(engine.turn);
  LOOM_ASSIGN(core::OpenedModel model, core::open_input(input, options, engine));
  if (model.network != nullptr)
    LOOM_TRY(core::check_writing(model.network->spec, engine.budget(), input));
  Converted out;
  out.format = model.format;
  core::WriteOptions how = core::how_to(options, out);
  if (options.note) {
    for (const std::string& inferred : model.notes) options.note(inferred);
    for (const std::string& dropped : core::left_out(output, model, how)) options.note(dropped);
  }
  core::Quantization quantization;
  LOOM_TRY(quantization.apply(options, output, engine, model, how));
  LOOM_TRY(core::write_model(output, model, how, engine.pool));
  out.bytes = core::bytes_of(output);
  return out;
}

}  // namespace loom
