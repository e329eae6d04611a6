"""scripts/install_deps.sh against a make-believe dpkg and apt, which come first in PATH."""

import os
import re
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "install_deps.sh"

# `installed` and `unknown` hold package names; `calls` records what apt-get was asked to do.
FAKES = {
    "dpkg-query": 'grep -qx "${@: -1}" installed && printf installed || exit 1',
    "apt-cache": '! grep -qx "${@: -1}" unknown',
    "apt-get": 'echo "$*" >>calls\n[[ ! -f broken ]] || { echo "E: no network" >&2; exit 100; }',
    "id": "cat user",
    "sudo": 'echo sudo >>calls\n"$@"',
}


# Commands that a minimal Debian lacks, and their packages.
PACKAGE_OF = {
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "bc": "bc", "ccache": "ccache", "clang++-14": "clang-14", "clang++-19": "clang-19",
    "clang-format-14": "clang-format-14", "cmake": "cmake", "curl": "curl", "file": "file",
    "jq": "jq", "make": "make", "ninja": "ninja-build", "patch": "patch", "pip": "python3-pip",
    "pkg-config": "pkg-config", "ps": "procps", "python3": "python3",
    "qemu-aarch64-static": "qemu-user-static", "strace": "strace",
    "unzip": "unzip", "wget": "wget", "xxd": "xxd", "xz": "xz-utils",
}  # fmt: skip
ROOT = SCRIPT.parent.parent
SHELL = [*ROOT.glob("scripts/*.sh"), *ROOT.glob("tools/*.sh"), *ROOT.glob("tests/*/*.sh"),
         *ROOT.glob("fuzz/*.sh")]  # fmt: skip


def commands_of(script: Path) -> set[str]:
    """The words in the position of commands, and the module that `python3 -m` runs."""
    lines = [line for line in script.read_text().splitlines() if not line.lstrip().startswith("#")]
    before = r"(?:^|[;|&(!]|\b(?:if|then|do|else|while|need|have)\b|\s-m\s)\s*"
    return set(re.findall(before + r"([\w+.-]+)(?=\s|$)", "\n".join(lines), re.M))


class Packages(unittest.TestCase):
    def test_every_command_of_the_scripts_comes_from_a_package_that_is_installed(self):
        listed = re.findall(r"[\w+.-]+", SCRIPT.read_text())
        called = set().union(*map(commands_of, SHELL))
        self.assertLessEqual({"patch", "cmake", "python3", "pip"}, called)
        for command in sorted(called & set(PACKAGE_OF)):
            with self.subTest(command):
                self.assertIn(PACKAGE_OF[command], listed)


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "bin").mkdir()
        for name, body in FAKES.items():
            self.fake(name, f'#!/usr/bin/env bash\ncd "{self.root}"\n{body}\n')
        for name, text in {"installed": "", "unknown": "", "calls": "", "user": "0\n"}.items():
            (self.root / name).write_text(text)

    def fake(self, name: str, text: str) -> None:
        file = self.root / "bin" / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run_script(
        self, *options: str, path: str = os.environ["PATH"]
    ) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{self.root / 'bin'}:{path}"}
        command = ["bash", str(SCRIPT), *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()

    def installed_now(self) -> list[str]:
        line = self.calls()[-1]
        return line[line.index("--no-install-recommends") :].split()[1:]

    def install_all(self, *options: str) -> None:
        self.run_script(*options)
        (self.root / "installed").write_text("\n".join(self.installed_now()) + "\n")
        (self.root / "calls").write_text("")

    def test_a_bare_machine_gets_an_update_and_every_package(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.calls()), 2)
        self.assertIn("update", self.calls()[0])
        for package in ("g++", "cmake", "ninja-build", "nlohmann-json3-dev", "libcli11-dev"):
            self.assertIn(package, self.installed_now())
        self.assertNotIn("libgtest-dev", self.installed_now())

    def test_nothing_is_asked_of_apt_when_all_is_there(self):
        self.install_all("--tests")
        result = self.run_script("--tests")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertEqual(self.calls(), [])

    def test_only_what_is_missing_is_installed(self):
        self.install_all()
        self.run_script("--tests")
        self.assertIn("libgtest-dev", self.installed_now())
        self.assertNotIn("g++", self.installed_now())

    def test_an_optional_package_that_does_not_exist_is_left_out_with_a_note(self):
        (self.root / "unknown").write_text("clang-14\n")
        result = self.run_script("--tests")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("clang-14", self.installed_now())
        self.assertIn("clang-19", self.installed_now())
        self.assertIn("note: clang-14 is not available here", result.stderr)

    def test_without_network_the_error_is_one_line(self):
        (self.root / "broken").write_text("")
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        errors = [line for line in result.stderr.splitlines() if line.startswith("error:")]
        self.assertEqual(errors, ["error: apt-get update failed: E: no network"])

    def test_sudo_is_used_by_a_user_who_is_not_root(self):
        (self.root / "user").write_text("1000\n")
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(self.calls()[0], "sudo")

    def test_a_system_without_apt_gets_a_note_and_goes_on(self):
        (self.root / "bin" / "apt-get").unlink()
        tools = self.root / "tools"
        tools.mkdir()
        for name in ("bash", "dirname", "mktemp", "cat", "sed", "env"):
            (tools / name).symlink_to(f"/usr/bin/{name}")
        result = self.run_script(path=str(tools))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: no apt-get here", result.stderr)


if __name__ == "__main__":
    unittest.main()
