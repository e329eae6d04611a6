// Issue 37, line 33: files of an unexpected type are recognized by their first bytes.
#include "io/files/foreign_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/arrays/array_file.hpp"
#include "io/io_testing.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace)
using test::bytes_of;
using test::TemporaryFolder;

std::string zip_with(std::string_view member) {
  std::string zip("PK\x03\x04", 4);
  zip.resize(26, '\0');
  zip += static_cast<char>(member.size());
  zip += std::string(3, '\0');
  return zip.append(member).append(64, 'x');
}

struct Foreign {
  std::string bytes, message;
};

const std::vector<Foreign>& rows() {
  static const std::vector<Foreign> kRows = {
      {"", "is empty"},
      {std::string(4096, '\0'), "holds zero bytes"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "is a Git LFS pointer"},
      {"<!DOCTYPE html><html></html>", "is a web page (HTML)"},
      {"\n \n<HTML lang=en>", "is a web page (HTML)"},
      {"<?xml version=\"1.0\"?><Error/>", "is an XML document"},
      {"Entry not found", "is the error message of a server"},
      {std::string("\x80\x02}q\0.", 6), "is a Python pickle"},
      {std::string("\x80\x04\x95\x10\0\0\0\0\0\0\0", 11), "is a Python pickle"},
      {std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20", 10), "is a PyTorch file"},
      {zip_with("archive/data.pkl"), "is a PyTorch file"},
      {zip_with("model/byteorder"), "is a PyTorch file"},
      {zip_with("model.weights.h5"), "is a Keras model"},
      {zip_with("[Content_Types].xml"), "is a spreadsheet"},
      {zip_with("mimetype"), "is a spreadsheet"},
      {zip_with("readme.txt"), "is a ZIP archive"},
      {std::string("RIFF\x10\0\0\0WEBPVP8 ", 16), "is a WebP image; save it as PNG"},
      {std::string("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18), "is a BMP image"},
      {"\x1f\x8b\x08", "is a gzip archive"},
      {"\x28\xb5\x2f\xfd", "is a Zstandard archive"},
      {std::string("\xfd"
                   "7zXZ\0",
                   6),
       "is an xz archive"},
      {"BZh91AY&SY", "is a bzip2 archive"},
      {"7z\xbc\xaf\x27\x1c", "is a 7-Zip archive"},
      {std::string(257, 'a') + "ustar", "is a tar archive"},
      {"%PDF-1.7", "is a PDF document"},
      {"\x89HDF\r\n\x1a\n", "is an HDF5 file"},
      {"\x89PNG\r\n\x1a\n", "is a PNG image"},
      {"\xff\xfe"
       "a",
       "is text in UTF-16"},
      {"tjgg", "is a model of old llama.cpp"},
  };
  return kRows;
}

// A file may end anywhere within its signature.
TEST(ForeignFile, ThatAreShorterThanTheirSignsAreNotTold) {
  for (const Foreign& row : rows()) {
    for (size_t size = 1; size < std::min<size_t>(row.bytes.size(), 300); ++size)
      (void)foreign_file(row.bytes.substr(0, size), "f");
  }
  EXPECT_FALSE(foreign_file("BZh", "f"));
  EXPECT_FALSE(foreign_file("RIFF", "f"));
}

TEST(ForeignFile, AreToldByHowTheyBegin) {
  for (const Foreign& row : rows()) {
    const auto error = foreign_file(row.bytes, "f");
    ASSERT_TRUE(error) << row.message;
    EXPECT_EQ(error->code, Code::bad_file);
    EXPECT_EQ(error->offset, 0);
    EXPECT_EQ(error->str().find("f: "), 0u) << error->str();
    EXPECT_NE(error->message.find(row.message), std::string::npos) << error->str();
    EXPECT_NE(error->message.find("; "), std::string::npos) << "no advice: " << error->str();
    EXPECT_EQ(error->str().find('\n'), std::string::npos);
  }
}

TEST(ForeignFile, FilesThatLoomReadsAreNone) {
  const std::string safe = test::safetensors_file("{}");
  for (const std::string& bytes :
       {safe, zip_with("x.npy"), std::string("GGUF\3\0\0\0", 8), std::string("ENTITY\0\0", 8),
        std::string("{\"loom\":1}"), std::string("a,b\n1,2\n"), std::string("\x93NUMPY\1\0"),
        std::string("BZhigh,2\n"), std::string("PAR1,2\n1,2\n"), std::string("\x08\x07\x12", 3),
        std::string("\0\0\x08\x01\0\0\0\0", 8)}) {
    EXPECT_FALSE(foreign_file(bytes, "f")) << bytes;
  }
  // A header of 640 bytes begins as a pickle of protocol 2 does.
  EXPECT_FALSE(foreign_file(test::safetensors_file("{}" + std::string(638, ' ')), "f"));
  EXPECT_FALSE(foreign_file("\x1f\x8b\x08"sv, "f", true)) << "data sets may be packed";
}

// Readers report it in place of their own error.
TEST(ForeignFile, EveryReaderSaysWhatAFileIs) {
  const TemporaryFolder folder;
  for (const Foreign& row : rows()) {
    if (row.bytes.empty()) continue;
    SCOPED_TRACE(row.message);
    const auto names = [&](const auto& result) {
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, Code::bad_file);
      EXPECT_NE(result.error().message.find(row.message), std::string::npos)
          << result.error().str();
    };
    // It reads files of PyTorch (torch_file_test.cpp).
    if (row.message != "is a PyTorch file") names(SafeTensors::parse(bytes_of(row.bytes), "f"));
    names(parse_json(row.bytes, "f"));
    if (row.message == "is a gzip archive") continue;
    folder.write("f", row.bytes);
    names(ArrayFile::open(folder.path("f")));
  }
}

}  // namespace
}  // namespace loom::core
