// What a wheel has in place of the readers of pictures: libpng.a and libjpeg.a of Debian cannot be linked into a
// shared library, and Python reads pictures by itself. For tests/python/run.sh, which links a wheel from
// a build that has them; a build of a wheel leaves them out (LOOM_PICTURES).
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
