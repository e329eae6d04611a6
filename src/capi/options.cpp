// Options by name: all that a struct of options has, for languages without that struct.
#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

extern "C" {

loom_status loom_options_new(const char* kind, loom_options** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string wanted, text_of(kind, "kind"));
    if (wanted != "trainer")
      return Error{
          Code::not_found, "there are no options '" + wanted + "'; choose from trainer", {}};
    return give(out, TrainerOptions{});
  });
}

loom_status loom_options_set(loom_options* options, const char* name, const char* text) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(TrainerOptions * object, object_of(options));
    LOOM_ASSIGN(const std::string option, text_of(name, "name"));
    LOOM_ASSIGN(const std::string value, text_of(text, "text"));
    return set_option(*object, option, value);
  });
}

loom_status loom_options_get(const loom_options* options, const char* name, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const TrainerOptions* object, object_of(options));
    LOOM_ASSIGN(const std::string option, text_of(name, "name"));
    LOOM_ASSIGN(const std::string text, option_text(*object, option));
    return give_text(out, text);
  });
}

loom_status loom_options_describe(const loom_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const TrainerOptions* object, object_of(options));
    return give_text(out, describe(*object));
  });
}

loom_status loom_options_idle(const loom_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const TrainerOptions* object, object_of(options));
    std::string lines;
    for (const std::string& idle : idle_options(*object)) lines += idle + "\n";
    return give_text(out, lines);
  });
}

void loom_options_free(loom_options* options) {
  free_handle(options);
}

loom_status loom_trainer_create_with(loom_network* network, const loom_options* options,
                                     loom_engine* engine, loom_trainer** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const TrainerOptions* given, object_of(options));
    TrainerOptions how = *given;
    if (engine != nullptr) {
      LOOM_ASSIGN(how.engine, engine_of(engine));
    }
    LOOM_ASSIGN(Trainer trainer, Trainer::create(*object, how));
    return give(out, std::move(trainer));
  });
}

}  // extern "C"
