// Reports, differences and refusals of the golden files. numpy computed the numbers of differences.
#include "convert/description_diff.hpp"
#include "convert/golden_testing.hpp"

namespace loom::core::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<TensorFile> parameters(const std::string& path) {
  auto file = open_parameters(opened(path));
  EXPECT_TRUE(file.ok());
  return *std::move(file);
}

TEST(GoldenReport, NamesTheFormatTheGridAndTheParameters) {
  struct Case {
    const char* file;
    const char* format;
    const char* grid;
    int64_t parameters;
  };
  const Case cases[] = {
      {"net.npz", "arrays of a network", "1 x 1 x 2 x 1", 39},
      {"net_bf16.safetensors", "tensors without a configuration", "1 x 1 x 2 x 1", 39},
      {"net_f16.onnx", "ONNX", "1 x 1 x 2 x 1", 39},
      {"llama", "Hugging Face folder", "3 x 1 x 1 x 2", 37 * 32 + 6 * 1024 + 3 * 32},
      {"llama.gguf", "GGUF", "3 x 1 x 1 x 2", 37 * 32 + 6 * 1024 + 3 * 32},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.file);
    const auto model = opened(golden(c.file));
    ASSERT_NE(model, nullptr);
    const auto report = report_model(*model);
    ASSERT_TRUE(report.ok()) << report.error().str();
    EXPECT_EQ(report->format, c.format);
    EXPECT_EQ(report->grid, c.grid);
    EXPECT_EQ(report->parameters, c.parameters);
  }
}

TEST(GoldenReport, HasALineForEachLayerOfALanguageModel) {
  for (const char* file : {"llama", "llama.gguf"}) {
    SCOPED_TRACE(file);
    const auto report = report_model(*opened(golden(file)));
    ASSERT_TRUE(report.ok()) << report.error().str();
    std::vector<std::string> lines;
    report_layers(*report, [&](const LayerReport& r) {
      lines.push_back(
          cat(r.at, " ", r.type, " ", r.parameters, r.notes.empty() ? "" : ", ", r.notes));
    });
    EXPECT_THAT(lines,
                ElementsAre("(0, 0, 0, 0) Embedding 1184", "(1, 0, 0, 0) Residual 3104",
                            "(1, 0, 0, 0)/0 RMSNorm 32", "(1, 0, 0, 0)/1 MultiHeadAttention 3072",
                            "(1, 0, 0, 1) Residual 3104", "(1, 0, 0, 1)/0 RMSNorm 32",
                            "(1, 0, 0, 1)/1 SwiGLU 3072", "(2, 0, 0, 0) RMSNorm 32",
                            "(2, 0, 0, 1) Dense 1184, weights of (0, 0, 0, 0)"));
  }
}

TEST(GoldenDiff, HasTheNumbersOfNumpy) {
  const JsonValue facts = golden_facts();
  size_t compared = 0;
  std::string pair;
  std::vector<TensorDifference> found;
  for (const JsonValue& row : facts.find("differences")->elements()) {
    const std::string a = row.find("a")->text(), b = row.find("b")->text();
    if (cat(a, " and ", b) != pair) {
      pair = cat(a, " and ", b);
      auto tensors = compare_tensors(*parameters(golden(a)), *parameters(golden(b)));
      ASSERT_TRUE(tensors.ok()) << tensors.error().str();
      found = *std::move(tensors);
    }
    SCOPED_TRACE(cat(pair, ", ", row.find("name")->text()));
    for (const TensorDifference& d : found) {
      if (d.name != row.find("name")->text()) continue;
      ++compared;
      EXPECT_TRUE(d.comparable());
      EXPECT_EQ(d.different, *row.find("different")->as_int(""));
      EXPECT_EQ(d.max_ulp, *row.find("max_ulp")->as_int(""));
      EXPECT_DOUBLE_EQ(d.max_abs, *row.find("max_abs")->as_double(""));
      EXPECT_NEAR(d.relative, *row.find("relative")->as_double(""), 1e-12);
      EXPECT_NEAR(d.cosine, *row.find("cosine")->as_double(""), 1e-12);
    }
  }
  EXPECT_EQ(compared, facts.find("differences")->elements().size());
}

TEST(GoldenDiff, OfDescriptionsFindsOnlyWhatDiffers) {
  const TemporaryFolder folder;
  const std::string net =
      R"({"loom":1,"input":[5],"layers":[{"type":"Dense","in":5,"out":4,"activation":"relu"},)";
  folder.write("same.json", net + R"({"type":"Dense","in":4,"out":3}]})");
  folder.write("tanh.json", net + R"({"type":"Dense","in":4,"out":3,"activation":"tanh"}]})");
  folder.write("longer.json", net + R"({"type":"Dense","in":4,"out":3},{"type":"Softmax"}]})");
  struct Case {
    const char* b;
    std::vector<std::string> lines;  // name: a | b
  };
  const Case cases[] = {
      {"same.json", {}},
      {"tanh.json",
       {"(0, 0, 1, 0) layer: Dense: in 4, out 3 | Dense: in 4, out 3, activation tanh"}},
      {"longer.json", {"(0, 0, 2, 0) layer:  | Softmax"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.b);
    const auto found = compare_descriptions(*opened(golden("net.npz")), *opened(folder.path(c.b)));
    ASSERT_TRUE(found.ok()) << found.error().str();
    std::vector<std::string> lines;
    for (const TensorDifference& d : *found)
      lines.push_back(cat(d.name, ": ", d.shape_a, " | ", d.shape_b));
    EXPECT_EQ(lines, c.lines);
  }
}

TEST(GoldenDiff, OfFilesWithoutADescriptionComparesLayersWithParameters) {
  for (const char* b : {"net_f32.safetensors", "net_f32.onnx"}) {
    SCOPED_TRACE(b);
    const auto found = compare_descriptions(*opened(golden("net.npz")), *opened(golden(b)));
    ASSERT_TRUE(found.ok()) << found.error().str();
    EXPECT_THAT(*found, IsEmpty());
  }
}

TEST(GoldenRefusal, SaysWhatAFormatCannotHold) {
  struct Case {
    const char* from;
    const char* to;
    const char* dtype;
    const char* message;
  };
  const Case cases[] = {
      {"net.npz", "to.gguf", "",
       "cannot write a network as '.gguf'; choose .entity, .json, .npz, .onnx, .safetensors"},
      {"net.npz", "to", "",
       "cannot write a network as a folder; choose .entity, .json, .npz, .onnx, .safetensors"},
      {"net.npz", "to.pt", "",
       "cannot write a network as '.pt'; choose .entity, .json, .npz, .onnx, .safetensors"},
      {"llama", "to.npz", "",
       "cannot write a language model as '.npz'; choose .entity, .json, .gguf, or a folder (a name "
       "without an extension)"},
      {"llama", "to.safetensors", "",
       "cannot write a language model as '.safetensors'; choose .entity, .json, .gguf, or a folder "
       "(a name without an extension)"},
      {"llama", "to.gguf", "int8", "GGUF has no type int8; choose float32, float16, bfloat16, "},
      {"llama.gguf", "to", "q8_0",
       "a Hugging Face folder has no type q8_0; choose float32, float16 or bfloat16, or write a "
       ".gguf "
       "or .entity file"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.from, " to ", c.to));
    const TemporaryFolder folder;
    WriteOptions options;
    if (*c.dtype != 0) options.dtype = parse_dtype(c.dtype).value();
    ThreadPool pool(1);
    const Status written = write_model(folder.path(c.to), *opened(golden(c.from)), options, pool);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, Code::unsupported);
    EXPECT_THAT(written.error().str(),
                testing::StartsWith(cat(folder.path(c.to), ": ", c.message)));
    EXPECT_EQ(folder.file_count(), 0u);
  }
}

TEST(GoldenRefusal, SaysWhatIsLeftOut) {
  struct Case {
    const char* from;
    const char* to;
    bool with_weights;
    std::vector<std::string> lines;
  };
  const Case cases[] = {
      {"net.npz",
       "to.json",
       false,
       {"left out, as .json without --with-weights has no place for it: the weights"}},
      {"net.npz", "to.json", true, {}},
      {"net.npz", "to.onnx", false, {}},
      {"net.npz", "to.safetensors", false, {}},
      {"llama", "to.entity", false, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.from, " to ", c.to));
    WriteOptions options;
    options.with_weights = c.with_weights;
    EXPECT_EQ(left_out(c.to, *opened(golden(c.from)), options), c.lines);
  }
}

}  // namespace
}  // namespace loom::core::test
