"""Has other programs judge the grammars of the engine; grammar_check.sh starts it.

  grammar_check.py RUNNER SUITE_FOLDER CASES
"""

import itertools
import json
import random
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import jsonschema
import llguidance


class Runner:
    """tests/outside/grammar_runner.cpp, a line at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def vocabulary(rng):
    """Bytes and random pieces of JSON; the last token ends the text."""
    tokens = [bytes([b]) for b in range(256)]
    pieces = ['{"', '"}', '":', '",', '": ', ', "', "true", "null", "false", "tr", "[[", "]]", "12",
              "-1", "0.", "e+", "\\n", "\\u00", "é", "日本", "{}", "[]", '""', "ab", "name", "kind"]
    tokens += [p.encode() for p in pieces]
    letters = '{}[]",:0123456789abct rue\\'
    while len(tokens) < 420:
        piece = "".join(rng.choice(letters) for _ in range(rng.randint(2, 5))).encode()
        if piece not in tokens:
            tokens.append(piece)
    return tokens + [b"<end>"]


# ---- random schemas -----------------------------------------------------------------------------


def random_string(rng, simple):
    schema = {"type": "string"}
    kind = rng.randint(0, 2 if simple else 5)
    if kind == 1:
        schema["minLength"] = rng.randint(0, 3)
        schema["maxLength"] = schema["minLength"] + rng.randint(0, 4)
    if kind == 3:
        schema["pattern"] = rng.choice(["^[a-c]{1,4}$", "^\\d+-x?$", "ab", "^(a|bc)*$", "^.{2}$"])
    if kind == 4:
        schema["format"] = rng.choice(["date", "time", "date-time", "uuid", "ipv4", "email"])
    return schema


def random_number(rng):
    schema = {"type": rng.choice(["integer", "number"])}
    if rng.random() < 0.6:
        schema["minimum"] = rng.choice([rng.randint(-300, 300), round(rng.uniform(-9, 9), 2)])
    if rng.random() < 0.6:
        low = schema.get("minimum", 0)
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = low + rng.randint(2, 500)
    return schema


def random_schema(rng, depth, simple):
    kinds = ["string", "enum", "flag"] + ([] if simple else ["number"])
    kinds += ["object", "array", "any"] * (depth > 0)
    kind = rng.choice(kinds)
    if kind == "string":
        return random_string(rng, simple)
    if kind == "number":
        return random_number(rng)
    if kind == "enum":
        return {"enum": rng.sample(["a", "b c", 'q"', "é", 1, 17, True, None], rng.randint(1, 4))}
    if kind == "flag":
        return {"type": rng.choice(["boolean", "null"])}
    if kind == "any":
        return {"anyOf": [random_schema(rng, depth - 1, simple) for _ in range(rng.randint(1, 3))]}
    if kind == "array":
        schema = {"type": "array", "items": random_schema(rng, depth - 1, simple)}
        if rng.random() < 0.6:
            schema["minItems"] = rng.randint(0, 2)
            schema["maxItems"] = schema["minItems"] + rng.randint(0, 3)
        return schema
    names = rng.sample(["name", "kind", "a", "ab", "é", "n\n"], rng.randint(1, 4))
    schema = {"type": "object", "additionalProperties": not simple and rng.random() < 0.3,
              "properties": {n: random_schema(rng, depth - 1, simple) for n in names},
              "required": [n for n in names if rng.random() < 0.6]}
    return schema


def check_walks(runner, tokens, cases, rng):
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    ended = cut = refused = 0
    for case in range(cases):
        schema = random_schema(rng, 3, False)
        reply = runner.ask(schema=schema)
        if "error" in reply:
            assert "no text fits" in reply["error"], (schema, reply)
            refused += 1
            continue
        validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
        for walk in range(6):
            reply = runner.ask(walk=case * 10 + walk, steps=600)
            assert "error" not in reply, (schema, reply)
            if not reply["ended"]:
                cut += 1
                continue
            text = b"".join(tokens[i] for i in reply["ids"]).decode()
            errors = list(validator.iter_errors(json.loads(text)))
            assert not errors, (schema, text, errors[0].message)
            ended += 1
    assert ended > cases, "most walks end"
    print(f"random schemas: {cases}, {refused} without any text; {ended} texts valid by "
          f"jsonschema, {cut} walks without an end")


# ---- llguidance ---------------------------------------------------------------------------------


class Tokens:
    """The interface that llguidance needs of a tokenizer."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.eos_token_id = len(tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text):
        data = text.encode() if isinstance(text, str) else text
        return list(data)


def ids_of(bitmask, count):
    return {i for i in range(count) if bitmask[i // 8] >> (i % 8) & 1}


def check_masks(runner, tokens, cases, rng):
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens(tokens)))
    compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
    masks = parts = missing = 0
    for case in range(cases):
        schema = random_schema(rng, 2, True)
        if "error" in runner.ask(schema=schema, spaces=False):
            continue
        grammar = llguidance.LLMatcher.grammar_from_json_schema(
            json.dumps(dict(schema, **{"x-guidance": compact})))
        other = llguidance.LLMatcher(tokenizer, grammar)
        assert not other.is_error(), (schema, other.get_error())
        walk = runner.ask(walk=case, steps=60)
        other_text = []
        for token, mask in zip(walk["ids"], walk["masks"]):
            theirs = ids_of(other.compute_bitmask(), len(tokens) - 1)
            # It leaves out U+007F, \/ and most of \u0000. If a text is certain, it leaves out all
            # ways to spell it but one. So bytes are compared, and longer tokens only one way.
            ours = {i for i in mask if i != 0x7F}
            bytes_ours, bytes_theirs = ({i for i in m if i < 256} for m in (ours, theirs))
            before = b"".join(tokens[i] for i in walk["ids"][:len(other_text)])
            if before.endswith(b"\\"):
                bytes_ours -= {ord("/")} - bytes_theirs
            inside = re.search(rb"\\u[0-9a-fA-F]{0,3}$", before)
            assert inside or bytes_ours == bytes_theirs, (schema, before, bytes_ours ^ bytes_theirs)
            masks += 1
            parts += len({i for i in theirs if i >= 256})
            missing += len({i for i in theirs - ours if i >= 256})
            if token not in theirs:
                break
            other.consume_token(token)
            other_text.append(token)
    print(f"llguidance: {masks} masks with the same bytes; of {parts} longer tokens that it allows "
          f"{parts - missing} are allowed")
    assert missing == 0


# ---- JSON-Schema-Test-Suite ---------------------------------------------------------------------


def in_order(schema, value):
    """Members in the order of `properties`, as the engine writes them."""
    if isinstance(value, list):
        return [in_order({}, v) for v in value]
    if not isinstance(value, dict):
        return value
    names = list(schema.get("properties", {})) if isinstance(schema, dict) else []
    first = {n: in_order({}, value[n]) for n in names if n in value}
    return {**first, **{n: in_order({}, v) for n, v in value.items() if n not in first}}


def check_suite(runner, folder):
    archives = sorted(Path(folder).glob("*.tar.gz"))
    if not archives:
        print("skipped: the JSON-Schema-Test-Suite is not there")
        return
    held = refused = valid = allowed = invalid = wrong = 0
    with tarfile.open(archives[0]) as archive:
        names = [m for m in archive.getnames()
                 if "/json/tests/draft2020-12/" in m and m.endswith(".json")
                 and "/optional/" not in m]
        for name in names:
            for group in json.load(archive.extractfile(name)):
                reply = runner.ask(schema=group["schema"], spaces=False)
                if "error" in reply and "no text fits" not in reply["error"]:
                    refused += 1
                    continue
                held += 1
                texts = [json.dumps(in_order(group["schema"], t["data"]), ensure_ascii=False,
                                    separators=(",", ":")) for t in group["tests"]]
                if "error" in reply:
                    fits = [False] * len(texts)
                else:
                    fits = runner.ask(fits=[t.encode("utf-8", "replace").hex() for t in texts])
                    fits = fits["fits"]
                for test, fit in zip(group["tests"], fits):
                    valid += test["valid"]
                    allowed += test["valid"] and fit
                    invalid += not test["valid"]
                    if fit and not test["valid"]:
                        wrong += 1
                        print("  allowed and not valid:", Path(name).stem, group["description"],
                              test["description"])
    print(f"JSON-Schema-Test-Suite: {held} schemas held to, {refused} refused; of {valid} valid "
          f"texts {allowed} allowed, of {invalid} others {wrong}")
    assert wrong == 0


# ---- GBNF beside an Earley recogniser -----------------------------------------------------------


def earley(rules, root, text):
    """Rules: name -> list of alternatives, each a list of characters and (rule,)."""
    chart = [set() for _ in range(len(text) + 1)]
    start = [(root, alt, 0, 0) for alt in range(len(rules[root]))]
    chart[0].update(start)
    for at in range(len(text) + 1):
        todo = list(chart[at])
        done = set()
        while todo:
            item = todo.pop()
            name, alt, dot, origin = item
            body = rules[name][alt]
            new = []
            if dot < len(body):
                part = body[dot]
                if isinstance(part, tuple):
                    new += [(part[0], i, 0, at) for i in range(len(rules[part[0]]))]
                    if (part[0], at) in done:
                        new.append((name, alt, dot + 1, origin))
                elif at < len(text) and text[at] == part:
                    chart[at + 1].add((name, alt, dot + 1, origin))
            else:
                if origin == at:
                    done.add((name, at))
                for n, a, d, o in list(chart[origin]):
                    other = rules[n][a]
                    if d < len(other) and other[d] == (name,):
                        new.append((n, a, d + 1, o))
            for one in new:
                if one not in chart[at]:
                    chart[at].add(one)
                    todo.append(one)
    return any(n == root and o == 0 and d == len(rules[n][a]) for n, a, d, o in chart[len(text)])


def check_gbnf(runner, cases, rng):
    texts = ["".join(t) for n in range(7) for t in itertools.product("ab", repeat=n)]
    used = 0
    for _ in range(cases):
        names = ["root", "x", "y"]
        parts = ["a", "b", ("x",), ("y",), ("root",)]
        rules = {n: [[rng.choice(parts[:2] if i == 0 and rng.random() < 0.8 else parts)
                      for i in range(rng.choice([0, 1, 1, 2, 3]))]
                     for _ in range(rng.randint(1, 3))] for n in names}
        lines = [n + " ::= " + " | ".join(
            " ".join(p[0] if isinstance(p, tuple) else f'"{p}"' for p in alt) or '""'
            for alt in rules[n]) for n in names]
        reply = runner.ask(gbnf="\n".join(lines))
        if "error" in reply:
            known = ["begins with itself", "no text fits"]
            assert any(k in reply["error"] for k in known), reply
            if "no text" in reply["error"]:
                assert not any(earley(rules, "root", t) for t in texts), lines
            continue
        used += 1
        fits = runner.ask(fits=[t.encode().hex() for t in texts])["fits"]
        for text, fit in zip(texts, fits):
            assert fit == earley(rules, "root", text), (lines, text, fit)
    print(f"GBNF: {used} random grammars, {len(texts)} texts each as an Earley recogniser has them")
    assert used > cases // 10


def main():
    program, suite, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rng = random.Random(1)
    runner = Runner(program)
    tokens = vocabulary(rng)
    runner.ask(vocabulary=[t.hex() for t in tokens[:-1]] + [""])
    check_gbnf(runner, cases, rng)
    check_walks(runner, tokens, cases, rng)
    check_suite(runner, suite)
    check_masks(runner, tokens, cases, rng)


if __name__ == "__main__":
    main()
