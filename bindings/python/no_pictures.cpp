// Replaces the image readers in a wheel. Debian's libpng.a and libjpeg.a cannot be linked into a
// shared library, and Python reads images by itself. tests/python/run.sh links a wheel from a build
// that has them; a build of a wheel leaves them out (LOOM_PICTURES).
#include "base/left_out.hpp"
#include "media/decoders.hpp"

namespace loom::core {

Result<Image> decode_png(std::span<const std::byte> /*bytes*/, const std::string& where,
                           const MemoryBudget& /*memory*/) {
  return left_out_of_build("reader of PNG and JPEG", "LOOM_PICTURES=ON", where);
}

Result<Image> decode_jpeg(std::span<const std::byte> bytes, const std::string& where,
                            const MemoryBudget& memory) {
  return decode_png(bytes, where, memory);
}

}  // namespace loom::core
