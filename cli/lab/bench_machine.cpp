// loom bench machine: the peak rates of this machine, in products and in reading. With --machine,
// other benches report their speed as a share of it.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>

#include "../shared/progress.hpp"
#include "io/files/file.hpp"
#include "lab.hpp"
#include "lab/machine_bench.hpp"

namespace loom::core::cli {
namespace {

struct MachineFlags {
  int threads = 0, rounds = 7;
  double seconds = 8;
  std::string isa, buffer;
  bool no_file = false, json = false;
};

// A file in the folder for temporary files. It loses its name once it is mapped, so that no file is
// left if the program is killed.
Result<MappedFile> temporary_map(int64_t bytes) {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(none);
  if (none) return Error{Code::io_error, "there is no folder for temporary files", {}, -1};
  const std::filesystem::path path =
      folder / fmt::format("loom-bench-machine-{}", std::random_device()());
  std::FILE* file = std::fopen(path.c_str(), "wbx");
  if (file == nullptr) return Error{Code::io_error, "cannot be written", path.string(), -1};
  const std::vector<uint32_t> block(size_t{1} << 18, 0x3f8ccccd);
  bool whole = true;
  for (int64_t done = 0; whole && done < bytes; done += static_cast<int64_t>(block.size()) * 4) {
    whole = std::fwrite(block.data(), 4, block.size(), file) == block.size() && !interrupted();
  }
  whole = std::fclose(file) == 0 && whole;
  Result<MappedFile> map = whole ? MappedFile::open(path.string())
                                 : Error{Code::io_error, "has no room", path.string(), -1};
  std::filesystem::remove(path, none);
  return map;
}

std::string caches_text(const MachineInfo& machine) {
  std::string text;
  for (const CacheInfo& c : machine.caches) {
    text += fmt::format("{}L{} {}{}", text.empty() ? "" : ", ", c.level, size_text(c.bytes),
                        c.count > 1 ? fmt::format(" x {}", c.count) : "");
  }
  return text.empty() ? "caches unknown" : text;
}

std::string what_of(const PeakCase& c) {
  if (c.bytes == 0) return std::string(peak_name(c.kind));
  return fmt::format("{} {}, {}", peak_name(c.kind), c.memory_level, size_text(c.bytes));
}

void print_text(const MachineInfo& machine, const MachineFlags& f,
                const std::vector<PeakRow>& rows) {
  write_line(fmt::format("{}; {} core{}; {}", machine.name, machine.cores,
                         machine.cores == 1 ? "" : "s", caches_text(machine)));
  write_out(fmt::format("{} rounds; least and most show what else the machine does\n\n", f.rounds));
  write_out(fmt::format("{:<28} {:<10} {:>7} {:>10} {:>10} {:>10}\n", "", "set", "threads",
                        "median", "least", "most"));
  for (const PeakRow& row : rows) {
    write_out(fmt::format("{:<28} {:<10} {:>7} {:>10.1f} {:>10.1f} {:>10.1f} {}\n", what_of(row.c),
                          isa_name(row.c.isa), row.c.threads, row.rate.median, row.rate.least,
                          row.rate.most, peak_unit(row.c.kind)));
  }
}

Json row_json(const PeakRow& row) {
  JsonObject o;
  o.set("what", peak_name(row.c.kind)).set("isa", isa_name(row.c.isa));
  if (row.c.bytes > 0) o.set("place", row.c.memory_level).set("bytes", row.c.bytes);
  return o.set("threads", row.c.threads)
      .set("unit", peak_unit(row.c.kind))
      .set("median", row.rate.median)
      .set("least", row.rate.least)
      .set("most", row.rate.most)
      .value();
}

void print_json(const MachineInfo& machine, const MachineFlags& f,
                const std::vector<PeakRow>& rows) {
  Json caches = Json::array(), list = Json::array();
  for (const CacheInfo& c : machine.caches) {
    caches.push(
        JsonObject().set("level", c.level).set("bytes", c.bytes).set("count", c.count).value());
  }
  for (const PeakRow& row : rows) list.push(row_json(row));
  JsonObject()
      .set("name", machine.name)
      .set("cores", machine.cores)
      .set("caches", std::move(caches))
      .set("rounds", f.rounds)
      .set("rates", std::move(list))
      .print();
}

int run(const MachineFlags& f) {
  MachineBenchOptions options;
  options.threads = f.threads;
  options.seconds = f.seconds;
  options.rounds = f.rounds;
  const MachineInfo machine = machine_info();
  options.buffer = buffer_bytes(machine);
  if (!f.isa.empty()) {
    const Result<Isa> isa = parse_isa(f.isa);
    if (!isa.ok()) return fail(isa.error());
    options.isa = *isa;
  }
  if (!f.buffer.empty()) {
    const Result<uint64_t> bytes = parse_size(f.buffer);
    if (!bytes.ok()) return fail(bytes.error());
    constexpr uint64_t kMin = 1 << 16, kMax = uint64_t{1} << 40;
    if (*bytes < kMin || *bytes > kMax) {
      return fail(kUsage, fmt::format("--buffer: must be from {} to {}, not {}", size_text(kMin),
                                      size_text(kMax), size_text(*bytes)));
    }
    options.buffer = static_cast<int64_t>(*bytes);
  }
  Progress progress("measuring", "turns", f.json);
  options.progress = [&progress](int64_t done, int64_t total) {
    progress.update(done, total);
    return !interrupted();
  };
  Result<MappedFile> file = MappedFile();
  if (!f.no_file) file = temporary_map(options.buffer);
  if (interrupted()) return fail_interrupted();
  if (file.ok()) {
    options.file = file->bytes();
  } else {
    note(fmt::format("reading from a mapped file is left out: {}", file.error().str()));
  }
  const Result<std::vector<PeakRow>> rows = bench_machine(machine, options);
  progress.finish();
  if (!rows.ok()) return fail(rows.error());
  if (f.json) {
    print_json(machine, f, *rows);
  } else {
    print_text(machine, f, *rows);
  }
  return kDone;
}

}  // namespace

Verb add_bench_machine(Command app) {
  auto f = std::make_shared<MachineFlags>();
  const Command verb = app.find("bench").command(
      "machine",
      "The peak rates of this machine: multiplications and additions of every instruction\n"
      "set, reading and writing, by threads. Needs no file.");
  verb.examples(
      "  loom bench machine\n"
      "  loom bench machine --threads 1 --isa scalar --seconds 2\n"
      "  loom bench machine --json");
  verb.option("--threads", f->threads, "At most so many; 0: all cores").range(0, 4096);
  verb.option("--isa", f->isa, "Only this instruction set; without it all that run here");
  verb.option("--seconds", f->seconds, "All measurements together, but for a warm-up")
      .range(0.001, 3600.0)
      .show_default();
  verb.option("--rounds", f->rounds, "How often each rate is measured, in turns")
      .range(1, 1000000)
      .show_default();
  verb.option("--buffer", f->buffer,
              "Memory to read, as 512M; without it four times the last caches, 256M at least");
  verb.flag("--no-file", f->no_file, "Write no temporary file to read from");
  verb.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
