// A shared library of a stranger that holds Loom, as an extension of Python does. Compiled with the
// warnings of a strict project, so that Loom's public headers stay clean under them; options are
// given by name, which warns of members that have no initializer.
#include <loom/loom.hpp>
#include <string>

// The beginning of a story, or the error; the text lives until the next call.
extern "C" const char* plugin_story(const char* model_path) {
  static std::string text;
  const auto failed = [](const loom::Error& error) {
    text = "error: " + error.str();
    return text.c_str();
  };
  auto engine = loom::Engine::create({.threads = 2});
  if (!engine) return failed(engine.error());
  auto model = loom::Model::load(*engine, model_path, {.dtype = loom::DType::q8_0});
  if (!model) return failed(model.error());
  auto session = model->session({.context = 64});
  if (!session) return failed(session.error());
  auto story = session->generate("Once upon a time", {.max_tokens = 12, .sampler = {.seed = 7}});
  if (!story) return failed(story.error());
  text = story->text;
  return text.c_str();
}
