// `loom verify hash --shape` and `loom verify training` as a program of their own, made of the
// rooms that compute: no texts, no model files, no command line library. hash_matrix.sh builds it
// with other compilers and levels, where the whole program would take minutes. Same arguments, same
// output.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <string>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/session.hpp"
#include "lab/training_hash.hpp"
#include "llm/decoder.hpp"
#include "llm/model_source.hpp"
#include "train_io/bits_hash.hpp"

namespace loom::core {
namespace {

using Arguments = std::map<std::string, std::string, std::less<>>;

// --name value, each known by `into` with its default.
Status parse(int argc, char** argv, Arguments& into) {
  for (int i = 3; i < argc; i += 2) {
    const auto at = into.find(argv[i]);
    if (at == into.end() || i + 1 == argc)
      return invalid(cat("unknown option or no value: ", argv[i]));
    at->second = argv[i + 1];
  }
  return {};
}

Result<int64_t> number(const Arguments& arguments, std::string_view name) {
  const std::string& text = arguments.find(name)->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return invalid(cat(name, " must be a number; got ", text));
}

Result<const Ops*> ops_of(const Arguments& arguments) {
  const std::string& name = arguments.find("--isa")->second;
  Isa isa = best_isa();
  if (!name.empty()) {
    LOOM_ASSIGN(isa, parse_isa(name));
  }
  return &cpu_ops(isa);
}

// The decoder of `shape` with random weights, packed as LanguageModel packs them.
Result<Network> random_decoder(const DecoderConfig& config, DType dtype, ThreadPool& pool) {
  LOOM_ASSIGN(const auto source, random_source(config, 1, pool));
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(config));
  LOOM_ASSIGN(Network network, Network::finalize(grid, Shape{1, 1}));
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& param = network.params()[i];
    LOOM_ASSIGN(const SourceWeight weight, source->weight(param));
    const DType type = decoder_dtype(param, config, dtype);
    LOOM_TRY(load_weight(network, static_cast<int>(i), type, weight, pool));
  }
  return network;
}

// The logits of `ids`, `chunk` tokens at a time and 16 rows of the head at a time.
Status feed(const Network& network, std::vector<TokenId>& ids, int64_t chunk, const Ops& ops,
            ThreadPool& pool, BitsHash& hash) {
  const auto count = static_cast<int64_t>(ids.size());
  chunk = std::clamp<int64_t>(chunk, 1, count);
  SessionOptions options;
  options.max_positions = count;
  options.logits_from_cell = network.cells().size() - 1;  // the head
  options.num_logits_rows = std::min<int64_t>(16, chunk);
  LOOM_ASSIGN(Session session, Session::create(network, ops, pool, Shape{1, chunk}, options));
  for (int64_t at = 0; at < count; at += chunk) {
    const int64_t piece = std::min(chunk, count - at);
    Tensor x;
    x.dtype = DType::i32;
    x.shape = Shape{1, piece};
    x.row_stride = piece;
    x.data = reinterpret_cast<std::byte*>(ids.data() + at);
    LOOM_ASSIGN(const Tensor hidden, session.forward(x, 0, options.logits_from_cell));
    session.advance(piece);
    for (int64_t row = 0; row < piece; row += options.num_logits_rows) {
      const int64_t rows = std::min(options.num_logits_rows, piece - row);
      const Tensor some = f32_matrix(hidden.f32_row(row), rows, hidden.cols());
      LOOM_ASSIGN(const Tensor logits,
                  session.forward(some, options.logits_from_cell, network.cells().size()));
      for (int64_t r = 0; r < rows; ++r)
        hash.add({logits.f32_row(r), static_cast<size_t>(logits.cols())});
    }
  }
  return {};
}

Status hash_prompt(int argc, char** argv) {
  Arguments arguments{{"--shape", ""},    {"--dtype", "f32"}, {"--prompt-tokens", "113"},
                      {"--chunk", "256"}, {"--isa", ""},      {"--threads", "1"}};
  LOOM_TRY(parse(argc, argv, arguments));
  LOOM_ASSIGN(const int64_t threads, number(arguments, "--threads"));
  LOOM_ASSIGN(const int64_t count, number(arguments, "--prompt-tokens"));
  LOOM_ASSIGN(const int64_t chunk, number(arguments, "--chunk"));
  LOOM_ASSIGN(const DType dtype, parse_dtype(arguments["--dtype"]));
  LOOM_ASSIGN(const Ops* ops, ops_of(arguments));
  LOOM_ASSIGN(const DecoderConfig config, shape_config(arguments["--shape"]));
  if (count < 1) return invalid("--prompt-tokens must be 1 or more");
  ThreadPool pool(static_cast<int>(threads), true);
  LOOM_ASSIGN(const Network network, random_decoder(config, dtype, pool));
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(prompt_token(i, config.vocab_size));
  BitsHash hash;
  LOOM_TRY(feed(network, ids, chunk, *ops, pool, hash));
  std::printf("%s\n", hash.hex().c_str());
  return {};
}

Status hash_kinds(int argc, char** argv) {
  Arguments arguments{{"--isa", ""}, {"--threads", "1"}};
  LOOM_TRY(parse(argc, argv, arguments));
  LOOM_ASSIGN(const int64_t threads, number(arguments, "--threads"));
  LOOM_ASSIGN(const Ops* ops, ops_of(arguments));
  ThreadPool pool(static_cast<int>(threads), true);
  for (const KindNetwork& k : kind_networks()) {
    LOOM_ASSIGN(const TrainingHash hash, hash_training(k.network, k.batch, {}, *ops, pool));
    std::printf("%s %s %s %s\n", std::string(k.kind).c_str(), hash.forward.c_str(),
                hash.backward.c_str(), hash.trained.c_str());
  }
  return {};
}

Status run(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "", what = argc > 2 ? argv[2] : "";
  if (verb == "verify" && what == "hash") return hash_prompt(argc, argv);
  if (verb == "verify" && what == "training") return hash_kinds(argc, argv);
  if (verb == "isas") {
    for (const Isa isa : available_isas()) std::printf("%s\n", std::string(isa_name(isa)).c_str());
    return {};
  }
  return invalid("usage: loom_hash isas, or loom_hash verify hash|training [--OPTION VALUE]...");
}

}  // namespace
}  // namespace loom::core

int main(int argc, char** argv) {
  const loom::Status status = loom::core::run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "loom_hash: %s\n", status.error().message.c_str());
  return 1;
}
