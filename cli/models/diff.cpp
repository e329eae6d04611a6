// loom diff: the tensors of two model files side by side.
#include <fmt/core.h>

#include <memory>

#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

struct DiffFlags {
  std::string a, b;
  MemoryFlags memory;
  bool parameters = false, json = false, all = false;
};

std::string types(const TensorDifference& d) {
  return d.dtype_a == d.dtype_b ? d.dtype_a : d.dtype_a + "/" + d.dtype_b;
}

void print_line(const TensorDifference& d) {
  std::string what;
  if (d.only_a || d.only_b) {
    what = d.only_a ? "only in the first" : "only in the second";
  } else if (!d.comparable()) {
    what = fmt::format("{} and {}", d.shape_a, d.shape_b);
  } else if (d.same_bytes) {
    what = "same bytes";
  } else if (d.different == 0 && d.dtype_a != "text") {
    what = "same values";
  } else if (d.dtype_a == "text") {
    what = "another text";
  } else {
    what = fmt::format("{} of {} values differ, max {:.3e}, {} ulp, relative {:.3e}, cosine {:.6f}",
                       d.different, d.count, d.max_abs, d.max_ulp, d.relative, d.cosine);
  }
  write_line(fmt::format("{:<40} {:<16} {}", d.name, types(d), what));
}

Json difference_json(const TensorDifference& d) {
  JsonObject out;
  out.set("name", d.name).set("equal", d.equal());
  if (!d.only_b) out.set("dtype_a", d.dtype_a).set("shape_a", d.shape_a);
  if (!d.only_a) out.set("dtype_b", d.dtype_b).set("shape_b", d.shape_b);
  if (!d.comparable()) return out.value();
  out.set("same_bytes", d.same_bytes)
      .set("count", d.count)
      .set("different", d.different)
      .set("max_abs", d.max_abs)
      .set("max_ulp", d.max_ulp)
      .set("relative", d.relative)
      .set("cosine", d.cosine);
  return out.value();
}

int run(const DiffFlags& f) {
  EngineFlags engine;
  engine.threads = 1;
  const Result<Engine> on = engine.create(f.memory);
  if (!on.ok()) return fail(on.error());
  DiffOptions how{.by_parameters = f.parameters, .engine = *on};
  how.progress = [](uint64_t, uint64_t) { return !interrupted(); };
  const Result<std::vector<TensorDifference>> all = diff(f.a, f.b, how);
  if (!all.ok()) return fail(all.error());
  int64_t same = 0;
  Json list = Json::array();
  for (const TensorDifference& d : *all) {
    same += d.equal() ? 1 : 0;
    if (f.json) list.push(difference_json(d));
    if (!f.json && (f.all || !d.equal())) print_line(d);
  }
  const auto count = static_cast<int64_t>(all->size());
  if (f.json) {
    JsonObject().set("tensors", count).set("equal", same).set("list", std::move(list)).print();
  } else {
    write_out(fmt::format("{} of {} tensors are equal\n", same, count));
  }
  return same == count ? kDone : kMismatch;
}

}  // namespace

Verb add_diff(Command app) {
  auto f = std::make_shared<DiffFlags>();
  const Command verb =
      app.command("diff", "Compare the tensors of two models; exit code 5 if they differ.");
  verb.examples(
      "  loom diff a.entity b.entity\n"
      "  loom diff model.gguf model.entity --all\n"
      "  loom diff before.safetensors after.safetensors --json");
  verb.option("A", f->a, "Model file or folder").names_model().required();
  verb.option("B", f->b, "Another").names_model().required();
  verb.flag("--parameters", f->parameters,
            "Compare parameters by their place in the network, whatever the files call them");
  verb.flag("--all", f->all, "List equal tensors too");
  verb.flag("--json", f->json, "One JSON object instead of text");
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
