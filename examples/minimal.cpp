// Runs a model from a file, as a small device does: minimal FILE [PROMPT]
// With a prompt the file is a language model, which continues it. Otherwise it is a network, which
// runs on a sample of zeros. The program uses only parts of a build with -DLOOM_MINIMAL=ON.
#include <cstdio>
#include <loom/language_model.hpp>
#include <loom/network.hpp>
#include <string>

namespace {

int fail(const loom::Error& error) {
  std::fprintf(stderr, "%s\n", error.str().c_str());
  return 1;
}

int write_story(const std::string& file, const std::string& prompt) {
  auto engine = loom::Engine::create();
  if (!engine) return fail(engine.error());
  auto model = loom::Model::load(*engine, file);
  if (!model) return fail(model.error());
  auto session = model->session();
  if (!session) return fail(session.error());
  auto story = session->generate(prompt, {.max_tokens = 40});
  if (!story) return fail(story.error());
  std::printf("%s%s\n", prompt.c_str(), story->text.c_str());
  return 0;
}

int ask(const std::string& file) {
  auto network = loom::Network::load(file);
  if (!network) return fail(network.error());
  const loom::NetworkInfo info = network->info();
  loom::Shape shape = info.input;
  shape.insert(shape.begin(), 1);
  auto sample =
      loom::Tensor::zeros(shape, info.takes_ids ? loom::DType::int32 : loom::DType::float32);
  if (!sample) return fail(sample.error());
  auto output = network->predict(*sample);
  if (!output) return fail(output.error());
  auto values = output->values<float>();
  if (!values) return fail(values.error());
  for (const float value : *values) std::printf("%g\n", static_cast<double>(value));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "minimal FILE [PROMPT]\n");
    return 2;
  }
  return argc > 2 ? write_story(argv[1], argv[2]) : ask(argv[1]);
}
