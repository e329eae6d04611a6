#!/usr/bin/env python3
"""Licenses of the software of others in released files, from packaging/third_party.toml.

  tools/notices.py --write          writes the NOTICE files (FILES) from packaging/licenses
  tools/notices.py --check          names the NOTICE files that differ, and exits with 1
  tools/notices.py --sbom KIND...   prints the list of packages as JSON of SPDX 2.3
     --versions FILE   a line per source package: name and version (build/release/versions)
     --file PATH...    released files, which the list names with their SHA-256

KIND is library or program, and musl or windows in addition. The output depends only on the
arguments, the table and SOURCE_DATE_EPOCH.
"""

import argparse
import hashlib
import json
import os
import sys
import time
import tomllib
import uuid
from pathlib import Path

import versions

ROOT = Path(__file__).resolve().parent.parent
TABLE, TEXTS = "packaging/third_party.toml", "packaging/licenses"
KINDS = ("library", "program", "musl", "windows")
# NOTICE files in the repository, and the kinds of parts in them.
FILES = {
    "bindings/python/NOTICE": ("library", "musl", "windows"),
    "packaging/NOTICE": KINDS,
}
TOP = """\
Loom
Licensed under the Apache License 2.0 (LICENSE).

{what} the software of others below. Each part is followed by its license.
"""
RULE = "\n" + "-" * 78 + "\n"


def parts(kinds: tuple[str, ...], root: Path = ROOT) -> list[dict]:
    """The rows for these kinds, in the order of the table."""
    rows = tomllib.loads((root / TABLE).read_text())["part"]
    return [row for row in rows if set(row["in"]) & set(kinds)]


def notice(kinds: tuple[str, ...], root: Path = ROOT) -> str:
    who = "The library and the program contain" if "program" in kinds else "The library contains"
    out = [TOP.format(what=who)]
    for row in parts(kinds, root):
        only = [kind for kind in row["in"] if kind in ("musl", "windows")]
        where = f"\n(in files for {' and '.join(only)} alone)" if only else ""
        text = (root / TEXTS / row["text"]).read_text().strip()
        out.append(f"{row['name']} ({row['license']}){where}\n\n{text}\n")
    return RULE.join(out)


def read_versions(path: Path) -> dict[str, str]:
    """Versions by source package, without epochs and without the revision of Debian."""
    found = {}
    for line in path.read_text().splitlines():
        name, version = line.split()
        found[name] = version.split(":")[-1]
    return found


def spdx_id(name: str) -> str:
    return "SPDXRef-" + "".join(c if c.isalnum() else "-" for c in name)


def package(row: dict, known: dict[str, str]) -> dict:
    if row["source"] not in known:
        raise SystemExit(f"no version of {row['source']}, which {row['name']} comes from")
    return {
        "SPDXID": spdx_id(row["name"]),
        "name": row["name"],
        "versionInfo": known[row["source"]],
        "downloadLocation": "NOASSERTION",
        "homepage": row["from"],
        "filesAnalyzed": False,
        "licenseConcluded": row["license"],
        "licenseDeclared": row["license"],
        "copyrightText": "NOASSERTION",
        "comment": f"from the source package {row['source']}",
    }


def file_entry(path: Path) -> dict:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "SPDXID": spdx_id("File-" + path.name),
        "fileName": "./" + path.name,
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(path.read_bytes()).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": digest},
        ],
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def relation(left: str, kind: str, right: str) -> dict:
    return {"spdxElementId": left, "relationshipType": kind, "relatedSpdxElement": right}


def sbom(kinds: tuple[str, ...], known: dict[str, str], files: list[Path]) -> dict:
    version = versions.current()
    loom = {
        "SPDXID": "SPDXRef-Loom",
        "name": "loom",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }
    others = [package(row, known) for row in parts(kinds)]
    entries = [file_entry(path) for path in files]
    related = [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Loom")]
    related += [relation("SPDXRef-Loom", "CONTAINS", other["SPDXID"]) for other in others]
    related += [relation(entry["SPDXID"], "GENERATED_FROM", "SPDXRef-Loom") for entry in entries]
    body = {"packages": [loom, *others], "files": entries, "relationships": related}
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    created = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"loom-{version}-{'-'.join(kinds)}",
        "documentNamespace": f"urn:uuid:{name}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", created),
            "creators": ["Tool: loom tools/notices.py"],
        },
        **body,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="name the NOTICE files that differ")
    parser.add_argument("--write", action="store_true", help="write the NOTICE files")
    parser.add_argument("--sbom", nargs="+", choices=KINDS, help="print the list of packages")
    parser.add_argument("--versions", type=Path, help="versions of the source packages")
    parser.add_argument("--file", type=Path, nargs="+", default=[], help="released files")
    args = parser.parse_args()
    if args.sbom:
        if not args.versions:
            parser.error("--sbom needs --versions")
        found = sbom(tuple(args.sbom), read_versions(args.versions), args.file)
        print(json.dumps(found, indent=2))
        return 0
    differing = 0
    for name, kinds in FILES.items():
        path, text = ROOT / name, notice(kinds)
        if path.is_file() and path.read_text() == text:
            continue
        differing += 1
        if args.write:
            path.write_text(text)
        print(f"{name}: {'written' if args.write else 'differs; run tools/notices.py --write'}")
    return int(args.check and differing > 0)


if __name__ == "__main__":
    sys.exit(main())
