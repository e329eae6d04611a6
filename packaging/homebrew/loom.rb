# The program for Homebrew. scripts/release.sh --only source writes a copy with the checksum of the archive and, from
# LOOM_RELEASES, the address of the folder with it.
class Loom < Formula
  desc "Trains networks and runs language models, with the same bits on every CPU"
  homepage "@RELEASES@"
  url "@RELEASES@/loom-0.2.0.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "flatbuffers" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "xxhash" => :build
  depends_on "fmt"
  depends_on "jpeg-turbo"
  depends_on "libpng"
  depends_on "openssl@3"
  depends_on "pcre2"

  uses_from_macos "curl"
  uses_from_macos "libedit"
  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
    pkgshare.install "models/stories.entity"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/loom version")
    system bin/"loom", "run", pkgshare/"stories.entity", "-p", "Once", "--max-tokens", "5"
  end
end
