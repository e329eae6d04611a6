"""Runs a program for WASI in Wasmtime, whose compiler is not V8; wasmtime.mjs starts this.

  python tests/web/wasi_host.py loom_hash.wasm

The module is compiled once. Each line of stdin is a list of arguments as JSON and starts the
program once, with a new memory. Each line of stdout is {"output": TEXT} or {"error": TEXT}.
"""

import json
import sys
import tempfile
from pathlib import Path

import wasmtime

MAX_MEMORY = 2 << 30


class Program:
    def __init__(self, path: str):
        config = wasmtime.Config()
        # Relaxed instructions have one result on every processor.
        config.wasm_relaxed_simd_deterministic = True
        self.engine = wasmtime.Engine(config)
        self.module = wasmtime.Module.from_file(self.engine, path)
        self.linker = wasmtime.Linker(self.engine)
        self.linker.define_wasi()

    def run(self, arguments: list[str], output: Path, errors: Path) -> None:
        wasi = wasmtime.WasiConfig()
        wasi.argv = ("loom", *arguments)
        wasi.stdout_file, wasi.stderr_file = str(output), str(errors)
        store = wasmtime.Store(self.engine)
        store.set_limits(memory_size=MAX_MEMORY)
        store.set_wasi(wasi)
        self.linker.instantiate(store, self.module).exports(store)["_start"](store)


def reply(program: Program, arguments: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="loom-wasi-") as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        try:
            program.run(arguments, output, errors)
        except wasmtime.ExitTrap as trap:
            if trap.code != 0:
                return {"error": f"exit status {trap.code}: {errors.read_text()}"}
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            return {"error": f"{error}\n{errors.read_text()}"}
        return {"output": output.read_text()}


def main() -> None:
    program = Program(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(reply(program, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
