// A population as JSON text, without derivable data: a genome's connections have the ends that the
// table of innovations lists for their numbers; inputs, bias and outputs follow from the shape.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "bridge/normalization.hpp"
#include "evolve/neat/neat.hpp"
#include "io/json/json.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

constexpr int64_t kFormat = 1;

JsonValue real(double v) {
  return std::isfinite(v) ? JsonValue::real(v) : JsonValue();
}
JsonValue json_integer(int64_t v) {
  return JsonValue::integer(v);
}
JsonValue list(std::vector<JsonValue> v) {
  return JsonValue::array(std::move(v));
}
JsonValue word(std::string_view v) {
  return JsonValue::string(std::string(v));
}

// One visit names all numbers of a spec, for the writer and the reader alike.
template <class Spec, class F>
void visit_numbers(Spec& s, F&& f) {
  f("add_node", s.rates.add_node);
  f("add_connection", s.rates.add_connection);
  f("weights", s.rates.weights);
  f("new_weight", s.rates.new_weight);
  f("weight_step", s.rates.weight_step);
  f("first_weight", s.rates.first_weight);
  f("weight_limit", s.rates.weight_limit);
  f("enable", s.rates.enable);
  f("activation", s.rates.activation);
  f("keep_disabled", s.rates.keep_disabled);
  f("average", s.rates.average);
  f("excess", s.rates.excess);
  f("disjoint", s.rates.disjoint);
  f("weight_difference", s.rates.weight_difference);
  f("survivors", s.selection.survivors);
  f("alone", s.selection.alone);
  f("between", s.selection.between);
  f("crossed_only", s.selection.crossed_only);
  f("threshold", s.threshold);
}
template <class Spec, class F>
void visit_counts(Spec& s, F&& f) {
  f("inputs", s.shape.inputs);
  f("outputs", s.shape.outputs);
  f("population", s.selection.population);
  f("patience", s.selection.patience);
  f("crisis", s.selection.crisis);
  f("champion_from", s.selection.champion_from);
}

JsonValue spec_json(const NeatSpec& spec) {
  JsonValue out = JsonValue::object();
  visit_counts(
      spec, [&](std::string_view name, int64_t v) { out.add(std::string(name), json_integer(v)); });
  visit_numbers(spec,
                [&](std::string_view name, double v) { out.add(std::string(name), real(v)); });
  out.add("recurrent", JsonValue::boolean(spec.shape.recurrent));
  out.add("connected", JsonValue::boolean(spec.shape.connected));
  out.add("output", word(activation_name(spec.shape.output)));
  std::vector<JsonValue> hidden;
  for (const Activation a : spec.shape.hidden) hidden.push_back(word(activation_name(a)));
  out.add("hidden", list(std::move(hidden)));
  out.add("slope", real(static_cast<double>(spec.slope)));
  out.add("seed", word(cat(spec.seed)));  // more than a JSON number keeps
  return out;
}

JsonValue genome_json(const NeatGenome& genome) {
  std::vector<JsonValue> nodes, connections;
  for (const NodeGene& n : genome.nodes) {
    if (n.role == NodeRole::hidden)
      nodes.push_back(list({json_integer(n.id), word(activation_name(n.activation))}));
  }
  for (const ConnectionGene& c : genome.connections)
    connections.push_back(list({json_integer(c.innovation), real(static_cast<double>(c.weight)),
                                JsonValue::boolean(c.enabled)}));
  JsonValue out = JsonValue::object();
  out.add("hidden", list(std::move(nodes)));
  out.add("connections", list(std::move(connections)));
  return out;
}

JsonValue generation_json(const NeatGeneration& g) {
  std::vector<JsonValue> species;
  for (const auto& [id, members] : g.species)
    species.push_back(list({json_integer(id), json_integer(members)}));
  JsonValue out = JsonValue::object();
  out.add("evaluations", json_integer(g.evaluations));
  out.add("best", real(g.best));
  out.add("mean", real(g.mean));
  out.add("worst", real(g.worst));
  out.add("failed", json_integer(g.failed));
  out.add("hidden", json_integer(g.hidden));
  out.add("connections", json_integer(g.connections));
  out.add("species", list(std::move(species)));
  return out;
}

JsonValue species_json(const Species& s) {
  std::vector<JsonValue> members;
  for (const size_t m : s.members) members.push_back(json_integer(static_cast<int64_t>(m)));
  JsonValue out = JsonValue::object();
  out.add("id", json_integer(s.id));
  out.add("age", json_integer(s.age));
  out.add("stagnant", json_integer(s.stagnant));
  out.add("best", real(s.best));
  out.add("members", list(std::move(members)));
  return out;
}

JsonValue record_json(const FitnessRecord& r) {
  JsonValue out = JsonValue::object();
  out.add("by", word(r.samples ? "samples" : "program"));
  out.add("normalize", word(normalize_name(r.normalize)));
  out.add("validation", real(r.validation));
  out.add("data", word(r.data_hash));
  out.add("timeout", real(r.timeout));
  out.add("goal", r.goal ? real(*r.goal) : JsonValue());
  return out;
}

template <class Items, class F>
JsonValue list_of(const Items& items, F&& json) {
  std::vector<JsonValue> out;
  for (const auto& item : items) out.push_back(json(item));
  return list(std::move(out));
}

}  // namespace

std::string NeatPopulation::text() const {
  JsonValue innovations = JsonValue::object();
  innovations.add("next_node", json_integer(innovations_.next_node()));
  innovations.add("connections", list_of(innovations_.connections(), [](const auto& c) {
                    return list({json_integer(c.first), json_integer(c.second)});
                  }));
  innovations.add("splits", list_of(innovations_.splits(), [](const Innovations::Split& s) {
                    return list({json_integer(s.connection), json_integer(s.node)});
                  }));
  JsonValue out = JsonValue::object();
  out.add("loom_population", json_integer(kFormat));
  out.add("kind", word("neat"));
  out.add("options", spec_json(spec_));
  if (fitness_record) out.add("fitness", record_json(*fitness_record));
  out.add("innovations", std::move(innovations));
  out.add("next_species", json_integer(next_species_));
  out.add("stagnant", json_integer(stagnant_));
  out.add("best_fitness", real(best_fitness_));
  out.add("best", best_.nodes.empty() ? JsonValue() : genome_json(best_));
  out.add("history", list_of(history_, generation_json));
  out.add("species", list_of(species_, species_json));
  out.add("genomes", list_of(genomes_, genome_json));
  return dump_json(out) + "\n";
}

// Reads what text() wrote; every value is checked, since files come from anywhere.
class NeatReader {
 public:
  explicit NeatReader(std::string_view where) : where_(where) {}

  Result<NeatPopulation> read(const JsonValue& file) {
    LOOM_ASSIGN(const int64_t format, json_integer(file, "loom_population"));
    if (format != kFormat) return bad(cat("has format ", format, "; this Loom reads ", kFormat));
    LOOM_ASSIGN(const std::string kind, text(file, "kind"));
    if (kind != "neat") return bad(cat("holds a population of kind ", printable(kind)));
    LOOM_TRY(spec(file));
    LOOM_TRY(fitness_record(file));
    LOOM_TRY(innovations(file));
    LOOM_ASSIGN(p_.next_species_, json_integer(file, "next_species"));
    LOOM_ASSIGN(p_.stagnant_, json_integer(file, "stagnant"));
    LOOM_TRY(history(file));
    LOOM_TRY(best(file));
    LOOM_ASSIGN(const auto* genomes, array(file, "genomes"));
    if (static_cast<int64_t>(genomes->size()) != p_.spec_.selection.population)
      return bad(cat("has ", genomes->size(), " genomes in a population of ",
                     p_.spec_.selection.population));
    for (const JsonValue& g : *genomes) {
      LOOM_ASSIGN(NeatGenome genome, genome_of(g));
      p_.genomes_.push_back(std::move(genome));
    }
    LOOM_TRY(species(file));
    return std::move(p_);
  }

 private:
  Error bad(std::string_view what) const {
    return Error{Code::bad_file, cat(where_, " ", what), {}, -1};
  }
  std::string at(std::string_view key) const { return cat(where_, ": ", key); }

  Result<const JsonValue*> member(const JsonValue& object, std::string_view key) const {
    const JsonValue* found = object.find(key);
    if (found == nullptr) return bad(cat("lacks ", key));
    return found;
  }
  Result<int64_t> json_integer(const JsonValue& object, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* v, member(object, key));
    LOOM_ASSIGN(const int64_t number, v->as_int(at(key)));
    if (number < 0 || number > kMax) return bad(cat("has ", key, " ", number));
    return number;
  }
  Result<double> number(const JsonValue& object, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* v, member(object, key));
    return v->as_double(at(key));
  }
  // null: below all.
  Result<double> fitness(const JsonValue& object, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* v, member(object, key));
    if (v->is_null()) return -std::numeric_limits<double>::infinity();
    return v->as_double(at(key));
  }
  Result<bool> truth(const JsonValue& object, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* v, member(object, key));
    return v->as_bool(at(key));
  }
  Result<std::string> text(const JsonValue& object, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* v, member(object, key));
    return v->as_string(at(key));
  }
  Result<const std::vector<JsonValue>*> array(const JsonValue& object, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* v, member(object, key));
    if (!v->is_array()) return bad(cat("has ", v->describe(), " as ", key, ", not a list"));
    return &v->elements();
  }
  // A list of `count` values.
  Result<const std::vector<JsonValue>*> tuple(const JsonValue& v, size_t count,
                                              std::string_view what) const {
    if (!v.is_array() || v.elements().size() != count)
      return bad(cat("has ", v.describe(), " among its ", what));
    return &v.elements();
  }
  Result<int64_t> index(const JsonValue& v, std::string_view what, int64_t end) const {
    LOOM_ASSIGN(const int64_t number, v.as_int(at(what)));
    if (number < 0 || number >= end) return bad(cat("has ", number, " among its ", what));
    return number;
  }

  Status spec(const JsonValue& file) {
    LOOM_ASSIGN(const JsonValue* options, member(file, "options"));
    NeatSpec& s = p_.spec_;
    Status status;
    visit_counts(s, [&](std::string_view name, int64_t& v) {
      const Result<int64_t> read = json_integer(*options, name);
      read.ok() ? void(v = *read) : void(status = read.error());
    });
    visit_numbers(s, [&](std::string_view name, double& v) {
      const Result<double> read = number(*options, name);
      read.ok() ? void(v = *read) : void(status = read.error());
    });
    LOOM_TRY(status);
    LOOM_ASSIGN(s.shape.recurrent, truth(*options, "recurrent"));
    LOOM_ASSIGN(s.shape.connected, truth(*options, "connected"));
    LOOM_ASSIGN(const std::string output, text(*options, "output"));
    LOOM_ASSIGN(s.shape.output, activation(output));
    LOOM_ASSIGN(const auto* hidden, array(*options, "hidden"));
    s.shape.hidden.clear();
    for (const JsonValue& name : *hidden) {
      LOOM_ASSIGN(const Activation a, activation(name.text()));
      s.shape.hidden.push_back(a);
    }
    LOOM_ASSIGN(const double slope, number(*options, "slope"));
    s.slope = static_cast<float>(slope);
    LOOM_ASSIGN(const std::string seed, text(*options, "seed"));
    s.seed = std::strtoull(seed.c_str(), nullptr, 10);
    if (cat(s.seed) != seed) return bad(cat("has seed ", printable(seed)));
    const Status fits = check_neat(s);
    return fits.ok() ? Status() : bad(cat("has options that do not fit: ", fits.error().message));
  }
  Result<Activation> activation(const std::string& name) const {
    const Result<Activation> a = parse_activation(name);
    if (!a.ok()) return bad(cat("has an ", a.error().message));
    return *a;
  }

  // Files of older releases have none.
  Status fitness_record(const JsonValue& file) {
    const JsonValue* of = file.find("fitness");
    if (of == nullptr) return {};
    FitnessRecord r;
    LOOM_ASSIGN(const std::string by, text(*of, "by"));
    if (by != "samples" && by != "program") return bad(cat("is judged by ", printable(by)));
    r.samples = by == "samples";
    LOOM_ASSIGN(const std::string kind, text(*of, "normalize"));
    const Result<Normalize> found = parse_normalize(kind);
    if (!found.ok()) return bad(cat("has normalize ", printable(kind)));
    r.normalize = *found;
    LOOM_ASSIGN(r.validation, number(*of, "validation"));
    LOOM_ASSIGN(r.data_hash, text(*of, "data"));
    LOOM_ASSIGN(r.timeout, number(*of, "timeout"));
    if (!(r.validation >= 0 && r.validation < 1) || !(r.timeout >= 0))
      return bad("has a validation or a timeout that is out of range");
    LOOM_ASSIGN(const JsonValue* goal, member(*of, "goal"));
    if (!goal->is_null()) {
      LOOM_ASSIGN(r.goal, goal->as_double(at("goal")));
    }
    p_.fitness_record = std::move(r);
    return {};
  }

  Status innovations(const JsonValue& file) {
    LOOM_ASSIGN(const JsonValue* table, member(file, "innovations"));
    LOOM_ASSIGN(const int64_t next, json_integer(*table, "next_node"));
    LOOM_ASSIGN(const auto* connections, array(*table, "connections"));
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const JsonValue& c : *connections) {
      LOOM_ASSIGN(const auto* ends, tuple(c, 2, "connections"));
      LOOM_ASSIGN(const int64_t from, index((*ends)[0], "connections", next));
      LOOM_ASSIGN(const int64_t to, index((*ends)[1], "connections", next));
      pairs.emplace_back(from, to);
    }
    const auto numbers = static_cast<int64_t>(pairs.size());
    LOOM_ASSIGN(const auto* splits, array(*table, "splits"));
    std::vector<Innovations::Split> known;
    for (const JsonValue& s : *splits) {
      LOOM_ASSIGN(const auto* pair, tuple(s, 2, "splits"));
      LOOM_ASSIGN(const int64_t connection, index((*pair)[0], "splits", numbers));
      LOOM_ASSIGN(const int64_t node, index((*pair)[1], "splits", next));
      known.push_back({connection, node});
    }
    Result<Innovations> read = Innovations::from(std::move(pairs), std::move(known), next);
    if (!read.ok()) return bad(cat("has innovations that do not fit: ", read.error().message));
    p_.innovations_ = std::move(*read);
    return {};
  }

  Result<NeatGenome> genome_of(const JsonValue& v) const {
    const NeatShape& shape = p_.spec_.shape;
    const auto& ends = p_.innovations_.connections();
    NeatGenome g;
    const int64_t fixed = shape.inputs + 1 + shape.outputs;
    for (int64_t id = 0; id < fixed; ++id) {
      const NodeRole role = id < shape.inputs    ? NodeRole::input
                            : id == shape.inputs ? NodeRole::bias
                                                 : NodeRole::output;
      g.nodes.push_back({id, role, role == NodeRole::output ? shape.output : Activation::linear});
    }
    LOOM_ASSIGN(const auto* hidden, array(v, "hidden"));
    for (const JsonValue& n : *hidden) {
      LOOM_ASSIGN(const auto* pair, tuple(n, 2, "nodes"));
      LOOM_ASSIGN(const int64_t id, index((*pair)[0], "nodes", p_.innovations_.next_node()));
      LOOM_ASSIGN(const Activation a, activation((*pair)[1].text()));
      g.nodes.push_back({id, NodeRole::hidden, a});
    }
    LOOM_ASSIGN(const auto* connections, array(v, "connections"));
    for (const JsonValue& c : *connections) {
      LOOM_ASSIGN(const auto* triple, tuple(c, 3, "connections"));
      LOOM_ASSIGN(const int64_t innovation,
                  index((*triple)[0], "connections", static_cast<int64_t>(ends.size())));
      LOOM_ASSIGN(const double weight, (*triple)[1].as_double(at("a weight")));
      LOOM_ASSIGN(const bool enabled, (*triple)[2].as_bool(at("a connection")));
      const auto& [from, to] = ends[static_cast<size_t>(innovation)];
      g.connections.push_back({innovation, from, to, static_cast<float>(weight), enabled});
    }
    const Status fits = check_genome(g, shape.recurrent);
    if (!fits.ok()) return bad(cat("has a genome that does not fit: ", fits.error().message));
    return g;
  }

  Status history(const JsonValue& file) {
    LOOM_ASSIGN(const auto* all, array(file, "history"));
    for (const JsonValue& v : *all) {
      NeatGeneration g;
      g.generation = static_cast<int64_t>(p_.history_.size());
      LOOM_ASSIGN(g.evaluations, json_integer(v, "evaluations"));
      LOOM_ASSIGN(g.best, number(v, "best"));
      LOOM_ASSIGN(g.mean, number(v, "mean"));
      LOOM_ASSIGN(g.worst, number(v, "worst"));
      LOOM_ASSIGN(g.failed, json_integer(v, "failed"));
      LOOM_ASSIGN(g.hidden, json_integer(v, "hidden"));
      LOOM_ASSIGN(g.connections, json_integer(v, "connections"));
      LOOM_ASSIGN(const auto* species, array(v, "species"));
      for (const JsonValue& s : *species) {
        LOOM_ASSIGN(const auto* pair, tuple(s, 2, "species"));
        LOOM_ASSIGN(const int64_t id, index((*pair)[0], "species", kMax));
        LOOM_ASSIGN(const int64_t members, index((*pair)[1], "species", kMax));
        g.species.emplace_back(id, members);
      }
      p_.history_.push_back(std::move(g));
    }
    return {};
  }

  Status best(const JsonValue& file) {
    LOOM_ASSIGN(p_.best_fitness_, fitness(file, "best_fitness"));
    LOOM_ASSIGN(const JsonValue* v, member(file, "best"));
    if (v->is_null() != p_.history_.empty())
      return bad("has a best genome and no history, or a history and no best");
    if (v->is_null()) return {};
    LOOM_ASSIGN(p_.best_, genome_of(*v));
    return {};
  }

  Status species(const JsonValue& file) {
    LOOM_ASSIGN(const auto* all, array(file, "species"));
    std::vector<bool> visited(p_.genomes_.size(), false);
    size_t members = 0;
    for (const JsonValue& v : *all) {
      Species s;
      LOOM_ASSIGN(s.id, json_integer(v, "id"));
      LOOM_ASSIGN(s.age, json_integer(v, "age"));
      LOOM_ASSIGN(s.stagnant, json_integer(v, "stagnant"));
      LOOM_ASSIGN(s.best, fitness(v, "best"));
      LOOM_ASSIGN(const auto* list, array(v, "members"));
      for (const JsonValue& m : *list) {
        LOOM_ASSIGN(const int64_t i,
                    index(m, "members of species", static_cast<int64_t>(visited.size())));
        if (visited[static_cast<size_t>(i)]) return bad(cat("has genome ", i, " in two species"));
        visited[static_cast<size_t>(i)] = true;
        s.members.push_back(static_cast<size_t>(i));
        ++members;
      }
      if (s.members.empty()) return bad(cat("has species ", s.id, " without members"));
      p_.species_.push_back(std::move(s));
    }
    if (members != visited.size()) return bad("has genomes of no species");
    return {};
  }

  static constexpr int64_t kMax = int64_t{1} << 53;
  std::string_view where_;
  NeatPopulation p_;
};

Result<NeatPopulation> NeatPopulation::from_text(std::string_view text, std::string_view where) {
  LOOM_ASSIGN(const JsonValue file, parse_json(text, where));
  return NeatReader(where).read(file);
}

}  // namespace loom::core
