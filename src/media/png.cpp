// PNG by libpng. Its errors return by longjmp. So everything that may raise one runs inside
// PngState::tried(), in functions whose locals need no destructor.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "base/text.hpp"
#include "media/decoders.hpp"

namespace loom::core {
namespace {

struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> bytes;
  size_t at = 0;
  uint8_t* pixels = nullptr;
  size_t stride = 0;
  png_uint_32 width = 0, height = 0;
  int depth = 0, type = 0, interlace = 0;
  char message[128] = "";

  PngState() = default;
  PngState(const PngState&) = delete;
  PngState& operator=(const PngState&) = delete;
  ~PngState() { png_destroy_read_struct(&png, &info, nullptr); }

  // False: libpng raised an error; `message` has it.
  bool tried(void (*step)(PngState&)) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    step(*this);
    return true;
  }
};

void keep_error(png_structp png, png_const_charp text) {
  auto& state = *static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state.message, text, sizeof(state.message) - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp /*png*/, png_const_charp /*text*/) {}

void give_bytes(png_structp png, png_bytep to, size_t count) {
  auto& state = *static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state.bytes.size() - state.at) png_error(png, "the file ends within the image");
  std::memcpy(to, state.bytes.data() + state.at, count);
  state.at += count;
}

void png_header(PngState& s) {
  constexpr png_alloc_size_t kMaxChunk = png_alloc_size_t{8} << 20;
  png_set_read_fn(s.png, &s, give_bytes);
  png_set_user_limits(s.png, kMaxPictureSide, kMaxPictureSide);
  png_set_chunk_malloc_max(s.png, kMaxChunk);
  png_read_info(s.png, s.info);
  png_get_IHDR(s.png, s.info, &s.width, &s.height, &s.depth, &s.type, &s.interlace, nullptr,
               nullptr);
}

void png_pixels(PngState& s) {
  png_set_expand(s.png);
  if (s.depth == 16) png_set_swap(s.png);  // little-endian, as the machine
  png_set_strip_alpha(s.png);
  const int passes = png_set_interlace_handling(s.png);
  png_read_update_info(s.png, s.info);
  if (png_get_rowbytes(s.png, s.info) != s.stride) png_error(s.png, "rows of an unknown form");
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < s.height; ++y)
      png_read_row(s.png, s.pixels + size_t{y} * s.stride, nullptr);
  }
  png_read_end(s.png, nullptr);
}

}  // namespace

Result<Image> decode_png(std::span<const std::byte> bytes, const std::string& where,
                         const MemoryBudget& memory) {
  PngState state;
  state.bytes = bytes;
  const auto failed = [&] {
    return bad_file(cat("damaged PNG: ", printable(state.message, 100)), where,
                    static_cast<int64_t>(state.at));
  };
  state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, keep_error, ignore_warning);
  if (state.png != nullptr) state.info = png_create_info_struct(state.png);
  if (state.info == nullptr) return make_error(Code::out_of_memory, "no memory for a PNG", where);
  if (!state.tried(png_header)) return failed();
  Image image;
  image.width = int64_t{state.width};
  image.height = int64_t{state.height};
  image.channels = (state.type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  const bool deep = state.depth == 16;
  const int64_t each = image.channels * (deep ? 2 : 1);
  LOOM_ASSIGN(const MemoryShare share, book_pixels(image, each, where, memory, deep));
  state.pixels = deep ? reinterpret_cast<uint8_t*>(image.deep.data()) : image.pixels.data();
  state.stride = static_cast<size_t>(image.width * each);
  if (!state.tried(png_pixels)) return failed();
  return image;
}

}  // namespace loom::core
