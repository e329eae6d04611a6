// Loads a model and lets it write: hello MODEL [PROMPT]
#include <cstdio>
#include <loom/loom.hpp>

int main(int argc, char** argv) {
  const auto fail = [](const loom::Error& error) {
    std::fprintf(stderr, "%s\n", error.str().c_str());
    return 1;
  };
  auto engine = loom::Engine::create();  // all cores, the best instruction set
  if (!engine) return fail(engine.error());
  auto model = loom::Model::load(*engine, argc > 1 ? argv[1] : "models/stories.entity");
  if (!model) return fail(model.error());
  auto session = model->session();
  if (!session) return fail(session.error());
  const char* prompt = argc > 2 ? argv[2] : "Once upon a time";
  auto story = session->generate(prompt, {.max_tokens = 80});
  if (!story) return fail(story.error());
  std::printf("%s%s\n", prompt, story->text.c_str());
}
