// Writing a network in another format: one parameter at a time is in memory.
#include "convert/convert.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "io/arrays/array_file.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors_file.hpp"

namespace loom::core {
namespace {

constexpr int64_t kLayers = 32, kWidth = 1024;  // 128 MiB as f32

// Every value is its index in the parameter; nothing is stored.
class CountingSource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Result<SourceWeight> weight(const Param& param) const override {
    SourceWeight weight;
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    weight.rows = [cols](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t i = 0; i < count * cols; ++i) out[i] = static_cast<float>(first * cols + i);
      return {};
    };
    return weight;
  }
};

NetworkSpec deep_network() {
  MlpOptions mlp;
  mlp.in = mlp.out = kWidth;
  mlp.hidden.assign(kLayers - 1, kWidth);
  return *build_mlp(mlp);
}

int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Runs in a separate process, whose peak is not that of earlier tests. Returns 0, or the error.
int write_apart(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    OpenedModel model;
    model.network = std::make_unique<CountingSource>(deep_network());
    ThreadPool pool(1);
    const int64_t before = peak_kib();
    if (!write_model(path, model, {}, pool).ok()) _exit(1);
    _exit(peak_kib() - before < 32 * 1024 ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(WriteModel, HoldsOneParameterOfASafetensorsFileInMemory) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("net.safetensors");
  ASSERT_EQ(write_apart(path), 0);
  const auto file = SafeTensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->entries().size(), 2 * kLayers);
}

TEST(WriteModel, HoldsOneArrayOfAnNpzFileInMemory) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("net.npz");
  ASSERT_EQ(write_apart(path), 0);
  auto file = ArrayFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto network = Network::finalize(deep_network().grid, Shape{1, kWidth});
  for (const Param& param : network->params()) {
    const auto array = file->find(param.path);
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ(array->count(), param.spec.shape.count());
  }
}

TEST(OpenModel, NamesOfInitializersAreForFilesThatHaveThem) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("net.json");
  std::ofstream(path) << R"({"loom":1,"input":[3],"layers":[{"type":"Dense","in":3,"out":2}]})";
  EXPECT_TRUE(open_model(path).ok());
  for (const bool trainable : {true, false}) {
    OpenOptions options;
    (trainable ? options.trainable : options.frozen) = {"weight"};
    const Result<OpenedModel> opened = open_model(path, options);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Code::invalid_argument);
    EXPECT_NE(opened.error().message.find("initializers of ONNX files"), std::string::npos);
  }
}

}  // namespace
}  // namespace loom::core
