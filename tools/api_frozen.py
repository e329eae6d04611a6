#!/usr/bin/env python3
"""Promises of releases of the C interface: api/frozen/RELEASE.toml, never edited.

  tools/api_frozen.py --check          reports what was moved, changed or removed since; exit 1.
  tools/api_frozen.py --freeze 0.2     writes api/frozen/0.2.toml and 0.2.abi from api/; once, at
                                       the release of 0.2; needs gcc and abidw.

Functions may be added, and so may values of enums and fields at the end of structs. Everything else
of a release stays unchanged while `abi` of api/loom_api.toml is the same. tests/capi/frozen.c
asserts it in C. The order of the table of loom_get_api() follows from these files.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = """\
# The C interface of release {release}, as promised. Written by tools/api_frozen.py; never edited.

abi = {abi}
"""


def signature(call: dict) -> str:
    types = ", ".join(a.type for a in call["arguments"]) or "void"
    return f"{call.get('returns', 'int32_t')} ({types})"


def snapshot(api) -> dict:
    """The promises of a release, as plain data."""
    structs = {}
    for name, struct in api.structs.items():
        offsets, size = api.layout(name)
        fields = [[m.name, m.type, offsets[m.name]] for m in struct["members"]]
        structs[name] = {"kind": struct["kind"], "size": size, "fields": fields}
    return {
        "abi": api.abi,
        "handles": list(api.handles),
        "functions": {n: [signature(f), f["thread"]] for n, f in api.functions.items()},
        "callbacks": {n: signature(c) for n, c in api.callbacks.items()},
        "enums": {n: {e["prefix"] + v: i for v, i, _ in e["values"]} for n, e in api.enums.items()},
        "structs": structs,
    }  # fmt: skip


def as_toml(release: str, held: dict) -> str:
    text = lambda value: '"' + str(value) + '"'  # noqa: E731  names and types need no escapes
    out = [TOP.format(release=release, abi=held["abi"]), "handles = ["]
    out += [f"  {text(name)}," for name in held["handles"]] + ["]", "", "[functions]"]
    out += [f"{n} = [{text(s)}, {text(t)}]" for n, (s, t) in held["functions"].items()]
    out += ["", "[callbacks]"] + [f"{n} = {text(s)}" for n, s in held["callbacks"].items()]
    for name, values in held["enums"].items():
        out += ["", f"[enums.{name}]"] + [f"{value} = {number}" for value, number in values.items()]
    for name, struct in held["structs"].items():
        out += ["", f"[structs.{name}]", f"kind = {text(struct['kind'])}",
                f"size = {struct['size']}", "fields = ["]  # fmt: skip
        out += [f"  [{text(n)}, {text(t)}, {at}]," for n, t, at in struct["fields"]] + ["]"]
    return "\n".join(out) + "\n"


def releases(root: Path = ROOT) -> dict[str, dict]:
    """Release -> its promises, oldest first."""
    files = sorted((root / "api/frozen").glob("*.toml"),
                   key=lambda f: [int(part) for part in f.stem.split(".")])  # fmt: skip
    return {file.stem: tomllib.loads(file.read_text()) for file in files}


def _struct_problems(name: str, then: dict, now: dict) -> list[str]:
    out = []
    if then["kind"] != now["kind"]:
        out.append(f"{name} was {then['kind']} and is {now['kind']}")
    if now["size"] < then["size"] or (then["kind"] == "plain" and now["size"] != then["size"]):
        out.append(f"{name} has {now['size']} bytes and had {then['size']}")
    for i, (field, type_, at) in enumerate(then["fields"]):
        if i >= len(now["fields"]) or now["fields"][i][0] != field:
            out.append(f"{name}.{field} is not where it was")
        elif now["fields"][i][1:] != [type_, at]:
            out.append(f"{name}.{field} was {type_} at {at} and is "
                       f"{now['fields'][i][1]} at {now['fields'][i][2]}")  # fmt: skip
    return out


def problems(then: dict, now: dict) -> list[str]:
    """Changes that break programs made for `then`; none if `abi` declares another interface."""
    if then["abi"] != now["abi"]:
        return [] if now["abi"] > then["abi"] else ["abi went back"]
    out = [f"{name} is gone" for name in then["handles"] if name not in now["handles"]]
    for kind in ("functions", "callbacks", "enums", "structs"):
        out += [f"{name} is gone" for name in then[kind] if name not in now[kind]]
    for name, (said, thread) in then["functions"].items():
        found, tag = now["functions"].get(name, (said, thread))
        if found != said:
            out.append(f"{name} was {said} and is {found}")
        if thread == "any" and tag != "any":
            out.append(f"{name} could be called from any thread and can not")
    for name, said in then["callbacks"].items():
        if now["callbacks"].get(name, said) != said:
            out.append(f"{name} was {said} and is {now['callbacks'][name]}")
    for name, values in then["enums"].items():
        now_values = now["enums"].get(name, values)
        out += [f"{value} was {number} and is {now_values.get(value, 'gone')}"
                for value, number in values.items()
                if now_values.get(value) != number]  # fmt: skip
    for name, struct in then["structs"].items():
        out += _struct_problems(name, struct, now["structs"].get(name, struct))
    return out


# ---- generated files -----------------------------------------------------------------------------


def table_order(api, frozen: dict[str, dict]) -> list[str]:
    """Functions as loom_api holds them: those of older releases first, new ones last."""
    order: dict[str, None] = {}
    for held in frozen.values():
        if held["abi"] == api.abi:
            order.update(dict.fromkeys(n for n in held["functions"] if n in api.functions))
    order.update(dict.fromkeys(api.functions))
    return list(order)


def _pointer(call: dict, name: str) -> str:
    returns = call["returns"]
    types = ", ".join(a.type for a in call["arguments"]) or "void"
    return f"{returns}{'' if returns.endswith('*') else ' '}(*{name})({types})"


def write_asserts(frozen: dict[str, dict], abi: int, mark: str) -> str:
    """A C11 file that compiles only where every release's promises hold."""
    out = [f"/* {mark} */", "/* clang-format off */",
           "/* The layouts that releases promised (api/frozen), which the compiler checks. */",
           '#include "loom.h"', "", "#include <stddef.h>", ""]  # fmt: skip
    for release, held in frozen.items():
        if held["abi"] != abi:
            continue
        number, checks = release.replace(".", "_"), []
        out.append(f"/* ---- {release} ---- */")
        for values in held["enums"].values():
            checks += [(f"{value} == {number_}", value) for value, number_ in values.items()]
        out += [f'_Static_assert({check}, "{what}");' for check, what in checks]
        for name, (said, _) in held["functions"].items():
            returns, types = said.split(" (", 1)
            space = "" if returns.endswith("*") else " "
            out.append(f"{returns}{space}(*const frozen_{number}_{name})({types} = {name};")
        out.append("#if UINTPTR_MAX > 0xffffffffu")
        for name, struct in held["structs"].items():
            compare = "==" if struct["kind"] == "plain" else ">="
            out.append(f'_Static_assert(sizeof({name}) {compare} {struct["size"]}, "{name}");')
            out += [f'_Static_assert(offsetof({name}, {field}) == {at}, "{name}.{field}");'
                    for field, _, at in struct["fields"]]  # fmt: skip
        out += ["#endif", ""]
    return "\n".join(out)


def write_table_header(api, frozen: dict[str, dict], declared) -> list[str]:
    """The struct of pointers for loom.h. declared(call, name): a declaration as lines."""
    out = ["/* All functions as one table, for programs that find the library at run time: one",
           " * symbol to look up. Functions are added at the end; `count` says how many. */",
           "typedef struct loom_api {",
           "  uint32_t abi;   /* LOOM_ABI_VERSION of the library */",
           "  uint32_t count; /* of the functions that follow */"]  # fmt: skip
    for name in table_order(api, frozen):
        lines = declared(api.functions[name], f"(*{name.removeprefix('loom_')})")
        out += [f"  {line}" for line in lines]
    out += ["} loom_api;", "",
            "/* The table of a library that has this interface; version: LOOM_ABI_VERSION of the",
            " * caller's header. Null where the library has another. Borrowed, forever. */",
            "LOOM_EXPORT const loom_api *loom_get_api(uint32_t version);", ""]  # fmt: skip
    return out


def write_table(api, frozen: dict[str, dict], mark: str) -> str:
    order = table_order(api, frozen)
    out = [f"// {mark}", "// clang-format off", '#include "loom.h"', "",
           'extern "C" {', "", "const loom_api* loom_get_api(uint32_t version) {",
           "  static constexpr loom_api kApi = {", f"      {api.abi}, {len(order)},",
           *(f"      &{name}," for name in order), "  };",
           "  return version == kApi.abi ? &kApi : nullptr;", "}", "",
           '}  // extern "C"', ""]  # fmt: skip
    return "\n".join(out)


def stub(api) -> str:
    """A C file with every function and empty bodies, for tools that compare compiled interfaces."""
    out = ['#include "loom.h"', ""]
    for name, call in api.functions.items():
        arguments = ", ".join(a.declared() for a in call["arguments"]) or "void"
        body = "" if call["returns"] == "void" else "return 0;"
        out.append(f"{call['returns']} {name}({arguments}) {{ {body} }}")
    return "\n".join(out) + "\n"


# ---- the tool ------------------------------------------------------------------------------------


def write_baseline(api, to: Path) -> None:
    """The libabigail description of the interface (tests/tools/test_api_frozen.py)."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "stub.c", Path(folder) / "libloom.so"
        source.write_text(stub(api))
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-w", f"-I{ROOT / 'include'}",
                        "-o", library, source], check=True)  # fmt: skip
        subprocess.run(["abidw", "--no-comp-dir-path", "--no-corpus-path", "--no-show-locs",
                        "--out-file", to, library], check=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    doing = parser.add_mutually_exclusive_group(required=True)
    doing.add_argument("--check", action="store_true", help="compare api/ with every release")
    doing.add_argument("--freeze", metavar="RELEASE", help="write what RELEASE promises, once")
    options = parser.parse_args()
    import generate_api

    now = snapshot(generate_api.described())
    if options.freeze:
        file = ROOT / "api/frozen" / f"{options.freeze}.toml"
        if file.exists():
            raise SystemExit(f"{file.relative_to(ROOT)} is there already; a promise is made once")
        file.parent.mkdir(exist_ok=True)
        file.write_text(as_toml(options.freeze, now))
        write_baseline(generate_api.described(), file.with_suffix(".abi"))
        print(f"{file.relative_to(ROOT)}: written; run tools/generate_api.py")
        return 0
    found = [f"{release}: {problem}" for release, then in releases().items()
             for problem in problems(then, now)]  # fmt: skip
    print("\n".join(found) or "every promise is kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
