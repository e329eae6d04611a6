#include "io/files/foreign_file.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr size_t kLookedAt = size_t{64} << 10;

struct Known {
  std::string_view begins;
  std::string_view what;  // "is ..."
  std::string_view advice;
};

using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it and give the file inside";
constexpr std::string_view kDownload = "download the file itself, not the page about it";
constexpr std::string_view kTorch =
    "save its tensors with safetensors.torch.save_file, or use loom.absorb";

constexpr Known kKnown[] = {
    {"version https://git-lfs.github.com/spec/"sv, "is a Git LFS pointer and not the file itself",
     "fetch it: git lfs pull"},
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9"sv, "is a PyTorch file of an old release (torch.save)",
     kTorch},
    {"\x1f\x8b"sv, "is a gzip archive", kUnpack},
    {"\x28\xb5\x2f\xfd"sv, "is a Zstandard archive", kUnpack},
    {"\xfd"
     "7zXZ\0"sv,
     "is an xz archive", kUnpack},
    {"BZh"sv, "is a bzip2 archive", kUnpack},
    {"7z\xbc\xaf\x27\x1c"sv, "is a 7-Zip archive", kUnpack},
    {"Rar!\x1a\x07"sv, "is a RAR archive", kUnpack},
    {"\x04\x22\x4d\x18"sv, "is an LZ4 archive", kUnpack},
    {"%PDF-"sv, "is a PDF document", kDownload},
    {"\x89HDF\r\n\x1a\n"sv, "is an HDF5 file, as Keras writes (.h5)",
     "export the model to ONNX, or save arrays with numpy.savez"},
    {"\x89PNG\r\n\x1a\n"sv, "is a PNG image", "give a folder of images, or an array"},
    {"\xff\xd8\xff"sv, "is a JPEG image", "give a folder of images, or an array"},
    {"GIF89a"sv, "is a GIF image", "give a folder of images, or an array"},
    {"PAR1\x15"sv, "is a Parquet table", "save it as CSV or with numpy.savez"},
    {"ARROW1\0\0"sv, "is an Arrow table", "save it as CSV or with numpy.savez"},
    {"SQLite format 3\0"sv, "is an SQLite database", "save the table as CSV"},
    {"MATLAB 5.0 MAT-file"sv, "is a MATLAB file", "save its arrays with numpy.savez"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "is a document of old Microsoft Office (.xls, .doc)",
     "save the table as CSV"},
    {"lmgg"sv, "is a model of old llama.cpp (ggml)", "convert it to GGUF with llama.cpp"},
    {"fmgg"sv, "is a model of old llama.cpp (ggmf)", "convert it to GGUF with llama.cpp"},
    {"tjgg"sv, "is a model of old llama.cpp (ggjt)", "convert it to GGUF with llama.cpp"},
    {"\x7f"
     "ELF"sv,
     "is a program", kDownload},
    {"MZ\x90\0"sv, "is a program", kDownload},
    {"\xff\xfe"sv, "is text in UTF-16", "save it as UTF-8"},
    {"\xfe\xff"sv, "is text in UTF-16", "save it as UTF-8"},
    {"Entry not found"sv, "is the error message of a server",
     "check the address and download again"},
    {"Repository not found"sv, "is the error message of a server",
     "check the address and download again"},
    {"Invalid username or password"sv, "is the error message of a server",
     "sign in and download again"},
    {"404: Not Found"sv, "is the error message of a server",
     "check the address and download again"},
};

bool begins_without_case(std::string_view text, std::string_view start) {
  return to_lower_ascii(text.substr(0, start.size())) == start;
}

// Web pages, after any leading space.
const Known* page(std::string_view text) {
  static constexpr Known kPage = {{}, "is a web page (HTML)", kDownload};
  static constexpr Known kXml = {{}, "is an XML document", kDownload};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return nullptr;
  text.remove_prefix(start);
  for (const std::string_view tag : {"<!doctype"sv, "<html"sv, "<head"sv, "<body"sv, "<!--"sv}) {
    if (begins_without_case(text, tag)) return &kPage;
  }
  return begins_without_case(text, "<?xml") || begins_without_case(text, "<error") ? &kXml
                                                                                   : nullptr;
}

// ZIP files. Those of NumPy hold only arrays, whose names end in .npy.
const Known* zip(std::string_view text) {
  static constexpr Known kTorchZip = {{}, "is a PyTorch file (torch.save)", kTorch};
  static constexpr Known kKeras = {{}, "is a Keras model (.keras)", "export the model to ONNX"};
  static constexpr Known kOffice = {{}, "is a spreadsheet or document", "save the table as CSV"};
  static constexpr Known kZip = {{}, "is a ZIP archive", kUnpack};
  constexpr size_t kName = 30;  // offset of the name of the first member
  if (!text.starts_with("PK\x03\x04") || text.size() < kName) return nullptr;
  const auto length = static_cast<size_t>(static_cast<unsigned char>(text[26])) |
                      static_cast<size_t>(static_cast<unsigned char>(text[27])) << 8;
  const std::string_view first = text.substr(kName, length);
  if (first.ends_with(".npy")) return nullptr;
  if (text.find("data.pkl") != text.npos || text.find("constants.pkl") != text.npos ||
      first.ends_with("/byteorder") || first.ends_with("/version"))
    return &kTorchZip;
  if (text.find("model.weights.h5") != text.npos) return &kKeras;
  if (first == "[Content_Types].xml" || first == "mimetype" || first.starts_with("_rels/"))
    return &kOffice;
  // Array names are arbitrary; our own files use loom/network.
  return first.find('.') == first.npos && first.find('/') == first.npos ? nullptr : &kZip;
}

// Images that Loom does not read; their first bytes alone are ambiguous.
const Known* image(std::string_view text) {
  static constexpr Known kWebp = {{}, "is a WebP image", "save it as PNG"};
  static constexpr Known kBmp = {{}, "is a BMP image", "save it as PNG"};
  if (text.starts_with("RIFF") && text.find("WEBP"sv, 8) == 8) return &kWebp;
  if (!text.starts_with("BM") || text.find("\0\0\0"sv, 15) != 15) return nullptr;
  return "\x0c\x28\x6c\x7c"sv.find(text[14]) != std::string_view::npos ? &kBmp : nullptr;  // header
}

// Python pickles: a protocol of 2 to 5, then an instruction. Eight bytes of length and a JSON
// object are safetensors.
bool is_pickle(std::string_view text) {
  if (text.size() < 3 || text[0] != '\x80' || text[1] < 2 || text[1] > 5) return false;
  constexpr std::string_view kNext = "}](cX\x8c\x95\x8aK)NGJMC\x94";
  return kNext.find(text[2]) != kNext.npos;
}

const Known* known(std::string_view text, bool packed) {
  static constexpr Known kPickle = {
      {}, "is a Python pickle, which runs code when it is opened", kTorch};
  static constexpr Known kTar = {{}, "is a tar archive", kUnpack};
  for (const Known& k : kKnown) {
    if (!text.starts_with(k.begins)) continue;
    if (k.begins == "BZh"sv && text.find("1AY"sv, 4) != 4) continue;
    if (!packed || k.begins != "\x1f\x8b"sv) return &k;
  }
  if (is_pickle(text)) return &kPickle;
  if (const Known* found = image(text)) return found;
  if (text.size() >= 262 && text.substr(257, 5) == "ustar") return &kTar;
  if (const Known* found = page(text)) return found;
  return zip(text);
}

}  // namespace

std::optional<Error> foreign_file(std::string_view text, const std::string& where, bool packed) {
  if (text.empty())
    return bad_file("is empty; the download or the copy was not finished", where, 0);
  text = text.substr(0, kLookedAt);
  if (text.size() > 9 && text[8] == '{') return {};  // safetensors
  if (text.size() >= 64 && text.find_first_not_of('\0') == text.npos)
    return bad_file("holds zero bytes; the download or the copy was not finished", where, 0);
  const Known* found = known(text, packed);
  if (found == nullptr) return {};
  return bad_file(cat(found->what, "; ", found->advice), where, 0);
}

std::optional<Error> foreign_file(std::span<const std::byte> bytes, const std::string& where,
                                  bool packed) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return foreign_file(text, where, packed);
}

Error file_error(Error error, const std::string& where) {
  if (error.where.starts_with("--")) return error;
  if (error.code == Code::invalid_argument || error.code == Code::out_of_range)
    error.code = Code::bad_file;
  if (error.where.empty()) error.where = where;
  return error;
}

}  // namespace loom::core
