// llama.cpp's side of bench/gguf_peer.py, against its prebuilt library. The library ships no
// headers: the declarations are written by hand, and parameter structs are opaque blobs whose first
// fields are known. Usage: gguf_peer LIBDIR VERB ...
//   tokenize MODEL TEXT_FILE       ids on one line.
//   logits MODEL IDS.bin OUT.bin   f32 logits of every position.
//   greedy MODEL IDS.bin COUNT     the next ids, one line.
//   ppl MODEL IDS.bin WINDOW       perplexity, windows as `loom perplexity` cuts them.
//   quantize IN OUT FTYPE          llama.cpp's own quantizer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

struct alignas(16) Blob {
  char bytes[1024];
};
struct Batch {
  int32_t count;
  int32_t* tokens;
  float* embeddings;
  int32_t* positions;
  int32_t* sequence_counts;
  int32_t** sequences;
  int8_t* wants_logits;
};
extern "C" {
void llama_backend_init();
void ggml_backend_load_all_from_path(const char*);
Blob llama_model_default_params();
Blob llama_context_default_params();
Blob llama_model_quantize_default_params();
void* llama_model_load_from_file(const char*, Blob);
void* llama_init_from_model(void*, Blob);
const void* llama_model_get_vocab(const void*);
int32_t llama_vocab_n_tokens(const void*);
int32_t llama_tokenize(const void*, const char*, int32_t, int32_t*, int32_t, bool, bool);
int llama_decode(void*, Batch);
void* llama_get_memory(void*);
void llama_memory_clear(void*, bool);
float* llama_get_logits_ith(void*, int);
uint32_t llama_model_quantize(const char*, const char*, const Blob*);
void llama_log_set(void (*)(int, const char*, void*), void*);
}

static std::string read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

static std::vector<int32_t> read_ids(const char* path) {
  const std::string bytes = read_file(path);
  std::vector<int32_t> ids(bytes.size() / 4);
  std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
  return ids;
}

struct Model {
  void* model = nullptr;
  void* context = nullptr;
  int32_t vocabulary = 0;

  explicit Model(const char* path, int32_t positions) {
    model = llama_model_load_from_file(path, llama_model_default_params());
    if (model == nullptr) {
      std::fprintf(stderr, "llama.cpp cannot load %s\n", path);
      std::exit(1);
    }
    vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    Blob params = llama_context_default_params();
    auto* fields = reinterpret_cast<int32_t*>(params.bytes);
    fields[0] = fields[1] = fields[2] = positions;  // context, batch, physical batch
    // The two thread counts are adjacent, both 4 by default. More threads than cores would only
    // wait for each other.
    for (int i = 3; i < 12; ++i) {
      if (fields[i] != 4 || fields[i + 1] != 4) continue;
      fields[i] = fields[i + 1] = 1;
      break;
    }
    context = llama_init_from_model(model, params);
    if (context == nullptr) std::exit(1);
  }

  void feed(const int32_t* ids, int32_t count) {
    llama_memory_clear(llama_get_memory(context), true);
    std::vector<int32_t> tokens(ids, ids + count), positions(count), ones(count, 1), zero(1, 0);
    std::vector<int32_t*> sequences(static_cast<size_t>(count), zero.data());
    std::vector<int8_t> logits(static_cast<size_t>(count), 1);
    for (int32_t i = 0; i < count; ++i) positions[i] = i;
    const Batch batch = {count,       tokens.data(),    nullptr,      positions.data(),
                         ones.data(), sequences.data(), logits.data()};
    if (llama_decode(context, batch) != 0) std::exit(1);
  }
};

static int perplexity(const char* path, const char* ids_path, int32_t window) {
  const std::vector<int32_t> ids = read_ids(ids_path);
  Model model(path, window);
  double sum = 0;
  int64_t count = 0;
  for (size_t begin = 0; begin + static_cast<size_t>(window) + 1 <= ids.size();
       begin += static_cast<size_t>(window)) {
    model.feed(ids.data() + begin, window);
    for (int32_t i = 0; i < window; ++i, ++count) {
      const float* row = llama_get_logits_ith(model.context, i);
      const float best = *std::max_element(row, row + model.vocabulary);
      double total = 0;
      for (int32_t j = 0; j < model.vocabulary; ++j)
        total += std::exp(static_cast<double>(row[j] - best));
      const int32_t target = ids[begin + static_cast<size_t>(i) + 1];
      sum += std::log(total) - static_cast<double>(row[target] - best);
    }
  }
  std::printf("%.6f\n", std::exp(sum / static_cast<double>(count)));
  return 0;
}

static int write_logits(const char* path, const char* ids_path, const char* out_path) {
  const std::vector<int32_t> ids = read_ids(ids_path);
  const auto count = static_cast<int32_t>(ids.size());
  Model model(path, 512);
  model.feed(ids.data(), count);
  std::ofstream out(out_path, std::ios::binary);
  for (int32_t i = 0; i < count; ++i) {
    out.write(reinterpret_cast<const char*>(llama_get_logits_ith(model.context, i)),
              static_cast<std::streamsize>(4) * model.vocabulary);
  }
  return 0;
}

static int greedy(const char* path, const char* ids_path, int32_t count) {
  std::vector<int32_t> ids = read_ids(ids_path);
  Model model(path, 512);
  for (int32_t i = 0; i < count; ++i) {
    model.feed(ids.data(), static_cast<int32_t>(ids.size()));
    const float* row = llama_get_logits_ith(model.context, static_cast<int>(ids.size()) - 1);
    ids.push_back(static_cast<int32_t>(std::max_element(row, row + model.vocabulary) - row));
    std::printf("%d ", ids.back());
  }
  std::printf("\n");
  return 0;
}

static int tokenize(const char* path, const char* text_path) {
  const std::string text = read_file(text_path);
  const Model model(path, 64);
  std::vector<int32_t> ids(text.size() + 16);
  const int32_t count = llama_tokenize(llama_model_get_vocab(model.model), text.data(),
                                       static_cast<int32_t>(text.size()), ids.data(),
                                       static_cast<int32_t>(ids.size()), true, true);
  for (int32_t i = 0; i < count; ++i) std::printf("%d ", ids[static_cast<size_t>(i)]);
  std::printf("\n");
  return 0;
}

static int quantize(const char* from, const char* to, int32_t type) {
  Blob params = llama_model_quantize_default_params();
  auto* fields = reinterpret_cast<int32_t*>(params.bytes);
  fields[0] = 2;  // threads
  fields[1] = type;
  return llama_model_quantize(from, to, &params) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  llama_log_set(
      [](int, const char* text, void*) {
        if (std::getenv("VERBOSE") != nullptr) std::fputs(text, stderr);
      },
      nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  const std::string verb = argv[2];
  if (verb == "tokenize") return tokenize(argv[3], argv[4]);
  if (verb == "logits" && argc > 5) return write_logits(argv[3], argv[4], argv[5]);
  if (verb == "greedy" && argc > 5) return greedy(argv[3], argv[4], std::atoi(argv[5]));
  if (verb == "ppl" && argc > 5) return perplexity(argv[3], argv[4], std::atoi(argv[5]));
  if (verb == "quantize" && argc > 5) return quantize(argv[3], argv[4], std::atoi(argv[5]));
  return 2;
}
