// loom new: writes the description of a network: a line per layer, every field with its value.
#include <fmt/core.h>

#include <functional>
#include <memory>

#include "../shared/outputs.hpp"
#include "../shared/verbs.hpp"
#include "table_flags.hpp"

namespace loom::cli {
namespace {

using Builder = std::function<Result<std::string>()>;

struct NewFlags {
  std::string table;
  TableFlags plan;
  TableTextFlags text;
  std::string header = "auto";
  double split = 0;
  uint64_t seed = 1;
  std::string output = "-";
  bool force = false;
  Mlp mlp;
  Cnn cnn;
  Transformer transformer;
  std::string mlp_activation = "relu", cnn_activation = "relu";
  bool full = false;
  Recurrent recurrent;
  RandomGrid random;
};

int write(const NewFlags& f, const Result<std::string>& text) {
  if (!text.ok()) return fail(text.error());
  const Status writable =
      Outputs(f.force)
          .text("-o", f.output, {".json"}, "the description of a network as JSON")
          .check();
  if (!writable.ok()) return fail(writable.error());
  const Status written = write_text(f.output, *text);
  return written.ok() ? kDone : fail(written.error());
}

void add_output(Command verb, NewFlags& f) {
  verb.option("-o,--output", f.output, "File to write; -: stdout").show_default();
  add_force(verb, f.force);
}

void list(Command verb, const char* name, std::vector<int64_t>& to, const char* doc) {
  verb.option(name, to, doc).split_at(',').show_default();
}

void number(Command verb, const char* name, int64_t& to, const char* doc) {
  verb.option(name, to, doc).show_default();
}

Command add_mlp(Command parent, NewFlags& f) {
  const Command verb = parent.command("mlp", "Dense layers.");
  verb.examples("  loom new mlp --in 784 --hidden 256,128 --out 10 -o mlp.json");
  number(verb, "--in", f.mlp.in, "Values of one sample");
  list(verb, "--hidden", f.mlp.hidden, "Widths of the layers between");
  number(verb, "--out", f.mlp.out, "Values of the prediction");
  verb.option("--activation", f.mlp_activation, "Activation of the hidden layers").show_default();
  return verb;
}

Command add_cnn(Command parent, NewFlags& f) {
  const Command verb = parent.command("cnn", "Convolutions over images, then Dense layers.");
  verb.examples(
      "  loom new cnn -o cnn.json\n"
      "  loom new cnn --picture 3,32,32 --filters 16,32,64 --kernels 3 --out 10 -o c.json");
  list(verb, "--picture", f.cnn.picture, "channels,height,width");
  list(verb, "--filters", f.cnn.filters, "Filters of each convolution");
  list(verb, "--kernels", f.cnn.kernels, "Kernel sizes; the last goes on");
  number(verb, "--stride", f.cnn.stride, "Step between outputs");
  list(verb, "--hidden", f.cnn.hidden, "Widths of Dense layers before the last");
  number(verb, "--out", f.cnn.out, "Values of the prediction");
  verb.option("--activation", f.cnn_activation, "Activation of all layers but the last")
      .show_default();
  return verb;
}

Command add_transformer(Command parent, NewFlags& f) {
  const Command verb = parent.command("transformer", "Attention and SwiGLU over ids.");
  verb.examples("  loom new transformer --vocab 256 --width 128 --layers 4 --heads 4 -o t.json");
  number(verb, "--vocab", f.transformer.vocab, "Ids are below this");
  number(verb, "--width", f.transformer.width, "Values per position");
  number(verb, "--layers", f.transformer.layers, "Pairs of attention and SwiGLU");
  number(verb, "--heads", f.transformer.heads, "Query heads");
  number(verb, "--kv-heads", f.transformer.kv_heads, "Key and value heads; 0: as many");
  number(verb, "--inner", f.transformer.inner, "Width inside SwiGLU; 0: four times the width");
  number(verb, "--time", f.transformer.time, "Positions of one sample");
  number(verb, "--out", f.transformer.out, "Values per position; 0: the vocabulary");
  verb.flag("--full", f.full, "Every position sees all, not only earlier ones");
  return verb;
}

Command add_recurrent(Command parent, NewFlags& f, const std::string& cell) {
  const Command verb = parent.command(cell, "Recurrent layers over steps, then Dense.");
  verb.examples(
      fmt::format("  loom new {} --in 3 --time 20 --hidden 32,32 --out 5 -o r.json", cell));
  number(verb, "--in", f.recurrent.in, "Values of one step");
  number(verb, "--time", f.recurrent.time, "Steps of one sample");
  list(verb, "--hidden", f.recurrent.hidden, "Widths of the layers");
  number(verb, "--out", f.recurrent.out, "Values of the prediction");
  number(verb, "--vocab", f.recurrent.vocab, "The input are ids below this; 0: numbers");
  verb.flag("--sequence", f.recurrent.sequence, "A prediction for every step");
  return verb;
}

Command add_random(Command parent, NewFlags& f) {
  const Command verb = parent.command("random", "A grid of random layers.");
  verb.examples("  loom new random --in 8 --out 3 --depth 2 --rows 2 --seed 7 -o random.json");
  number(verb, "--in", f.random.in, "Values of one sample");
  number(verb, "--out", f.random.out, "Values of the prediction");
  number(verb, "--width", f.random.width, "Values between layers");
  number(verb, "--depth", f.random.depth, "Extent of the grid in z");
  number(verb, "--rows", f.random.rows, "Extent in y");
  number(verb, "--cols", f.random.cols, "Extent in x");
  number(verb, "--layers", f.random.layers, "Layers per cell");
  verb.option("--seed", f.random.seed, "The distribution of the values").show_default();
  return verb;
}

// A network that fits a table, with the plan of its columns.
Result<std::string> for_table(const NewFlags& f) {
  DatasetOptions how;
  LOOM_ASSIGN(how.header, parse_csv_header(f.header));
  f.text.set(how);
  LOOM_ASSIGN(how.table, f.plan.options());
  how.table->share = f.split;
  how.table->seed = f.seed;
  LOOM_ASSIGN(TableNetwork made, plan_samples(f.table, how));
  note(made.description);
  for (const std::string& text : made.notes) note(text);
  return std::move(made.json);
}

void add_table(Command verb, NewFlags& f) {
  const Command table = verb.group("Table");
  table.option("--for", f.table, "A table (.csv, .tsv, -): a network that fits its columns");
  f.plan.add(verb);
  table.option("--header", f.header, "Is the first row a header: yes, no, auto").show_default();
  f.text.add(table);
  table
      .option("--split", f.split,
              "Share of the rows that will train, as in loom train: means and levels are theirs")
      .range(0.0, 1.0);
  table.option("--seed", f.seed, "Seed of that split").show_default();
}

}  // namespace

Verb add_new(Command app) {
  auto f = std::make_shared<NewFlags>();
  const Command verb = app.command("new", "Write the description of a network.");
  verb.examples(
      "  loom new mlp --in 784 --hidden 256,128 --out 10 -o mlp.json\n"
      "  loom new cnn -o cnn.json\n"
      "  loom new gru --in 3 --time 20 --hidden 32 --out 5\n"
      "  loom new --for houses.csv --target price -o houses.json");
  add_table(verb, *f);
  std::vector<std::pair<Command, Builder>> kinds;
  kinds.emplace_back(add_mlp(verb, *f), [f]() -> Result<std::string> {
    LOOM_ASSIGN(f->mlp.activation, parse_activation(f->mlp_activation));
    return describe(f->mlp);
  });
  kinds.emplace_back(add_cnn(verb, *f), [f]() -> Result<std::string> {
    LOOM_ASSIGN(f->cnn.activation, parse_activation(f->cnn_activation));
    return describe(f->cnn);
  });
  kinds.emplace_back(add_transformer(verb, *f), [f] {
    f->transformer.causal = !f->full;
    return describe(f->transformer);
  });
  for (const RecurrentCell cell : {RecurrentCell::rnn, RecurrentCell::lstm, RecurrentCell::gru}) {
    const std::string name(recurrent_cell_name(cell));
    kinds.emplace_back(add_recurrent(verb, *f, name), [f, cell] {
      f->recurrent.cell = cell;
      return describe(f->recurrent);
    });
  }
  kinds.emplace_back(add_random(verb, *f), [f] { return describe(f->random); });
  for (const auto& [kind, build] : kinds) add_output(kind, *f);
  add_output(verb, *f);
  return {verb, [f, kinds] {
            for (const auto& [kind, build] : kinds) {
              if (kind.called()) return write(*f, build());
            }
            if (!f->table.empty()) return write(*f, for_table(*f));
            return fail(kUsage,
                        "what kind of network? mlp, cnn, transformer, rnn, lstm, gru, random, or "
                        "--for TABLE; see loom new --help");
          }};
}

}  // namespace loom::cli
