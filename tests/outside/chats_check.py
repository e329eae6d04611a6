#!/usr/bin/env python3
"""Whole chats across programs: the prompt and its token ids, of the real chat templates.

Each template gets a small folder with a tokenizer that knows its marks, and a GGUF file that Loom
writes from it. The chats have several turns: system, tools, calls, results, parts, empty and null
content. They go through `transformers`, and through `loom serve` of the folder and of the GGUF
file. They also go through llama.cpp: its tokenizer reads our prompt, and its own template engine
makes one.

  chats_check.py --loom build/dev/cli/loom --templates FOLDER... [--chats 8] [--seed 1]
                 [--llama LIBRARIES] [--llama-chat PROGRAM] [--show]

LIBRARIES: see llama_library.py. PROGRAM: llama_chat.cpp, compiled. Needs transformers, tokenizers,
numpy and safetensors. Loom must give the text and the ids of transformers, or refuse what
transformers refuses. llama.cpp must give the same ids for the same text. Prompts of its own engine
are only counted, because it rewrites some templates. The last line counts.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.dont_write_bytecode = True

import tokenizers
import transformers
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

import tokens_check
from llama_library import Llama, LlamaFailure
from templates import TOOLS, conversations

transformers.utils.logging.set_verbosity_error()
MARK = re.compile(
    r"<\|[^|<>\s{}]{1,40}\|>|<[a-zA-Z_/][\w/:\-]{0,30}>|\[/?[A-Z_]{2,20}\]|<｜[^｜<>{}]{1,40}｜>"
)
TEXTS = [
    "",
    " ",
    "Hello!",
    "What is the weather in Paris?",
    "  naïve 漢字 🙂 \u00a0\n\t",
    "line\n\nline\r\n",
    "<|im_end|> {{ x }} </s><s>",
    '{"temperature": 21.5}',
    "a" * 70,
    "e\u0301 ½ ١٢",
]


def marks_of(template):
    return sorted(set(MARK.findall(template)) - {"<s>", "</s>", "<unk>"})


def bytes_tokenizer(pattern):
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        show_progress=False,
        special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(tokens_check.CORPUS, trainer)
    spec = json.loads(made.to_str())
    spec["model"]["ignore_merges"] = pattern == tokens_check.LLAMA3
    return tokenizers.Tokenizer.from_str(json.dumps(spec))


def tokenizer_for(template, number):
    """A tokenizer of the kind `number`, with the marks of the template as tokens."""
    kinds = [tokens_check.LLAMA3, tokens_check.QWEN2, None]
    pattern = kinds[number % len(kinds)]
    if pattern is None:
        made = tokens_check.pieces_tokenizer(random.Random(0))
    else:
        made = bytes_tokenizer(pattern)
    draw = random.Random(number)
    added = [
        tokenizers.AddedToken(mark, special=draw.random() < 0.7, normalized=False)
        for mark in marks_of(template)
    ]
    made.add_special_tokens(["<s>", "</s>"])
    made.add_tokens(added)
    return made


def write_model(folder, template, number):
    made = tokenizer_for(template, number)
    tokens_check.write_folder(made, str(folder))
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"}
    config.update(eos_token="</s>", unk_token="<unk>")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


class RandomChat:
    """A chat of several turns, as programs store it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.calls = 0

    def value(self, depth=2):
        plain = [0, 1, -7, 2.5, 1e-7, True, False, None, "Zürich", 'a "b"\n', "", 10**12]
        if depth == 0 or self.random.random() < 0.7:
            return self.random.choice(plain)
        if self.random.random() < 0.5:
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]
        return {k: self.value(depth - 1) for k in self.random.sample(["x", "y z", "é"], 2)}

    def content(self):
        text = self.random.choice(TEXTS)
        if self.random.random() < 0.15:
            return [{"type": "text", "text": text}, {"type": "text", "text": "Two."}]
        return text

    def call(self):
        self.calls += 1
        names = self.random.sample(["city", "days", "unit", "query"], self.random.randint(0, 3))
        function = {"name": self.random.choice(["get_weather", "search"])}
        function["arguments"] = {name: self.value() for name in names}
        return {"id": f"call{self.calls:05d}", "type": "function", "function": function}

    def exchange(self):
        turns = [{"role": "user", "content": self.content()}]
        while self.random.random() < 0.35:
            calls = [self.call() for _ in range(self.random.choice([1, 1, 2]))]
            content = self.random.choice(["", None, "I look."])
            turns.append({"role": "assistant", "content": content, "tool_calls": calls})
            for one in calls:
                turns.append(
                    {
                        "role": "tool",
                        "tool_call_id": one["id"],
                        "name": one["function"]["name"],
                        "content": self.random.choice(TEXTS),
                    }
                )
        answer = {"role": "assistant", "content": self.random.choice(TEXTS)}
        if self.random.random() < 0.2:
            answer["reasoning_content"] = "They want\nit."
        return [*turns, answer]

    def chat(self):
        messages = []
        if self.random.random() < 0.5:
            messages.append({"role": "system", "content": self.random.choice(TEXTS)})
        for _ in range(self.random.randint(1, 4)):
            messages += self.exchange()
        if self.random.random() < 0.7:
            while messages[-1]["role"] not in ("user", "tool"):
                messages.pop()
        more = {"messages": messages, "add_generation_prompt": messages[-1]["role"] != "assistant"}
        if self.calls or self.random.random() < 0.2:
            more["tools"] = TOOLS
        return more


def chats(count, seed):
    keys = ("messages", "tools", "add_generation_prompt")
    for name, inputs in conversations():
        if all(key in (*keys, "bos_token", "eos_token", "date_string") for key in inputs):
            yield name, {key: inputs[key] for key in keys if inputs.get(key) is not None}
    for number in range(count):
        yield f"chat {number}", RandomChat(f"{seed} {number}").chat()


def as_api(chat):
    """As clients send it: arguments are text."""
    out = json.loads(json.dumps(chat))
    for message in out["messages"]:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps(
                call["function"]["arguments"], ensure_ascii=False
            )
    return out


class Refused(Exception):
    pass


class Server:
    def __init__(self, loom, model):
        self.process = subprocess.Popen(
            [loom, "serve", str(model), "--port", "0", "--quiet", "--threads", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line:
            raise Refused(self.process.stderr.read().strip())
        self.address = line.split()[-1]

    def ask(self, path, body):
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode("utf-8", "replace")) from error

    def prompt(self, chat):
        text = self.ask("/apply-template", as_api(chat))["prompt"]
        return text, self.ask("/tokenize", {"content": text})["tokens"]

    def close(self):
        self.process.terminate()
        self.process.wait(60)


def tells_tools(server):
    """True if Loom puts tools and calls into the chat itself, because the call format of this
    template's family is unknown (docs/chat.md)."""
    chat = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    try:
        return "You may call functions to answer." in server.ask("/apply-template", chat)["prompt"]
    except Refused:  # it described tools to a template that has no system turn
        return True


class LlamaChat:
    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def prompt(self, template, chat):
        request = {"template": template, "bos": "<s>", "eos": "</s>", **as_api(chat)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def by_transformers(tokenizer, chat):
    try:
        text = tokenizer.apply_chat_template(
            chat["messages"],
            tools=chat.get("tools"),
            add_generation_prompt=chat["add_generation_prompt"],
            tokenize=False,
        )
    except Exception as error:  # any error of the template or jinja2
        return None, f"{type(error).__name__}: {error}"
    return text, tokenizer(text, add_special_tokens=False)["input_ids"]


def has_tools(chat):
    called = any(m.get("tool_calls") or m["role"] == "tool" for m in chat["messages"])
    return called or bool(chat.get("tools"))


def has_parts(chat):
    return any(isinstance(message["content"], list) for message in chat["messages"])


def knows_parts(text):
    """True if a template printed the texts of parts, not the list or nothing."""
    return text is not None and "Two." in text and not re.search(r"['\"]type['\"]: ['\"]text", text)


def joined(chat):
    """Parts as one text, for templates that know only texts: joined as llama.cpp does."""
    out = json.loads(json.dumps(chat))
    for message in out["messages"]:
        if isinstance(message["content"], list):
            texts = [part["text"] for part in message["content"]]
            message["content"] = "\n".join(texts if texts[0] else texts[1:])
    return out


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{a[max(0, at - 40) : at + 40]!r} against {b[max(0, at - 40) : at + 40]!r}"


class Check:
    def __init__(self, args):
        self.args, self.totals = args, collections.Counter()
        self.llama = Llama(args.llama) if args.llama else None
        self.llama_chat = LlamaChat(args.llama_chat) if args.llama_chat else None

    def wrong(self, what, why):
        self.totals["wrong"] += 1
        print(f"WRONG {what}: {why}", flush=True)

    def template(self, path, number, work):
        template = path.read_text(encoding="utf-8")
        folder, gguf = work / "model", work / "m.gguf"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_model(folder, template, number)
        done = subprocess.run(
            [self.args.loom, "convert", str(folder), str(gguf), "--force"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return self.wrong(path.name, f"no GGUF file: {done.stderr.strip()}")
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        servers = {}
        try:
            for name, model in (("folder", folder), ("gguf", gguf)):
                servers[name] = Server(self.args.loom, model)
            noted = "llama.cpp may" in done.stderr
            told = tells_tools(servers["folder"])
            for name, chat in chats(self.args.chats, f"{self.args.seed} {path.name}"):
                what = f"{path.name}, {name}"
                self.chat(what, template, chat, tokenizer, servers, gguf, noted, told)
        except Refused as refused:
            self.wrong(path.name, refused)
        finally:
            for server in servers.values():
                server.close()

    def chat(self, what, template, chat, tokenizer, servers, gguf, noted, told):
        want, ids = by_transformers(tokenizer, chat)
        if has_parts(chat) and not knows_parts(want):
            want, ids = by_transformers(tokenizer, joined(chat))
        got = {}
        for name, server in servers.items():
            try:
                got[name] = server.prompt(chat)
            except Refused as refused:
                got[name] = (None, str(refused))
        if got["folder"] != got["gguf"]:
            return self.wrong(what, f"the folder and the GGUF file differ: {got}")
        text, mine = got["folder"]
        if told and has_tools(chat):
            self.totals["tools listed by Loom, which does not know this family's calls"] += 1
            if text is not None:
                self.by_llama(what, template, chat, servers, gguf, noted, text, mine)
            return None
        if want is None or text is None:
            if want is None and text is None:
                self.totals["refused by both"] += 1
                return None
            theirs = ids if want is None else "a prompt"
            ours = mine if text is None else repr(text[-200:])
            return self.wrong(what, f"transformers: {theirs}, Loom: {ours}")
        if text != want:
            return self.wrong(what, f"Loom and transformers: {first_difference(text, want)}")
        if mine != ids:
            return self.wrong(what, f"ids of Loom and transformers: {first_difference(mine, ids)}")
        self.totals["equal"] += 1
        self.by_llama(what, template, chat, servers, gguf, noted, text, mine)
        return None

    def by_llama(self, what, template, chat, servers, gguf, noted, text, mine):
        if self.llama is not None:
            try:
                theirs = self.llama.ids(gguf, [text.encode()], around=False)[0]
            except LlamaFailure as failure:
                return self.wrong(what, failure)
            if theirs == mine:
                self.totals["llama.cpp: ids equal"] += 1
            elif noted:
                self.totals["llama.cpp: ids differ, noted"] += 1
            else:
                self.wrong(what, f"ids of Loom and llama.cpp: {first_difference(mine, theirs)}")
        if self.llama_chat is not None:
            reply = self.llama_chat.prompt(template, chat)
            if "enable_thinking" in template:  # llama.cpp always says true
                thinks = {**chat, "chat_template_kwargs": {"enable_thinking": True}}
                text = servers["gguf"].prompt(thinks)[0]
            same = reply.get("text") == text
            self.totals[f"llama.cpp: prompt {'equal' if same else 'of its own'}"] += 1
            if not same and self.args.show:
                why = reply.get("error") or first_difference(text, reply["text"])
                print(f"of its own: {what}: {why}", flush=True)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--loom", required=True)
    parser.add_argument("--templates", nargs="+", required=True)
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--llama", default="")
    parser.add_argument("--llama-chat", default="")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    files = sorted(f for t in args.templates for f in pathlib.Path(t).rglob("*.jinja"))
    check = Check(args)
    with tempfile.TemporaryDirectory() as work:
        for number, path in enumerate(files):
            check.template(path, number, pathlib.Path(work))
    for name, count in sorted(check.totals.items()):
        print(f"{count:5} {name}")
    passed, failed = check.totals["equal"] + check.totals["refused by both"], check.totals["wrong"]
    print(f"{len(files)} templates: {passed} passed, {failed} failed, 0 skipped".split(": ")[-1])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
