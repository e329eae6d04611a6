"""Notices and lists of packages: complete, equal for equal input, and in the form of SPDX 2.3."""

import json
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import notices

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {row["source"]: "1.0" for row in notices.parts(notices.KINDS)}


def listed(*kinds: str, epoch: str = "1700000000", files: tuple[Path, ...] = ()) -> dict:
    with mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": epoch}):
        return notices.sbom(kinds, KNOWN, list(files))


class Notices(unittest.TestCase):
    def test_the_notice_files_are_those_of_the_table(self):
        for name, kinds in notices.FILES.items():
            with self.subTest(file=name):
                self.assertEqual((ROOT / name).read_text(), notices.notice(kinds))

    def test_every_license_text_has_a_row_and_names_its_owner(self):
        texts = {path.name for path in (ROOT / notices.TEXTS).iterdir()}
        self.assertEqual(texts, {row["text"] for row in notices.parts(notices.KINDS)})
        for name in texts:
            with self.subTest(file=name):
                text = (ROOT / notices.TEXTS / name).read_text()
                self.assertRegex(text.splitlines()[0], r"https?://")
                self.assertRegex(text, r"(?i)copyright|public domain|boost software license")

    def test_every_library_that_the_build_finds_has_a_row(self):
        found = set()
        for file in ("cmake/dependencies.cmake", "cmake/pictures.cmake", "cli/CMakeLists.txt",
                     "cmake/tls.cmake", "cmake/tflite.cmake"):  # fmt: skip
            text = (ROOT / file).read_text()
            found |= set(re.findall(r"find_path\(LOOM_(\w+?)_INCLUDE", text))
            found |= set(re.findall(r"find_package\((\w+)", text))
        rows = {
            "NLOHMANN_JSON": "nlohmann-json", "XXHASH": "xxHash", "ZLIB": "zlib", "PCRE2": "PCRE2",
            "BEAST": "Boost", "ASIO": "Boost", "PNG": "libpng", "JPEG": "libjpeg-turbo",
            "CLI11": "CLI11", "fmt": "fmt", "CURL": "curl", "OpenSSL": "OpenSSL",
            "LIBEDIT": "libedit", "FLATBUFFERS": "FlatBuffers",
        }  # fmt: skip
        self.assertEqual(found, set(rows))
        known = {row["name"] for row in notices.parts(notices.KINDS)}
        self.assertLessEqual(set(rows.values()), known)


class Sbom(unittest.TestCase):
    def test_equal_input_gives_equal_bytes(self):
        self.assertEqual(json.dumps(listed("program")), json.dumps(listed("program")))

    def test_the_date_is_that_of_the_commit(self):
        created = listed("library", epoch="86400")["creationInfo"]["created"]
        self.assertEqual(created, "1970-01-02T00:00:00Z")

    def test_it_has_the_fields_that_spdx_asks_for_and_relates_every_package(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "loom.tar.gz"
            file.write_bytes(b"abc")
            found = listed("program", "musl", files=(file,))
        ids = [found["SPDXID"]]
        for package in found["packages"]:
            ids.append(package["SPDXID"])
            self.assertLessEqual({"name", "downloadLocation", "licenseConcluded"}, set(package))
        for entry in found["files"]:
            ids.append(entry["SPDXID"])
            self.assertEqual(len(entry["checksums"][1]["checksumValue"]), 64)
        self.assertEqual(len(ids), len(set(ids)))
        ends = {r[key] for r in found["relationships"] for key in
                ("spdxElementId", "relatedSpdxElement")}  # fmt: skip
        self.assertEqual(ends, set(ids))

    def test_a_library_lists_nothing_of_the_program(self):
        names = {package["name"] for package in listed("library")["packages"]}
        self.assertNotIn("OpenSSL", names)
        self.assertIn("PCRE2", names)

    def test_a_part_without_a_version_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(SystemExit, "no version of zlib"):
            notices.sbom(("library",), {k: v for k, v in KNOWN.items() if k != "zlib"}, [])


if __name__ == "__main__":
    unittest.main()
