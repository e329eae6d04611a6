"""`loom run MODEL` as a person sees it, on a terminal of Python's making (pty), and over pipes.

LOOM_PROGRAM=build/dev/cli/loom python3 -m unittest discover -s tests/chat
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOOM = os.environ.get("LOOM_PROGRAM", str(ROOT / "build" / "dev" / "cli" / "loom"))
STORIES = str(ROOT / "models" / "stories.entity")
DEADLINE = 120  # seconds, of what comes by itself however busy the machine is


class Terminal:
    """The program on a terminal of 24 x 80; what it writes is kept as text."""

    def __init__(self, state: Path, *words: str):
        env = {k: v for k, v in os.environ.items() if k != "CI"}
        env |= {"TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": str(state)}
        self.text = self.all = ""
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            os.execve(LOOM, [LOOM, "run", *words], env)
        self.resize(24, 80)

    def resize(self, rows: int, columns: int):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bool:
        if not select.select([self.side], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.side, 65536)
        except OSError:
            data = b""
        self.text += data.decode("utf-8", "replace")
        self.all += data.decode("utf-8", "replace")
        return bool(data)

    def wait_for(self, pattern: str, seconds: float = DEADLINE) -> re.Match:
        """The first match in what came since the last one."""
        end = time.monotonic() + seconds
        while True:
            if found := re.search(pattern, self.text, re.S):
                self.text = self.text[found.end() :]
                return found
            if time.monotonic() > end or not self.read(0.1):
                raise AssertionError(f"{pattern!r} did not come; {self.text!r} did")

    def type(self, text: str):
        os.write(self.side, text.encode())

    def end(self, seconds: float = DEADLINE) -> int:
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                os.close(self.side)
                return os.waitstatus_to_exitcode(status)
            self.read(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"it did not end: {self.text!r}")


class ChatTest(unittest.TestCase):
    def setUp(self):
        self.state = Path(tempfile.mkdtemp(prefix="loom-chat-"))
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)

    def pipe(self, text: str, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [LOOM, "run", STORIES, *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def model(self, **files: str) -> str:
        folder = self.state / "model"
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run(
            [LOOM, "convert", STORIES, str(folder)], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        return str(folder)

    def saved(self, path) -> dict:
        return json.loads(Path(path).read_text())

    def questions(self, path) -> list[str]:
        return [t["content"] for t in self.saved(path)["turns"] if t["role"] == "user"]


class OnATerminal(ChatTest):
    def start(self, *words: str, ready: bool = True) -> Terminal:
        terminal = Terminal(self.state, STORIES, "--max-tokens", "8", *words)
        if ready:
            terminal.wait_for("/help lists")
            terminal.wait_for("> ")
        return terminal

    def needs_editing(self):
        terminal = self.start()
        terminal.type("\x04")
        terminal.end()
        if "\x1b[?2004h" not in terminal.all:
            self.skipTest("this build of loom has no libedit")

    def history(self) -> Path:
        return self.state / "loom" / "chat_history"

    def test_without_a_prompt_it_is_a_chat_that_ctrl_d_ends(self):
        terminal = self.start()
        terminal.type("Tell me a story.\r")
        terminal.wait_for(r"\[\d+ tokens read, .*/s; 8 written, .*; context \d+ of \d+\]")
        terminal.wait_for("> ")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_ctrl_c_stops_the_reply_and_not_the_program(self):
        config = self.model() + "/config.json"
        longer = json.loads(Path(config).read_text()) | {"max_position_embeddings": 30_000}
        Path(config).write_text(json.dumps(longer))
        model = str(self.state / "model")
        terminal = Terminal(self.state, model, "--max-tokens", "30000", "--ignore-eos")
        terminal.wait_for("> ")
        terminal.type("Tell me a story.\r")
        terminal.wait_for("\n")  # The words before it are the echo of what was typed.
        terminal.wait_for("[a-z]+ [a-z]+ ")
        terminal.type("\x03")
        terminal.wait_for("stop: cancelled")
        terminal.wait_for("> ")
        terminal.type("/bye\r")
        self.assertEqual(terminal.end(), 0)

    def test_ctrl_c_twice_at_the_prompt_ends(self):
        terminal = self.start()
        terminal.type("half a line")
        terminal.wait_for("half a line")
        terminal.type("\x03")
        terminal.wait_for("once more ends")
        terminal.wait_for("> ")
        terminal.type("\x03")
        self.assertEqual(terminal.end(), 0)

    def test_a_paste_of_several_lines_is_one_turn(self):
        self.needs_editing()
        path = self.state / "chat.json"
        terminal = self.start("--save", str(path))
        terminal.type("Read this: \x1b[200~one\rtwo\nthree\x1b[201~ please\r")
        terminal.wait_for("tokens read")
        terminal.wait_for("> ")
        long = "\n".join(f"line {i}" for i in range(20))
        terminal.type(f"\x1b[200~{long}\x1b[201~")
        terminal.wait_for(r"\[text 1, 20 lines\]")
        terminal.type("\r")
        terminal.wait_for("tokens read")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.questions(path), ["Read this: one\ntwo\nthree please", long])

    def test_quotes_hold_several_lines(self):
        path = self.state / "chat.json"
        terminal = self.start("--save", str(path))
        terminal.type('"""one\rtwo\r"""\r')
        terminal.wait_for("tokens read")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.questions(path), ["one\ntwo"])

    def test_lines_are_edited_and_come_back(self):
        self.needs_editing()
        path = self.state / "chat.json"
        terminal = self.start("--save", str(path))
        terminal.type("a catt\x7f sat\x01Once \x05!\r")  # backspace, home, end
        terminal.wait_for("tokens read")
        terminal.wait_for("> ")
        terminal.type("\x1b[A\r")  # up
        terminal.wait_for("tokens read")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.questions(path), ["Once a cat sat!"] * 2)
        self.assertEqual(self.history().stat().st_mode & 0o077, 0)
        again = self.start("--save", str(path))
        again.type("\x1b[A\r")
        again.wait_for("tokens read")
        again.type("\x04")
        self.assertEqual(again.end(), 0)
        self.assertEqual(self.questions(path), ["Once a cat sat!"])

    def test_no_history_leaves_no_file(self):
        terminal = self.start("--no-history")
        terminal.type("a secret\r")
        terminal.wait_for("tokens read")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertFalse(self.history().exists())

    def test_letters_beyond_ascii_and_another_width(self):
        self.needs_editing()
        path = self.state / "chat.json"
        terminal = self.start("--save", str(path))
        terminal.type("Grüße, 世")
        terminal.wait_for("世")
        terminal.resize(10, 30)  # The signal may arrive before, between or after the letters.
        terminal.type("界" + " and so on" * 6 + "\r")
        terminal.wait_for("tokens read")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.questions(path), ["Grüße, 世界" + " and so on" * 6])

    def test_commands(self):
        path = self.state / "chat.json"
        terminal = self.start()
        steps = [
            ("/help", "/regenerate"),
            ("/hepl", "did you mean 'help'"),
            ("/set temperature 0.9", "temperature 0.9"),
            ("/set temprature 1", "did you mean 'temperature'"),
            ("/set top_p 7", "'7' is not a top_p"),
            ("/set seed 3", "seed 3"),
            ("/system Be kind.", "the new system text"),
            ("/system", "system: Be kind."),
            ("Tell me a story.", "8 written"),
            ("/regenerate", "8 written"),
            ("//etc is a folder", "8 written"),
            ("/show", "4 turns; context"),
            (f"/save {path}", "4 turns"),
            ("/clear", "begins anew"),
            ("/regenerate", "no reply to give"),
            ("/load /no/such/file", "cannot open"),
            (f"/load {path}", "4 turns"),
            ("/show", "seed 4"),
        ]
        for line, answer in steps:
            with self.subTest(line=line):
                terminal.type(line + "\r")
                terminal.wait_for(re.escape(answer))
                terminal.wait_for("> ")
        terminal.type("/bye\r")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.questions(path), ["Tell me a story.", "/etc is a folder"])
        self.assertEqual(self.saved(path)["turns"][1]["settings"]["seed"], "4")

    def test_quiet_says_nothing_but_the_reply(self):
        terminal = self.start("--quiet", ready=False)
        terminal.wait_for("> ")
        terminal.type("Hello\r")
        terminal.wait_for("> ")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn("tokens", terminal.text)


class OverPipes(ChatTest):
    def test_each_line_is_a_turn_and_commands_work(self):
        ran = self.pipe("Hello\n/clear\nHello\n/usr is a folder\n", "--chat", "--max-tokens", "6")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[0], lines[1])

    def test_the_same_seed_gives_the_same_chat_and_a_saved_one_replays(self):
        path = str(self.state / "chat.json")
        words = ["--chat", "--temperature", "0.9", "--seed", "5", "--max-tokens", "20"]
        text = "Tell me a story.\nAnd then?\nAnd then?\n"
        first = self.pipe(text, *words, "--save", path)
        self.assertEqual(first.stdout, self.pipe(text, *words).stdout)
        ran = self.pipe("", "--replay", path)
        self.assertEqual((ran.returncode, ran.stdout), (0, "3 replies, all the same\n"), ran.stderr)
        told = Path(path).read_text()
        Path(path).write_text(told.replace('"content": "Tell', '"content": "Do tell'))
        self.assertEqual(self.pipe("", "--replay", path).returncode, 5)

    def test_a_loaded_chat_goes_on_where_it_was(self):
        path = str(self.state / "chat.json")
        words = ["--chat", "--max-tokens", "20"]
        whole = self.pipe("Tell me a story.\nAnd then?\n", *words).stdout.splitlines()
        self.pipe("Tell me a story.\n", *words, "--save", path)
        rest = self.pipe("And then?\n", *words, "--load", path)
        self.assertEqual(rest.stdout.splitlines(), whole[1:])
        self.assertEqual(self.pipe("x\n", *words, "--load", LOOM).returncode, 3)

    def test_a_full_context_is_said_in_one_line_and_the_chat_goes_on(self):
        text = "Tell me a story about a dog.\n" * 8
        words = ["--chat", "--context", "96", "--max-tokens", "20"]
        ran = self.pipe(text, *words)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(len(ran.stdout.splitlines()), 8)
        self.assertIn("the context was full: the oldest", ran.stderr)
        stopped = self.pipe(text, *words, "--on-full", "stop")
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("the context is full", stopped.stderr)
        self.assertEqual(self.pipe(text, *words, "--on-full", "halt").returncode, 2)


class WhatTheModelAsksFor(ChatTest):
    def chat(self, model: str, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [LOOM, "run", model, "--chat", "--max-tokens", "12", *words],
            input="Tell me a story.\n",
            capture_output=True,
            text=True,
        )

    def test_generation_config_is_honoured_and_said_once(self):
        model = self.model(
            generation_config__json='{"do_sample": true, "temperature": 0.7, "top_p": 0.9}'
        )
        ran = self.chat(model)
        self.assertEqual(ran.stderr, "[the model asks for temperature 0.7, top-k 50, top-p 0.9]\n")
        flags = ["--temperature", "0.7", "--top-p", "0.9", "--top-k", "50"]
        plain = self.model()
        self.assertEqual(ran.stdout, self.chat(plain, *flags).stdout)
        greedy = self.chat(plain)
        self.assertNotEqual(ran.stdout, greedy.stdout)
        model = self.model(generation_config__json='{"do_sample": true, "temperature": 0.7}')
        told = self.chat(model, "--temperature", "0", "--top-k", "0")
        self.assertEqual((told.stderr, told.stdout), ("", greedy.stdout))

    def test_without_do_sample_it_is_greedy(self):
        model = self.model(generation_config__json='{"temperature": 0.7}')
        greedy = self.chat(model).stdout
        self.assertEqual(greedy, self.chat(self.model()).stdout)

    def test_a_wrong_one_is_an_error_that_names_the_field(self):
        for text, name in [
            ('{"do_sample": 1}', "do_sample"),
            ('{"do_sample": true, "top_p": 7}', "top_p"),
            ('{"do_sample": true, "temperature": "warm"}', "temperature"),
        ]:
            ran = self.chat(self.model(generation_config__json=text))
            self.assertEqual(ran.returncode, 3, ran.stderr)
            self.assertIn(name, ran.stderr)

    def test_thinking_stands_apart_and_can_be_left_out(self):
        template = (
            "{% for m in messages %}{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}<think>{% endif %}"
        )
        model = self.model(chat_template__jinja=template)
        ran = self.chat(model)
        self.assertTrue(ran.stdout.startswith("<think>"), ran.stdout)
        hidden = self.chat(model, "--hide-thinking")
        self.assertEqual(hidden.stdout.strip(), "")

    def test_a_model_without_a_template_continues_texts(self):
        model = self.model()
        for name in ["tokenizer_config.json", "chat_template.jinja"]:
            (Path(model) / name).unlink(missing_ok=True)
        terminal = Terminal(self.state, model, "--max-tokens", "8")
        terminal.wait_for("continues texts")
        terminal.wait_for("> ")
        terminal.type("Once upon a time\r")
        terminal.wait_for("8 written")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.chat(model).returncode, 4)


if __name__ == "__main__":
    unittest.main()
