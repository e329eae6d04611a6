#include "absorb_host.hpp"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "../shared/verbs.hpp"
#include "serve/absorb_host.hpp"

namespace loom::cli {

int run_absorb_host(const AbsorbHostFlags& flags, const EngineFlags& engine,
                    uint64_t stream_bytes) {
  const Result<Engine> made = engine.create();
  if (!made.ok()) return fail(made.error());
  core::AbsorbHostOptions options;
  options.folder = flags.folder;
  options.address = flags.address;
  options.port = flags.port;
  options.http.body_bytes = stream_bytes;
  options.http.all_bodies = 2 * stream_bytes;
  options.http.connections = 64;
  const Result<std::unique_ptr<core::AbsorbHost>> host = core::AbsorbHost::start(*made, options);
  if (!host.ok()) return fail(host.error());
  const bool six = flags.address.find(':') != std::string::npos;
  write_line(fmt::format("listening at http://{}:{}",
                         six ? "[" + flags.address + "]" : flags.address, (*host)->port()));
  write_line(fmt::format("token {}", (*host)->token()));
  flush_out();
  note("who has the token may ask; stop with Ctrl-C");
  while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop_without_haste();
  return kDone;
}

}  // namespace loom::cli
