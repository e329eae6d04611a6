// The Loom side of bench/gguf_peer.py in one program.
//   gguf_tool export MODEL OUT.gguf [DTYPE]   writes a model as GGUF.
//   gguf_tool ids MODEL TEXT_FILE             token ids of a text, one line.
//   gguf_tool logits MODEL IDS.bin OUT.bin    f32 logits of every position.
//   gguf_tool ppl MODEL IDS.bin q8|f32 WINDOW perplexity; the third is the type of activations.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "api/engine/impl.hpp"
#include "convert/checkpoint.hpp"
#include "convert/language_model.hpp"
#include "formats/gguf/export.hpp"
#include "llm/sessions/perplexity.hpp"
#include "loom/loom.hpp"

namespace {

int fail(const loom::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.str().c_str());
  return 1;
}

int export_model(const std::string& from, const std::string& to, const char* dtype) {
  loom::core::GgufExportOptions options;
  if (dtype != nullptr) {
    const auto type = loom::core::parse_dtype(dtype);
    if (!type.ok()) return fail(type.error());
    options.dtype = *type;
  }
  const auto source = loom::core::open_model_source(from);
  if (!source.ok()) return fail(source.error());
  const loom::Status status = loom::core::write_gguf(to, **source, options);
  return status.ok() ? 0 : fail(status.error());
}

int print_ids(const std::string& model, const std::string& file) {
  const auto tokenizer = loom::core::load_tokenizer(model);
  if (!tokenizer.ok()) return fail(tokenizer.error());
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto ids = tokenizer->encode(text);
  if (!ids.ok()) return fail(ids.error());
  for (const loom::TokenId id : *ids) std::printf("%d ", id);
  std::printf("\n");
  return 0;
}

// Little-endian int32 in a file.
std::vector<loom::TokenId> read_ids(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<loom::TokenId> ids(bytes.size() / 4);
  std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
  return ids;
}

loom::Result<loom::Perplexity> perplexity(const std::string& path, const std::string& file,
                                          const char* activations, int64_t window) {
  loom::EngineOptions options;
  LOOM_ASSIGN(options.activations, loom::parse_activations(activations));
  LOOM_ASSIGN(const loom::Engine engine, loom::Engine::create(options));
  LOOM_ASSIGN(const loom::Model model, loom::Model::load(engine, path, {}));
  loom::core::LlmSessionOptions session_options;
  session_options.context = window;
  session_options.head_rows = 32;
  session_options.activations = model.impl().engine->activations;
  LOOM_ASSIGN(loom::core::LlmSession session, loom::core::make_session(model, session_options));
  loom::PerplexityOptions measure;
  measure.window = window;
  return loom::core::measure_perplexity(session, read_ids(file), measure);
}

loom::Status write_logits(const std::string& path, const std::string& file, const char* out_path) {
  LOOM_ASSIGN(const loom::Engine engine, loom::Engine::create({}));
  LOOM_ASSIGN(const loom::Model model, loom::Model::load(engine, path, {}));
  LOOM_ASSIGN(loom::core::LlmSession session, loom::core::make_session(model, {}));
  std::ofstream out(out_path, std::ios::binary);
  return session.feed_all(read_ids(file), [&](int64_t, std::span<const float> row) -> loom::Status {
    out.write(reinterpret_cast<const char*>(row.data()),
              static_cast<std::streamsize>(row.size() * 4));
    return {};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 3 ? argv[1] : "";
  if (verb == "export") return export_model(argv[2], argv[3], argc > 4 ? argv[4] : nullptr);
  if (verb == "ppl" && argc > 5) {
    const auto got = perplexity(argv[2], argv[3], argv[4], std::atoll(argv[5]));
    if (!got.ok()) return fail(got.error());
    std::printf("%.6f\n", got->perplexity);
    return 0;
  }
  if (verb == "logits" && argc > 4) {
    const loom::Status status = write_logits(argv[2], argv[3], argv[4]);
    return status.ok() ? 0 : fail(status.error());
  }
  if (verb == "ids") return print_ids(argv[2], argv[3]);
  std::fprintf(stderr, "usage: see the head of gguf_tool.cpp\n");
  return 2;
}
