"""One base tokenizer and small changes to it, each of which tests one step of a pipeline.

The model of the base marks the last character of every word, so that ids show the splits of the
text.
"""

import unicodedata

import texts


def base():
    """A tokenizer without merges; a character that ends a word has a separate id."""
    letters = "".join(texts.SPLIT_TEXTS)
    forms = "".join(unicodedata.normalize(form, letters) for form in ("NFC", "NFD", "NFKC", "NFKD"))
    mapped = [0x100 + i for i in range(0x44)]
    characters = sorted(set(forms + forms.lower() + "▁_xyz|") | set(map(chr, mapped)))
    vocab = {"<unk>": 0}
    for c in characters:
        vocab[c] = len(vocab)
        vocab[c + "</w>"] = len(vocab)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": "</w>",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [],
        },
    }


def regex_split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def metaspace(scheme, split_=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split_}


def sequence(kind, *parts):
    return {"type": "Sequence", kind: list(parts)}


def added(content, special=False, **flags):
    token = {
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }
    token.update(flags)
    return token


FIRST = {"pre_tokenizer": metaspace("first")}

REGEXES = [
    r"\s+",
    r"\S+",
    r"\w+",
    r"\W+",
    r"\d+",
    r"\D",
    r"[\s\d]+",
    r"[^\s\w]+",
    r"\h+",
    r"\p{Han}+",
    r"\p{Lu}\p{Ll}*",
    r"\p{N}{1,3}+",
    r"\p{N}{2}?",
    r"\p{N}{,2}",
    r"\p{N}{2,}?",
    r"^.",
    r".$",
    r"\bo",
    r"\B[a-z]",
    r"(?<=a).",
    r"(?<!\s)[A-Z]",
    r"x*",
    r"",
    r"(?i)THE|dog",
    r"(?i:HELLO|É|ω)",
    r"(?m:e.)",
    r"(?>a+|b)c?",
    r"a{2,3}",
    r"[\u0041-\u0046\x61-\x66]",
    r"\p{Punctuation}",
    r"\p{^L}+",
    r"\P{L}",
    r"\R",
    r"[a-c]++",
    r"(?:ab|a)+?b",
    r"\x{1F642}+",
    r"\.|\,|\-|\{|\}",
    r"\v|\t|\n",
    r"\A.|.\z",
    r"[-.,]+",
    r"\p{Cyrillic}+|\p{Greek}+",
    r"{|}",
]


def step(kind, **arguments):
    return {"type": kind, **arguments}


def pre(*parts):
    return {"pre_tokenizer": parts[0] if len(parts) == 1 else sequence("pretokenizers", *parts)}


def norm(*parts):
    return {"normalizer": parts[0] if len(parts) == 1 else sequence("normalizers", *parts)}


def literal_split(text, behavior):
    return step("Split", pattern={"String": text}, behavior=behavior, invert=False)


def replace(pattern, content):
    return step("Replace", pattern=pattern, content=content)


def byte_level(prefix, regex):
    return step("ByteLevel", add_prefix_space=prefix, trim_offsets=True, use_regex=regex)


def split_variants():
    out = []
    for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for invert in [False, True]:
            out.append((f"split {behavior} {invert}", pre(regex_split(r"\s|e", behavior, invert))))
        out.append((f"literal split {behavior}", pre(literal_split("  ", behavior))))
        out.append((f"punctuation {behavior}", pre(step("Punctuation", behavior=behavior))))
    for pattern in REGEXES:
        out.append((f"regex {pattern}", pre(regex_split(pattern))))
    out.append(("empty literal", pre(literal_split("", "MergedWithNext"))))
    for individual in [False, True]:
        out.append((f"digits {individual}", pre(step("Digits", individual_digits=individual))))
    out.append(("whitespace", pre(step("Whitespace"))))
    out.append(("whitespace split", pre(step("WhitespaceSplit"))))
    out.append(("two byte levels", pre(byte_level(True, True), byte_level(True, False))))
    return out


def normalizer_variants():
    out = [(form, norm(step(form))) for form in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"]]
    for left in [False, True]:
        for right in [False, True]:
            strip = norm(step("Strip", strip_left=left, strip_right=right))
            out.append((f"strip {left} {right}", strip))
            out.append((f"strip {left} {right}, metaspace first", {**strip, **FIRST}))
    marks = replace({"Regex": r"\p{Mn}"}, "")
    prefix = step("Prepend", prepend="xy")
    return out + [
        ("replace at the start", {**norm(replace({"Regex": "^[a-z]+"}, "_")), **FIRST}),
        ("replace by nothing", {**norm(replace({"String": "a"}, "")), **FIRST}),
        ("prepend and split", {**norm(prefix), **pre(regex_split("y|[A-Z]"), metaspace("first"))}),
        ("replace between all", norm(replace({"Regex": ""}, "|"))),
        ("three normalizers", norm(step("NFD"), marks, step("Lowercase"))),
    ]


def metaspace_variants():
    tokens = [added("<s>", True), added("x"), added("user", lstrip=True, rstrip=True)]
    return [
        (f"metaspace {scheme} {whole}", {**pre(metaspace(scheme, whole)), "added_tokens": tokens})
        for scheme in ["always", "first", "never"]
        for whole in [False, True]
    ]


def variants():
    """(name, changes to the base) pairs."""
    return split_variants() + normalizer_variants() + metaspace_variants() + token_variants()


def token_variants():
    overlapping = [
        added("<s>", True),
        added("<s"),
        added("s>h"),
        added("<|im_start|>", True),
        added("<|im_start|>user"),
        added("end"),
        added("endo"),
        added("of"),
        added("oft"),
    ]
    flags = [
        added("text", lstrip=True, rstrip=True),
        added("<mask>", True, lstrip=True),
        added(" "),
        added("a", single_word=True),
        added("x", single_word=True, rstrip=True),
        added("\n", rstrip=True),
    ]
    normalized = [
        added("the", normalized=True),
        added("Straße", normalized=True),
        added("É", normalized=True),
        added("QUICK", normalized=True, lstrip=True),
        added("<s>", True, normalized=True),
        added("Hi"),
    ]
    lower = sequence("normalizers", {"type": "NFC"}, {"type": "Lowercase"})
    return [
        ("overlapping tokens", {"added_tokens": overlapping}),
        ("tokens that strip", {"added_tokens": flags}),
        ("normalized tokens", {"added_tokens": normalized, "normalizer": lower}),
        (
            "normalized tokens after a prefix",
            {
                "added_tokens": normalized,
                "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "_"}),
            },
        ),
    ]


def apply_changes(data, changes):
    """The base with some members replaced; added tokens get the ids that HF would give them."""
    data = dict(data, **{key: value for key, value in changes.items() if key != "added_tokens"})
    vocab = data["model"]["vocab"]
    following = len(vocab)
    tokens = []
    for token in changes.get("added_tokens", []):
        known = vocab.get(token["content"])
        tokens.append(dict(token, id=following if known is None else known))
        following += known is None
    data["added_tokens"] = tokens
    return data
