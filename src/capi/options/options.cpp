// Options by name: all that a struct of options has, for languages without that struct.
#include "capi/options/options_as.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

Result<AnyOptions> new_options(std::string_view kind) {
  std::string known;
  for (const OptionKind& each : kOptionKinds) {
    if (each.name == kind) return each.defaults();
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  return Error{Code::not_found,
               "there are no options '" + std::string(kind) + "'; choose from " + known,
               {}};
}

// A text of the options, whichever they are.
template <class F>
loom_status give_of_options(const loom_options* options, char** out, F&& text) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const AnyOptions* object, object_of(options));
    LOOM_ASSIGN(const std::string found,
                std::visit([&](const auto& o) { return Result<std::string>(text(o)); }, *object));
    return give_text(out, found);
  });
}

}  // namespace

extern "C" {

loom_status loom_options_new(const char* kind, loom_options** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string requested, text_of(kind, "kind"));
    LOOM_ASSIGN(AnyOptions made, new_options(requested));
    return give(out, std::move(made));
  });
}

loom_status loom_options_set(loom_options* options, const char* name, const char* text) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(AnyOptions * object, object_of(options));
    LOOM_ASSIGN(const std::string option, text_of(name, "name"));
    LOOM_ASSIGN(const std::string value, text_of(text, "text"));
    return std::visit([&](auto& o) { return set_option(o, option, value); }, *object);
  });
}

loom_status loom_options_get(const loom_options* options, const char* name, char** out) {
  if (name == nullptr) return fail(invalid("'name' is null; give the name of an option"));
  return give_of_options(options, out, [&](const auto& o) { return option_text(o, name); });
}

loom_status loom_options_describe(const loom_options* options, char** out) {
  return give_of_options(options, out, [](const auto& o) { return describe(o); });
}

loom_status loom_options_idle(const loom_options* options, char** out) {
  return give_of_options(options, out, [](const auto& o) {
    std::string lines;
    for (const std::string& idle : idle_options(o)) lines += idle + "\n";
    return lines;
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
    LOOM_ASSIGN(TrainerOptions how, options_as<TrainerOptions>(options));
    if (engine != nullptr) {
      LOOM_ASSIGN(how.engine, engine_of(engine));
    }
    LOOM_ASSIGN(Trainer trainer, Trainer::create(*object, how));
    return give(out, std::move(trainer));
  });
}

}  // extern "C"
