// Typical mistakes of someone who converts, inspects or compares models. Each message is one line
// and says the problem, the place, and a remedy.
#include "convert/golden_testing.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;

// The first `count` bytes of a golden file.
std::string start_of(std::string_view name, size_t count) {
  const auto text = read_file(golden(name));
  EXPECT_TRUE(text.ok());
  return text.ok() ? text->substr(0, count) : "";
}

std::string network_of(const std::string& layer) {
  return cat(R"({"loom": 1, "input": [5], "layers": [)", layer, "]}");
}

// A safetensors file of zeros.
std::string zeros(const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
  std::string header = "{";
  uint64_t at = 0;
  for (const auto& [name, shape] : tensors) {
    uint64_t bytes = 4;
    std::vector<std::string> sizes;
    for (const int64_t n : shape) {
      bytes *= static_cast<uint64_t>(n);
      sizes.push_back(std::to_string(n));
    }
    header += cat(header.size() > 1 ? "," : "", "\"", name, "\":{\"dtype\":\"F32\",\"shape\":[",
                  join(sizes, ","), "],\"data_offsets\":[", at, ",", at + bytes, "]}");
    at += bytes;
  }
  return safetensors_file(header + "}", std::string(at, '\0'));
}

struct Mistake {
  const char* name;  // of the file
  std::string bytes;
  const char* message;  // after "NAME: "
};

void expect_refusals(const std::vector<Mistake>& mistakes) {
  const TemporaryFolder folder;
  for (const Mistake& m : mistakes) {
    SCOPED_TRACE(m.name);
    folder.write(m.name, m.bytes);
    const auto model = open_model(folder.path(m.name));
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().str(), cat(folder.path(m.name), ": ", m.message));
    EXPECT_EQ(model.error().str().find('\n'), std::string::npos);
  }
}

constexpr const char* kNoModel =
    "is not a model that can be opened: neither .entity, GGUF, ONNX (by its name), a description "
    "nor safetensors; export the model to one of these";

TEST(Mistake, AFileThatIsNotWhole) {
  expect_refusals({
      {"empty.gguf", "", "at byte 0: is empty; the download or the copy was not finished"},
      {"cut.gguf", start_of("llama.gguf", 4000),
       "at byte 3488: tensor 'blk.0.attn_q.weight' needs 2048 bytes, 512 remain; copy or download "
       "it again"},
      {"cut.npz", start_of("net.npz", 900),
       "at byte 900: not a whole ZIP file: its directory is absent; copy or download it again"},
      {"cut.safetensors", start_of("net_f32.safetensors", 300),
       "at byte 91: tensor \"0.bias\" ends at 16, the data has 4 bytes; copy or download it again"},
      {"zeros.safetensors", std::string(100, '\0'),
       "at byte 0: holds zero bytes; the download or the copy was not finished"},
      {"page.safetensors", "<!DOCTYPE html><html><body>404 Not Found</body></html>",
       "at byte 0: is a web page (HTML); download the file itself, not the page about it"},
      {"pointer.safetensors",
       "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n",
       "at byte 0: is a Git LFS pointer and not the file itself; fetch it: git lfs pull"},
  });
}

TEST(Mistake, AFileOfAnotherKind) {
  expect_refusals({
      {"notes.txt", "hello", kNoModel},
      {"list.json", "[1, 2]", kNoModel},
      {"one.npy", "\x93NUMPY", kNoModel},
      {"model.h5", "\x89HDF\r\n\x1a\n" + std::string(100, '\0'),
       "at byte 0: is an HDF5 file, as Keras writes (.h5); export the model to ONNX, or save "
       "arrays "
       "with numpy.savez"},
      {"model.pkl", "\x80\x04\x95" + std::string(20, 'x') + ".",
       "at byte 0: is a Python pickle, which runs code when it is opened; save its tensors with "
       "safetensors.torch.save_file, or use loom.absorb"},
  });
}

TEST(Mistake, ADescriptionThatIsWrong) {
  expect_refusals({
      {"comma.json", network_of(R"({"type": "Softmax"},)"),
       "at byte 57: expected a value after ',', found ']'"},
      {"other.json", R"({"model": 1})",
       "at byte 10: model: unknown key; a network has loom, input, grid, cells, layers"},
      {"field.json", network_of(R"({"type": "Dense", "in": 5, "units": 4})"),
       "at byte 73: layers[0].units: unknown key; Dense has in, out, bias, activation, soft_cap, "
       "scale"},
      {"range.json", network_of(R"({"type": "Dense", "in": 5, "out": 0})"),
       "at byte 71: layers[0].out: expected an integer from 1 to 16777216, found 0"},
      {"fit.json", network_of(R"({"type": "Dense", "in": 6, "out": 4})"),
       "cell (0, 0, 0, 0) does not fit the input: Dense: input [1, 5] must end in 6, or have that "
       "many values per sample"},
      {"layers.json", R"({"loom": 1, "input": [5]})",
       "at byte 0: \"layers\" or \"grid\" is required, but absent"},
      {"version.json", R"({"loom": 2, "input": [5], "layers": []})",
       "at byte 9: loom: expected 1, the version of the form, found 2"},
  });
}

TEST(Mistake, AStateDictThatDoesNotSayItsNetwork) {
  expect_refusals({
      {"guess.safetensors", zeros({{"0.weight", {4, 5}}, {"2.weight", {3, 4}}}),
       "weights do not tell the activation after '0' (--activation NAME, as relu, tanh, or linear "
       "for none); give the options, here or to loom convert, or --assume to take the usual "
       "choices"},
      {"gap.safetensors", zeros({{"0.weight", {4, 5}}, {"1.weight", {3, 6}}}),
       "'1' takes 6 values, but '0' before it gives 4, and no other order fits; describe the "
       "network in JSON"},
      {"odd.safetensors", zeros({{"foo", {2, 2, 2, 2, 2}}}),
       "1 tensor has no place in a network of ours: foo; describe the network in JSON, and give "
       "this file with --weights"},
  });
}

// A copy of the golden folder with one file changed; an empty text removes the file.
TEST(Mistake, AModelFolderWithAWrongFile) {
  struct Case {
    const char* file;
    std::string text;
    const char* message;  // $F is the folder
  };
  const std::string config = start_of("llama/config.json", size_t{1} << 20);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = config;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const Case cases[] = {
      {"config.json", "",
       "$F: config.json is missing; a model folder has config.json, tokenizer.json and "
       "model.safetensors"},
      {"model.safetensors", "",
       "$F: model.safetensors is missing, and so is model.safetensors.index.json; other weight "
       "files (pytorch_model.bin) are not read; save_pretrained() of transformers writes it"},
      {"config.json",
       "{\"a\":", "$F/config.json: at byte 5: expected a value, found the end of the text"},
      {"config.json", with("\"hidden_size\": 32", "\"hidden_size\": 64"),
       "$F/model.safetensors: at byte 3528: model.embed_tokens.weight has shape [37, 32], "
       "config.json asks for [37, 64] (vocab_size, hidden_size)"},
  };
  for (const Case& c : cases) {
    const TemporaryFolder folder;
    const std::string copy = folder.path("model");
    fs::copy(golden("llama"), copy);
    if (c.text.empty()) {
      fs::remove(copy + "/" + c.file);
    } else {
      folder.write(cat("model/", c.file), c.text);
    }
    std::string message = c.message;
    message.replace(0, 2, copy);
    const auto model = open_model(copy);
    ASSERT_FALSE(model.ok()) << message;
    EXPECT_EQ(model.error().str(), message);
  }
}

TEST(Mistake, ATensorFileThatHasNone) {
  const TemporaryFolder folder;
  folder.write("net.json", network_of(R"({"type": "Softmax"})"));
  folder.write("notes.txt", "hello");
  EXPECT_EQ(open_tensor_file(folder.path("net.json")).error().str(),
            folder.path("net.json") + ": a description has no tensors; give a file with weights");
  EXPECT_EQ(open_tensor_file(folder.path("notes.txt")).error().str(),
            folder.path("notes.txt") +
                ": holds no tensors that can be read; give an .entity, GGUF or safetensors file");
}

TEST(Mistake, WeightsThatAreADescription) {
  const TemporaryFolder folder;
  folder.write("net.json", network_of(R"({"type": "Dense", "in": 5, "out": 2})"));
  const auto network = open_model(folder.path("net.json"));
  ASSERT_TRUE(network.ok());
  const auto weights = open_network_weights(folder.path("net.json"), network->network->spec);
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().str(),
            folder.path("net.json") +
                ": this is a description and holds no weights; give a file that loom train wrote");
}

TEST(Mistake, ALanguageModelWhereANetworkIsAskedFor) {
  for (const char* file : {"llama", "llama.gguf"}) {
    const auto network = open_network(golden(file));
    ASSERT_FALSE(network.ok());
    EXPECT_EQ(network.error().str(),
              golden(file) +
                  ": this is a language model; give a network: a description or what "
                  "loom train wrote");
  }
}

TEST(Mistake, AFolderOfTheOutputThatDoesNotExist) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  const std::string path = folder.path("none/net.entity");
  const Status written = write_model(path, *opened(golden("net.npz")), {}, pool);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().str(), path + ": the folder for it does not exist; make it first");
}

}  // namespace
}  // namespace loom::core::test
