#include "table_flags.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>

namespace loom::cli {

void TableTextFlags::add(Command verb) {
  verb.option("--separator", separator, "Between cells: one character, or tab (default: detected)");
  verb.option("--decimal", decimal, "Decimal mark of numbers: . or , (default: detected)");
  verb.option("--thousands", thousands,
              "Mark between groups of digits: . , ' a space, or none (default: detected)");
  verb.option("--encoding", encoding, "utf-8, utf-16, utf-16be or latin-1 (default: detected)");
}

void TableTextFlags::set(DatasetOptions& options) const {
  options.separator = separator;
  options.decimal = decimal;
  options.thousands = thousands;
  options.encoding = encoding;
}

void TableFlags::add(Command verb) {
  method.add(verb, list_options(TableOptions()), {});
}

bool TableFlags::any() const {
  const std::vector<std::string> given = method.given();
  return std::ranges::any_of(given, [](const std::string& f) { return f != "target-scale"; });
}

Result<TableOptions> TableFlags::options() const {
  TableOptions out;
  LOOM_TRY(method.read(out));
  return out;
}

bool names_table(const std::string& path) {
  if (path == "-") return true;
  std::string name = path;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(".csv") || name.ends_with(".tsv") || name.ends_with(".txt");
}

Status refuse_table(const std::string& path, std::string_view usage) {
  if (!names_table(path)) return {};
  return Error{Code::invalid_argument, "this is a table, not a network: " + std::string(usage),
               path, -1};
}

namespace {

bool is_piped(const std::string& path) {
  std::error_code failed;
  return path == "-" || std::filesystem::is_fifo(path, failed);
}

// The bytes of standard input or of a pipe, which can be read once. They stay until the process
// ends.
Result<FileBytes> piped(const std::string& path) {
  static std::map<std::string, std::string> all;
  const std::string name = path == "-" ? "standard input" : path;
  const auto [found, fresh] = all.try_emplace(path);
  std::string& bytes = found->second;
  if (fresh) {
    std::FILE* const from = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
    if (from == nullptr) return Error{Code::io_error, "cannot be opened", name, -1};
    std::string piece(size_t{1} << 16, '\0');
    for (size_t got; (got = std::fread(piece.data(), 1, piece.size(), from)) > 0;)
      bytes.append(piece, 0, got);
    const bool failed = std::ferror(from) != 0;
    if (from != stdin) std::fclose(from);
    if (failed) return Error{Code::io_error, "cannot be read", name, -1};
  }
  return FileBytes{std::as_bytes(std::span(bytes)), name};
}

}  // namespace

Result<Dataset> read_samples(const std::string& path, const Network& network,
                             const DatasetOptions& how) {
  if (!is_piped(path)) return Dataset::from_file(path, network, how);
  LOOM_ASSIGN(const FileBytes bytes, piped(path));
  return Dataset::from_file(bytes, network, how);
}

Result<TableNetwork> plan_samples(const std::string& path, const DatasetOptions& how,
                                  const LoadOptions& load) {
  if (!is_piped(path)) return network_for_table(path, how, load);
  LOOM_ASSIGN(const FileBytes bytes, piped(path));
  return network_for_table(bytes, how, load);
}

}  // namespace loom::cli
