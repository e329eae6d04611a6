// Reads sounds in Loom for tests/outside/sounds.py: one file per line of stdin, one answer per line
// of stdout.
//   SOUND OUT      -> ok RATE (samples as f32 in OUT) | refused MESSAGE | damaged MESSAGE
#include <iostream>
#include <sstream>

#include "io/files/file.hpp"
#include "media/sound.hpp"

namespace {

std::string answer(const std::string& path, const std::string& out) {
  using namespace loom::core;
  const auto map = MappedFile::open(path);
  if (!map.ok()) return "damaged " + map.error().str();
  const auto wave = decode_sound(map->bytes(), path, MemoryBudget(uint64_t{1} << 28));
  if (!wave.ok())
    return (wave.error().code == loom::Code::bad_file ? "damaged " : "refused ") +
           wave.error().str();
  const auto done = write_file_atomic(out, std::as_bytes(std::span(wave->samples)));
  return done.ok() ? "ok " + std::to_string(wave->rate) : "refused " + done.error().str();
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string path, out;
    std::istringstream(line) >> path >> out;
    std::cout << answer(path, out) << std::endl;
  }
}
