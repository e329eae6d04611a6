#!/usr/bin/env python3
"""Conversations as JSON from every language: each prompt is that of `transformers`.

Random conversations have tools, several calls with nested arguments, null content, parts, results,
reasoning, Unicode, template variables, and last messages to continue. Each goes with each chat
template through `transformers`, the Python package, `loom serve`, and the programs of
tests/tongues/messages that messages_check.sh has built.

  messages_check.py --loom PROGRAM --templates FOLDER... [--chats 20] [--seed 1]
                    [--runner LANGUAGE=COMMAND ...]

Needs transformers, tokenizers, numpy and safetensors, and the Python package of Loom on the path.
A conversation that transformers refuses must be refused. The last line counts.
"""

import argparse
import collections
import copy
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import loom
import transformers

import chats_check
from chats_check import RandomChat, Refused, Server, first_difference, has_parts, has_tools

LOSES_CALLS = "reads no calls"


class RandomMessages(RandomChat):
    """As programs send them: also without content, with arguments as text, with more members."""

    def exchange(self):
        turns = super().exchange()
        for turn in turns:
            if self.random.random() < 0.1:
                turn["name"] = self.random.choice(["Zoë", "bot_1"])
            if self.random.random() < 0.1:
                turn["annotations"] = self.value()
            if turn.get("content") is None and self.random.random() < 0.5:
                turn.pop("content", None)
        return turns

    def chat(self):
        out = super().chat()
        last = out["messages"][-1]
        text = isinstance(last.get("content"), str) and last["content"].strip()
        if last["role"] == "assistant" and text and self.random.random() < 0.5:
            out["continue_final_message"] = True
        if self.random.random() < 0.3:
            out["variables"] = {
                "enable_thinking": self.random.random() < 0.5,
                "custom": self.value(),
            }
        return out


def as_text(chat, draw):
    """The messages with some arguments as the text of JSON, as OpenAI's clients have them."""
    messages = copy.deepcopy(chat["messages"])
    for message in messages:
        for call in message.get("tool_calls") or []:
            if draw.random() < 0.5:
                arguments = call["function"]["arguments"]
                call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)
    return messages


def compact(value):
    return "" if value is None else json.dumps(value, ensure_ascii=False)


class Runner:
    """A program that renders a conversation per line."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            encoding="utf-8",
        )  # fmt: skip

    def prompt(self, model, messages, chat):
        flags = "" if chat["add_generation_prompt"] else "n"
        flags += "c" if chat.get("continue_final_message") else ""
        fields = [model, flags, compact(messages), compact(chat.get("tools"))]
        fields.append(compact(chat.get("variables")))
        self.process.stdin.write("\t".join(fields) + "\n")
        self.process.stdin.flush()
        kind, _, rest = self.process.stdout.readline().rstrip("\n").partition(" ")
        if kind == "ok":
            return bytes.fromhex(rest).decode(), None
        return None, rest or "the program ended"

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


class Package:
    """The Python package."""

    def __init__(self):
        self.path, self.model = None, None

    def prompt(self, model, messages, chat):
        if model != self.path:
            self.close()
            self.path, self.model = model, loom.LLM(model)
        try:
            text = self.model.render_chat(
                messages,
                tools=chat.get("tools"),
                variables=chat.get("variables"),
                reply=chat["add_generation_prompt"],
                continue_final_message=chat.get("continue_final_message", False),
            )
            return text, None
        except Exception as error:
            return None, str(error)

    def close(self):
        if self.model is not None:
            self.model.close()


def by_transformers(tokenizer, template, chat):
    try:
        text = tokenizer.apply_chat_template(
            chat["messages"],
            chat_template=template,
            tools=chat.get("tools"),
            add_generation_prompt=chat["add_generation_prompt"],
            continue_final_message=chat.get("continue_final_message", False),
            tokenize=False,
            **chat.get("variables", {}),
        )
        return text, None
    except Exception as error:  # any error of the template or jinja2
        return None, f"{type(error).__name__}: {error}"


def by_server(server, messages, chat):
    body = {"messages": messages, "add_generation_prompt": chat["add_generation_prompt"]}
    for key, name in (("tools", "tools"), ("variables", "chat_template_kwargs")):
        if key in chat:
            body[name] = chat[key]
    body["continue_final_message"] = chat.get("continue_final_message", False)
    try:
        return server.ask("/apply-template", body)["prompt"], None
    except Refused as refused:
        return None, str(refused)


class Check:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.totals, self.equal = collections.Counter(), collections.Counter()
        self.runners = {"python": Package()}
        for one in args.runner:
            language, _, command = one.partition("=")
            self.runners[language] = Runner(command)
        self.base = work / "base"
        self.base.mkdir()
        chats_check.write_model(self.base, "<|im_start|>", 0)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.base)

    def wrong(self, what, why):
        self.totals["wrong"] += 1
        print(f"WRONG {what}: {why}", flush=True)

    def template(self, path):
        template = path.read_text(encoding="utf-8")
        folder, model = self.work / "model", self.work / f"{path.stem}.entity"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.base, folder)
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        command = [self.args.loom, "convert", str(folder), str(model), "--force"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return self.wrong(path.name, done.stderr.strip())
        server = Server(self.args.loom, model)
        try:
            told = chats_check.tells_tools(server)
            for number in range(self.args.chats):
                made = RandomMessages(f"{self.args.seed} {path.name} {number}")
                chat = made.chat()
                self.chat(f"{path.name}, chat {number}", template, str(model), chat, made.random)
                if not (told and has_tools(chat)) and not has_parts(chat):
                    self.by_server(f"{path.name}, chat {number}", template, server, chat)
        finally:
            server.close()
        os.remove(model)
        return None

    def chat(self, what, template, model, chat, draw):
        want, why = by_transformers(self.tokenizer, template, chat)
        messages = as_text(chat, draw)
        for language, runner in self.runners.items():
            got, error = runner.prompt(model, messages, chat)
            self.compare(f"{what}, {language}", language, (want, why), (got, error))

    def by_server(self, what, template, server, chat):
        want = by_transformers(self.tokenizer, template, chat)
        got = by_server(server, chats_check.as_api(chat)["messages"], chat)
        self.compare(f"{what}, server", "server", want, got)

    def compare(self, what, language, wanted, found):
        (want, why), (got, error) = wanted, found
        if got is None and error is not None and LOSES_CALLS in error:
            self.totals["refused: the template would lose calls"] += 1
        elif want is None and got is None:
            self.totals["refused by both"] += 1
        elif want is None or got is None:
            self.wrong(what, f"transformers: {why or 'a prompt'}; Loom: {error or 'a prompt'}")
        elif want != got:
            self.wrong(what, f"Loom and transformers: {first_difference(got, want)}")
        else:
            self.totals["equal"] += 1
            self.equal[language] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--loom", required=True)
    parser.add_argument("--templates", nargs="+", required=True)
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runner", action="append", default=[])
    args = parser.parse_args()
    files = sorted(f for t in args.templates for f in pathlib.Path(t).rglob("*.jinja"))
    with tempfile.TemporaryDirectory() as work:
        check = Check(args, pathlib.Path(work))
        for path in files:
            check.template(path)
        for runner in check.runners.values():
            runner.close()
    for name, count in sorted(check.totals.items()):
        print(f"{count:6} {name}")
    each = ", ".join(f"{language} {count}" for language, count in sorted(check.equal.items()))
    print(f"{len(files)} templates, equal: {each}")
    passed = sum(check.totals.values()) - check.totals["wrong"]
    print(f"{passed} passed, {check.totals['wrong']} failed, 0 skipped")
    return 1 if check.totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
