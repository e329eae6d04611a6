// loom absorb: a model of another framework, from its process's stream, as a file with its proof.
#include <array>
#include <cstdio>
#include <memory>
#include <span>

#include "../shared/outputs.hpp"
#include "../shared/verbs.hpp"
#include "absorb_host.hpp"
#include "loom/absorb.hpp"
#include "loom/files.hpp"

namespace loom::cli {
namespace {

struct AbsorbFlags {
  bool force = false;
  EngineFlags engine;
  std::string stream = "-", to = "-";
  int64_t max_mib = 1024;
  bool json = false;
  AbsorbHostFlags host;
};

// Byte for byte; read_text() would drop a final line break.
Result<std::string> stream_bytes(const std::string& path, uint64_t limit) {
  if (path != "-") return read_file(path, limit);
  std::string bytes;
  std::array<char, 65536> block;
  size_t count = 0;
  while ((count = std::fread(block.data(), 1, block.size(), stdin)) > 0) {
    bytes.append(block.data(), count);
    if (bytes.size() > limit)
      return Error{Code::out_of_memory,
                   "more than " + human_bytes(static_cast<int64_t>(limit)) + "; see --most-mib",
                   "stdin", -1};
  }
  if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  if (std::ferror(stdin) != 0) return Error{Code::io_error, "cannot be read", "stdin", -1};
  return bytes;
}

Result<Absorbed> absorbed(const AbsorbFlags& f) {
  LOOM_ASSIGN(const Engine engine, f.engine.create());
  LoadOptions options;
  options.engine = engine;
  const auto limit = static_cast<uint64_t>(f.max_mib) << 20;
  LOOM_ASSIGN(const std::string bytes, stream_bytes(f.stream, limit));
  const std::string where = f.stream == "-" ? "stdin" : f.stream;
  if (bytes.empty())
    return Error{Code::bad_file, "is empty; give what loom.bridge.stream() of Python writes", where,
                 -1};
  return absorb_stream(std::as_bytes(std::span(bytes)), options, where);
}

int run(const AbsorbFlags& f) {
  if (!f.host.folder.empty()) {
#ifdef LOOM_SERVE
    return run_absorb_host(f.host, f.engine, static_cast<uint64_t>(f.max_mib) << 20);
#else
    return fail(kUnsupported, "this program was built without what listens (LOOM_SERVE)");
#endif
  }
  const bool piped = f.to == "-";
  if (f.stream == "-" && stdin_is_terminal())
    return fail(kUsage, "no stream; pipe one in, or name a file of one");
  if (piped && stdout_is_terminal())
    return fail(kUsage,
                "a network is binary; it is not printed on a terminal; give -o FILE, or send "
                "stdout to a file");
  if (piped && f.json)
    return fail(kUsage, "--json and the network are both for stdout; give -o FILE");
  if (!piped) {
    const Status can = Outputs(f.force)
                           .input("STREAM", f.stream == "-" ? std::string() : f.stream)
                           .file("-o", f.to, {".entity"}, "the network")
                           .check();
    if (!can.ok()) return fail(can.error());
  }
  const Result<Absorbed> got = absorbed(f);
  if (!got.ok()) return fail(got.error());
  if (f.json) write_line(got->proof.json());
  if (!f.json) note(got->name + ": " + got->proof.text());
  if (!got->proof.holds) return kMismatch;
  const Result<std::string> entity = got->network.save_bytes(NetworkFormat::entity);
  if (!entity.ok()) return fail(entity.error());
  if (piped) {
    write_out(*entity);
    return kDone;
  }
  const Status written = write_file(f.to, *entity);
  return written.ok() ? kDone : fail(written.error());
}

}  // namespace

Verb add_absorb(Command app) {
  auto f = std::make_shared<AbsorbFlags>();
  const Command verb = app.command(
      "absorb", "Turn a stream of loom.bridge.stream() into an .entity file with a proof.");
  verb.examples(
      "  python3 export.py | loom absorb > net.entity      export.py ends with\n"
      "                                                    "
      "sys.stdout.buffer.write(loom.bridge.stream(model, x))\n"
      "  ssh lab python3 export.py | loom absorb -o net.entity\n"
      "  loom absorb model.stream -o net.entity --json | jq .outputs\n"
      "  loom absorb --serve networks                       # prints an address and a token, "
      "then:\n"
      "  curl -H \"Authorization: Bearer $TOKEN\" \\\n"
      "       -H \"Content-Type: application/vnd.loom.bridge+binary\" \\\n"
      "       --data-binary @model.stream \"http://127.0.0.1:9876/v2/streams?id=net\"\n"
      "Exit code 5: Loom computes other values than the framework did; nothing is written.");
  verb.option("STREAM", f->stream, "A file of the stream; -: stdin").show_default();
  verb.option("-o,--output", f->to, "Where the network goes; -: stdout").show_default();
  verb.option("--most-mib", f->max_mib, "The largest stream that is read")
      .range(1, 1 << 20)
      .show_default();
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object of the proof on stdout; needs -o");
  verb.option("--serve", f->host.folder,
              "Take streams over HTTP from processes of this machine, and keep networks in this "
              "folder");
  verb.option("--host", f->host.address, "Where --serve listens; loopback addresses only")
      .show_default();
  verb.option("--port", f->host.port, "Its port; 0: one that is free")
      .range(0, 65535)
      .show_default();
  f->engine.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
