// A population of whole networks as JSON text: descriptions as in network files, weights as
// little-endian float32 in base64.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "evolve/networks/architectures.hpp"
#include "io/bytes/base64.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr int64_t kArchitecturesFormat = 1;
constexpr size_t kMaxHistory = 1 << 20;

JsonValue finite_or_null(double v) {
  return std::isfinite(v) ? JsonValue::real(v) : JsonValue();
}

JsonValue score_json(const ArchitectureScore& s) {
  JsonValue out = JsonValue::array();
  for (const double v : {s.accuracy, s.loss, s.parameters, s.bytes, s.seconds})
    out.push(finite_or_null(v));
  return out;
}

JsonValue genome_json(const GridGenome& genome) {
  JsonValue out = JsonValue::object(), cells = JsonValue::array();
  const Result<NetworkSpec> spec = genome.spec();
  if (spec.ok()) out.add("network", network_json(*spec));
  for (const GeneCell& cell : genome.cells) {
    JsonValue values = JsonValue::object();
    for (const auto& [name, list] : cell.values) {
      const std::string_view bytes(reinterpret_cast<const char*>(list.data()),
                                   list.size() * sizeof(float));
      values.add(name, JsonValue::string(encode_base64(bytes)));
    }
    cells.push(std::move(values));
  }
  out.add("values", std::move(cells));
  return out;
}

JsonValue member_json(const ArchitectureMember& m) {
  JsonValue out = JsonValue::object();
  out.add("id", JsonValue::integer(m.id));
  out.add("parent", JsonValue::integer(m.parent));
  out.add("other", JsonValue::integer(m.other));
  out.add("born", JsonValue::integer(m.born));
  out.add("birth", JsonValue::string(m.birth));
  out.add("score", score_json(m.score));
  out.add("genome", genome_json(m.genome));
  return out;
}

class ArchitecturesReader {
 public:
  explicit ArchitecturesReader(const std::string& where) : where_(where) {}

  Result<const JsonValue*> need(const JsonValue& of, std::string_view key) const {
    const JsonValue* value = of.find(key);
    if (value == nullptr)
      return bad_file(cat("a population needs \"", key, "\""), where_, of.offset());
    return value;
  }
  Result<int64_t> integer_field(const JsonValue& of, std::string_view key, int64_t low,
                                int64_t high) const {
    LOOM_ASSIGN(const JsonValue* value, need(of, key));
    LOOM_ASSIGN(const int64_t number, value->as_int(cat(where_, ": ", key)));
    if (number < low || number > high)
      return bad_file(cat("\"", key, "\" is ", number, ", must be ", low, " to ", high), where_,
                      value->offset());
    return number;
  }
  Result<double> real(const JsonValue& of, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* value, need(of, key));
    return value->as_double(cat(where_, ": ", key));
  }

  Result<ArchitectureScore> score(const JsonValue& of, std::string_view key) const {
    LOOM_ASSIGN(const JsonValue* list, need(of, key));
    if (list->elements().size() != 5)
      return bad_file("a score has five numbers", where_, list->offset());
    double all[5];
    for (size_t i = 0; i < 5; ++i) {
      const JsonValue& one = list->elements()[i];
      all[i] = std::numeric_limits<double>::quiet_NaN();
      if (one.is_null()) continue;
      LOOM_ASSIGN(all[i], one.as_double(cat(where_, ": score")));
    }
    return ArchitectureScore{all[0], all[1], all[2], all[3], all[4]};
  }

  // Checks sizes against the shapes of parameters before decoding.
  Result<GridGenome> genome(const JsonValue& of) const {
    LOOM_ASSIGN(const JsonValue* described, need(of, "network"));
    LOOM_ASSIGN(const NetworkSpec spec, read_network(*described, where_));
    LOOM_ASSIGN(GridGenome out, GridGenome::of(spec));
    LOOM_ASSIGN(const JsonValue* values, need(of, "values"));
    LOOM_ASSIGN(const Network network, out.finalized(1));
    if (values->elements().size() != out.cells.size())
      return bad_file("a genome has values for each of its cells", where_, values->offset());
    for (const Param& param : network.params()) {
      const GenePosition gene = gene_position(param);
      const JsonValue* text = values->elements()[gene.cell].find(gene.name);
      if (text == nullptr) continue;
      const auto count = static_cast<size_t>(param.spec.shape.count());
      if (text->text().size() != (count * sizeof(float) + 2) / 3 * 4)
        return bad_file(cat(param.path, " needs ", count, " values in base64"), where_,
                        text->offset());
      LOOM_ASSIGN(const std::string bytes, decode_base64(text->text()));
      if (bytes.size() != count * sizeof(float))
        return bad_file(cat(param.path, " needs ", count, " values"), where_, text->offset());
      std::vector<float> list(count);
      std::memcpy(list.data(), bytes.data(), bytes.size());
      if (!std::ranges::all_of(list, [](float v) { return std::isfinite(v); }))
        return bad_file(cat(param.path, " has a value that is not finite"), where_, text->offset());
      out.cells[gene.cell].values[gene.name] = std::move(list);
    }
    return out;
  }

  Result<ArchitectureMember> member(const JsonValue& of) const {
    constexpr int64_t kMax = int64_t{1} << 40;
    ArchitectureMember m;
    LOOM_ASSIGN(m.id, integer_field(of, "id", 0, kMax));
    LOOM_ASSIGN(m.parent, integer_field(of, "parent", -1, kMax));
    LOOM_ASSIGN(m.other, integer_field(of, "other", -1, kMax));
    LOOM_ASSIGN(m.born, integer_field(of, "born", 0, kMax));
    LOOM_ASSIGN(const JsonValue* birth, need(of, "birth"));
    LOOM_ASSIGN(m.birth, birth->as_string(cat(where_, ": birth")));
    LOOM_ASSIGN(m.score, score(of, "score"));
    LOOM_ASSIGN(const JsonValue* genes, need(of, "genome"));
    LOOM_ASSIGN(m.genome, genome(*genes));
    return m;
  }

  Result<ArchitectureSpec> spec(const JsonValue& of) const {
    ArchitectureSpec s;
    LOOM_ASSIGN(s.population, integer_field(of, "population", 2, 1 << 14));
    LOOM_ASSIGN(const int64_t seed, integer_field(of, "seed", 0, INT64_MAX));
    s.seed = static_cast<uint64_t>(seed);
    LOOM_ASSIGN(s.cross, real(of, "cross"));
    if (!(s.cross >= 0 && s.cross <= 1)) return bad_file("\"cross\" must be from 0 to 1", where_);
    LOOM_ASSIGN(s.rates.most_parameters, integer_field(of, "most_parameters", 0, INT64_MAX));
    LOOM_ASSIGN(s.rates.max_cells, integer_field(of, "most_cells", 1, 1 << 16));
    LOOM_ASSIGN(s.rates.max_width, integer_field(of, "most_width", 1, 1 << 24));
    LOOM_ASSIGN(s.rates.perturb, real(of, "perturb"));
    LOOM_ASSIGN(s.training.epochs, integer_field(of, "epochs", 1, 1 << 24));
    LOOM_ASSIGN(s.training.batch, integer_field(of, "batch", 1, 1 << 20));
    LOOM_ASSIGN(s.training.normalize, integer_field(of, "normalize", 0, 2));
    LOOM_ASSIGN(const int64_t fresh, integer_field(of, "fresh", 0, 1));
    s.training.fresh = fresh == 1;
    LOOM_ASSIGN(s.training.rate, real(of, "rate"));
    LOOM_ASSIGN(s.training.validation, real(of, "validation"));
    if (!(s.training.rate >= 0) || !(s.training.validation > 0 && s.training.validation < 1))
      return bad_file("\"rate\" or \"validation\" is out of range", where_);
    LOOM_ASSIGN(const JsonValue* aims, need(of, "aims"));
    s.aims.clear();
    for (const JsonValue& one : aims->elements()) {
      LOOM_ASSIGN(const ArchitectureAim aim, parse_aim(one.text()));
      s.aims.push_back(aim);
    }
    if (s.aims.empty() || s.aims.size() > 16) return bad_file("\"aims\" names 1 to 16", where_);
    LOOM_ASSIGN(const JsonValue* changes, need(of, "changes"));
    for (const JsonValue& one : changes->elements()) {
      LOOM_ASSIGN(const int64_t change, one.as_int(cat(where_, ": changes")));
      if (change < 0 || change >= kGridChanges || s.rates.changes.size() > 256)
        return bad_file("\"changes\" names one that there is not", where_, one.offset());
      s.rates.changes.push_back(static_cast<GridChange>(change));
    }
    return s;
  }

  Result<ArchitectureGeneration> generation(const JsonValue& of) const {
    ArchitectureGeneration g;
    LOOM_ASSIGN(g.generation, integer_field(of, "generation", 0, INT64_MAX));
    LOOM_ASSIGN(g.evaluated, integer_field(of, "evaluated", 0, INT64_MAX));
    LOOM_ASSIGN(g.rejected, integer_field(of, "rejected", 0, INT64_MAX));
    LOOM_ASSIGN(g.front, integer_field(of, "front", 0, INT64_MAX));
    LOOM_ASSIGN(g.best_accuracy, real(of, "best_accuracy"));
    LOOM_ASSIGN(g.best_loss, real(of, "best_loss"));
    LOOM_ASSIGN(g.least_parameters, real(of, "least_parameters"));
    return g;
  }

 private:
  const std::string& where_;
};

JsonValue spec_json(const ArchitectureSpec& s) {
  JsonValue out = JsonValue::object(), aims = JsonValue::array(), changes = JsonValue::array();
  out.add("population", JsonValue::integer(s.population));
  out.add("seed", JsonValue::integer(static_cast<int64_t>(s.seed)));
  out.add("cross", JsonValue::real(s.cross));
  out.add("most_parameters", JsonValue::integer(s.rates.most_parameters));
  out.add("most_cells", JsonValue::integer(s.rates.max_cells));
  out.add("most_width", JsonValue::integer(s.rates.max_width));
  out.add("perturb", JsonValue::real(s.rates.perturb));
  out.add("epochs", JsonValue::integer(s.training.epochs));
  out.add("batch", JsonValue::integer(s.training.batch));
  out.add("normalize", JsonValue::integer(s.training.normalize));
  out.add("fresh", JsonValue::integer(s.training.fresh ? 1 : 0));
  out.add("rate", JsonValue::real(s.training.rate));
  out.add("validation", JsonValue::real(s.training.validation));
  for (const ArchitectureAim aim : s.aims) aims.push(JsonValue::string(aim_name(aim)));
  for (const GridChange c : s.rates.changes) changes.push(JsonValue::integer(static_cast<int>(c)));
  out.add("aims", std::move(aims));
  out.add("changes", std::move(changes));
  return out;
}

JsonValue generation_json(const ArchitectureGeneration& g) {
  JsonValue out = JsonValue::object();
  out.add("generation", JsonValue::integer(g.generation));
  out.add("evaluated", JsonValue::integer(g.evaluated));
  out.add("rejected", JsonValue::integer(g.rejected));
  out.add("front", JsonValue::integer(g.front));
  out.add("best_accuracy", JsonValue::real(g.best_accuracy));
  out.add("best_loss", JsonValue::real(g.best_loss));
  out.add("least_parameters", JsonValue::real(g.least_parameters));
  return out;
}

}  // namespace

std::string Architectures::text() const {
  JsonValue all = JsonValue::object(), members = JsonValue::array(), history = JsonValue::array();
  all.add("loom_architectures", JsonValue::integer(kArchitecturesFormat));
  all.add("spec", spec_json(spec_));
  if (!data_hash.empty()) all.add("data", JsonValue::string(data_hash));
  all.add("next_id", JsonValue::integer(next_id_));
  all.add("seed_score", score_json(seed_score_));
  all.add("seed", genome_json(seed_));
  for (const ArchitectureMember& m : members_) members.push(member_json(m));
  for (const ArchitectureGeneration& g : history_) history.push(generation_json(g));
  all.add("members", std::move(members));
  all.add("history", std::move(history));
  return dump_json(all);
}

Result<Architectures> Architectures::from_text(std::string_view text, const std::string& where) {
  LOOM_ASSIGN(const JsonValue all, parse_json(text, where));
  const ArchitecturesReader reader(where);
  LOOM_ASSIGN(
      const int64_t format,
      reader.integer_field(all, "loom_architectures", kArchitecturesFormat, kArchitecturesFormat));
  Architectures out;
  LOOM_ASSIGN(const JsonValue* spec, reader.need(all, "spec"));
  LOOM_ASSIGN(out.spec_, reader.spec(*spec));
  if (const JsonValue* data = all.find("data")) {  // files of older releases have none
    LOOM_ASSIGN(out.data_hash, data->as_string(where + ": data"));
  }
  LOOM_ASSIGN(out.next_id_, reader.integer_field(all, "next_id", 0, int64_t{1} << 41));
  LOOM_ASSIGN(out.seed_score_, reader.score(all, "seed_score"));
  LOOM_ASSIGN(const JsonValue* seed, reader.need(all, "seed"));
  LOOM_ASSIGN(out.seed_, reader.genome(*seed));
  LOOM_ASSIGN(const JsonValue* members, reader.need(all, "members"));
  LOOM_ASSIGN(const JsonValue* history, reader.need(all, "history"));
  if (format != kArchitecturesFormat || history->elements().size() > kMaxHistory ||
      static_cast<int64_t>(members->elements().size()) > out.spec_.population)
    return bad_file("a population of another size than it says", where);
  for (const JsonValue& one : members->elements()) {
    LOOM_ASSIGN(ArchitectureMember m, reader.member(one));
    out.members_.push_back(std::move(m));
  }
  for (const JsonValue& one : history->elements()) {
    LOOM_ASSIGN(const ArchitectureGeneration g, reader.generation(one));
    out.history_.push_back(g);
  }
  return out;
}

}  // namespace loom::core
