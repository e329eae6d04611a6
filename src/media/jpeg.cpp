// JPEG by libjpeg. Its errors return by longjmp, as in png.cpp. For a truncated image the library
// only warns and fills with grey; here it is an Error.
#include <cstddef>
#include <cstdio>
// These need the two above.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <memory>

#include "base/text.hpp"
#include "media/decoders.hpp"

namespace loom::core {
namespace {

// Each scan of a progressive file costs time; real files have about ten.
constexpr int kMaxScans = 200;

struct JpegState {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  jmp_buf jump = {};
  std::span<const std::byte> bytes;
  uint8_t* pixels = nullptr;
  char message[JMSG_LENGTH_MAX] = "";

  JpegState() = default;
  JpegState(const JpegState&) = delete;
  JpegState& operator=(const JpegState&) = delete;
  ~JpegState() { jpeg_destroy_decompress(&info); }

  // False: libjpeg raised an error; `message` has it.
  bool tried(void (*step)(JpegState&)) {
    if (setjmp(jump) != 0) return false;
    step(*this);
    return true;
  }
};

JpegState& state_of(j_common_ptr info) {
  return *static_cast<JpegState*>(info->client_data);
}

void leave(j_common_ptr info) {
  JpegState& state = state_of(info);
  (*info->err->format_message)(info, state.message);
  std::longjmp(state.jump, 1);
}

// Lost data is an error; stray bytes between segments and the like are common and harmless.
void note_trouble(j_common_ptr info, int level) {
  const int what = info->err->msg_code;
  if (level < 0 && (what == JWRN_JPEG_EOF || what == JWRN_HIT_MARKER)) leave(info);
}

void show_nothing(j_common_ptr /*info*/) {}

void count_scans(j_common_ptr info) {
  JpegState& state = state_of(info);
  if (info->is_decompressor == 0 || state.info.input_scan_number <= kMaxScans) return;
  std::snprintf(state.message, sizeof(state.message), "more than %d scans", kMaxScans);
  std::longjmp(state.jump, 1);
}

void jpeg_header(JpegState& s) {
  constexpr unsigned kMaxSegment = 65533;
  jpeg_create_decompress(&s.info);
  s.info.client_data = &s;
  s.info.progress = &s.progress;
  jpeg_save_markers(&s.info, JPEG_APP0 + 1, kMaxSegment);
  jpeg_mem_src(&s.info, reinterpret_cast<const unsigned char*>(s.bytes.data()),
               static_cast<unsigned long>(s.bytes.size()));
  jpeg_read_header(&s.info, TRUE);
  const bool grey = s.info.num_components == 1, inks = s.info.num_components == 4;
  s.info.out_color_space = grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
}

void jpeg_pixels(JpegState& s) {
  jpeg_start_decompress(&s.info);
  const size_t stride = size_t{s.info.output_width} * static_cast<size_t>(s.info.output_components);
  while (s.info.output_scanline < s.info.output_height) {
    JSAMPROW row = s.pixels + size_t{s.info.output_scanline} * stride;
    jpeg_read_scanlines(&s.info, &row, 1);
  }
  jpeg_finish_decompress(&s.info);
}

// Converts cyan, magenta, yellow and black to red, green and blue, each (255 - ink)(255 - black) /
// 255. Adobe's files hold 255 - ink.
void inks_to_rgb(Image& image, bool inverted) {
  const auto of = [&](size_t i) { return inverted ? image.pixels[i] : 255 - image.pixels[i]; };
  const size_t pixels = image.pixels.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    const int light = of(4 * i + 3);
    for (size_t c = 0; c < 3; ++c)
      image.pixels[3 * i + c] = static_cast<uint8_t>((of(4 * i + c) * light + 127) / 255);
  }
  image.pixels.resize(3 * pixels);
  image.channels = 3;
}

int orientation_of(const JpegState& state) {
  for (jpeg_saved_marker_ptr m = state.info.marker_list; m != nullptr; m = m->next) {
    const int orientation = exif_orientation(std::as_bytes(std::span(m->data, m->data_length)));
    if (orientation != 1) return orientation;
  }
  return 1;
}

}  // namespace

Result<Image> decode_jpeg(std::span<const std::byte> bytes, const std::string& where,
                          const MemoryBudget& memory) {
  const auto state = std::make_unique<JpegState>();
  const auto failed = [&] {
    return bad_file(cat("damaged JPEG: ", printable(state->message, 100)), where);
  };
  state->bytes = bytes;
  state->info.err = jpeg_std_error(&state->errors);
  state->errors.error_exit = leave;
  state->errors.emit_message = note_trouble;
  state->errors.output_message = show_nothing;
  state->progress.progress_monitor = count_scans;
  state->info.client_data = state.get();
  if (!state->tried(jpeg_header)) return failed();
  Image image;
  image.width = int64_t{state->info.image_width};
  image.height = int64_t{state->info.image_height};
  image.channels = state->info.num_components == 1 ? 1 : state->info.num_components == 4 ? 4 : 3;
  // A file of several scans needs 16-bit coefficients in memory; rotation needs a second image.
  const bool scans = jpeg_has_multiple_scans(&state->info) != 0;
  const int orientation = orientation_of(*state);
  const int64_t each = image.channels * (1 + (scans ? 2 : 0) + (orientation > 1 ? 1 : 0));
  LOOM_ASSIGN(const MemoryShare share, book_pixels(image, each, where, memory));
  state->pixels = image.pixels.data();
  if (!state->tried(jpeg_pixels)) return failed();
  if (image.channels == 4) inks_to_rgb(image, state->info.saw_Adobe_marker != 0);
  return oriented(std::move(image), orientation);
}

}  // namespace loom::core
