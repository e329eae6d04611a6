"""Small tokenizers in the shapes of well-known families, trained on the texts of this folder.

`families()` answers {name: tokenizer.json as a dict}. `variants()` answers small changes to one base
tokenizer, whose model marks the last character of every word, so that ids show where the text was split.
"""

import json
import pathlib
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

import texts

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"]


def corpus():
    here = pathlib.Path(__file__).resolve().parent
    return texts.TEXTS * 3 + here.joinpath("texts.py").read_text("utf-8").splitlines()


def byte_level_trainer(size, specials):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def byte_level(pre_tokenizer, normalizer=None, size=520, specials=(), **model):
    tok = Tokenizer(models.BPE(**model))
    tok.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tok.normalizer = normalizer
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(corpus(), byte_level_trainer(size, list(specials)))
    return tok


def split(pattern, behavior="isolated"):
    return pre_tokenizers.Split(Regex(pattern), behavior)


def raw_bytes():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), specials=["<|endoftext|>"])


def roberta():
    tok = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True),
                     specials=["<s>", "<pad>", "</s>", "<unk>"])
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tok


def llama3():
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    tok = byte_level(pre_tokenizers.Sequence([split(LLAMA3), raw_bytes()]), ignore_merges=True)
    tok.add_special_tokens(names)
    bos = tok.token_to_id(names[0])
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{names[0]} $A", pair=f"{names[0]} $A {names[0]} $B:1",
                                      special_tokens=[(names[0], bos)])])
    return tok


def qwen2():
    tok = byte_level(pre_tokenizers.Sequence([split(QWEN2), raw_bytes()]), normalizers.NFC())
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tok.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok


def gpt4o():
    return byte_level(pre_tokenizers.Sequence([split(GPT4O), raw_bytes()]), specials=["<|endoftext|>"])


def deepseek():
    parts = [split(pattern) for pattern in DEEPSEEK] + [raw_bytes()]
    return byte_level(pre_tokenizers.Sequence(parts), specials=["<|begin|>"])


def smollm():
    return byte_level(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        specials=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])


def sentencepiece(pre_tokenizer=None, normalizer=None, bytes_first=True, size=700, **model):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **model))
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    if normalizer is not None:
        tok.normalizer = normalizer
    # Training needs words; the published files have none.
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False, limit_alphabet=180))
    data = json.loads(tok.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["id"] < 3]
    data["pre_tokenizer"] = None
    tok = Tokenizer.from_str(json.dumps(data))
    if pre_tokenizer is not None:
        tok.pre_tokenizer = pre_tokenizer
    return tok


def bos_template(tok, name="<s>"):
    return processors.TemplateProcessing(single=f"{name} $A", pair=f"{name} $A {name}:1 $B:1",
                                         special_tokens=[(name, tok.token_to_id(name))])


def llama2():
    tok = sentencepiece(normalizer=normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    tok.post_processor = bos_template(tok)
    return tok


def gemma():
    tok = sentencepiece(normalizer=normalizers.Replace(" ", "▁"),
                        pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"))
    tok.add_special_tokens(["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"])
    tok.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("▁▁", normalized=False)])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.post_processor = bos_template(tok, "<bos>")
    return tok


def mistral():
    tok = sentencepiece(pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    tok.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    tok.post_processor = bos_template(tok)
    return tok


def clip():
    tok = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "),
                                           normalizers.Lowercase(), normalizers.Strip()])
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation(),
                                                 pre_tokenizers.Digits(False)])
    tok.decoder = decoders.BPEDecoder()
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<unk>", "<mask>"], end_of_word_suffix="</w>",
        limit_alphabet=120, show_progress=False))
    return tok


def pieces():
    tok = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tok.normalizer = normalizers.NFKD()
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=120,
        show_progress=False))
    return tok


def families():
    makers = [gpt2, roberta, llama3, qwen2, gpt4o, deepseek, smollm, llama2, gemma, mistral, clip, pieces]
    return {maker.__name__: json.loads(maker().to_str()) for maker in makers}


def base():
    """A tokenizer without merges; a character that ends a word has an id of its own."""
    letters = "".join(texts.SPLIT_TEXTS)
    forms = "".join(unicodedata.normalize(form, letters) for form in ("NFC", "NFD", "NFKC", "NFKD"))
    mapped = [0x100 + i for i in range(0x44)]
    characters = sorted(set(forms + forms.lower() + "▁_xyz|") | set(map(chr, mapped)))
    vocab = {"<unk>": 0}
    for c in characters:
        vocab[c] = len(vocab)
        vocab[c + "</w>"] = len(vocab)
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": None, "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": "</w>", "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": False, "vocab": vocab, "merges": []},
    }


def regex_split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def metaspace(scheme, split_=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split_}


def sequence(kind, *parts):
    return {"type": "Sequence", kind: list(parts)}


def added(content, special=False, **flags):
    token = {"content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": special}
    token.update(flags)
    return token


REGEXES = [
    r"\s+", r"\S+", r"\w+", r"\W+", r"\d+", r"\D", r"[\s\d]+", r"[^\s\w]+", r"\h+", r"\p{Han}+", r"\p{Lu}\p{Ll}*",
    r"\p{N}{1,3}+", r"\p{N}{2}?", r"\p{N}{,2}", r"\p{N}{2,}?", r"^.", r".$", r"\bo", r"\B[a-z]", r"(?<=a).",
    r"(?<!\s)[A-Z]", r"x*", r"", r"(?i)THE|dog", r"(?i:HELLO|É|ω)", r"(?m:e.)", r"(?>a+|b)c?", r"a{2,3}",
    r"[\u0041-\u0046\x61-\x66]", r"\p{Punctuation}", r"\p{^L}+", r"\P{L}", r"\R", r"[a-c]++", r"(?:ab|a)+?b",
    r"\x{1F642}+", r"\.|\,|\-|\{|\}", r"\v|\t|\n", r"\A.|.\z", r"[-.,]+", r"\p{Cyrillic}+|\p{Greek}+", r"{|}",
]


def variants():
    """(name, changes to the base) pairs."""
    out = []
    for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for invert in [False, True]:
            out.append((f"split {behavior} {invert}", {"pre_tokenizer": regex_split(r"\s|e", behavior, invert)}))
        out.append((f"literal split {behavior}", {"pre_tokenizer": {
            "type": "Split", "pattern": {"String": "  "}, "behavior": behavior, "invert": False}}))
        out.append((f"punctuation {behavior}", {"pre_tokenizer": {"type": "Punctuation", "behavior": behavior}}))
    for pattern in REGEXES:
        out.append((f"regex {pattern}", {"pre_tokenizer": regex_split(pattern)}))
    out.append(("empty literal", {"pre_tokenizer": {
        "type": "Split", "pattern": {"String": ""}, "behavior": "MergedWithNext", "invert": False}}))
    for individual in [False, True]:
        out.append((f"digits {individual}", {"pre_tokenizer": {"type": "Digits", "individual_digits": individual}}))
    out.append(("whitespace", {"pre_tokenizer": {"type": "Whitespace"}}))
    out.append(("whitespace split", {"pre_tokenizer": {"type": "WhitespaceSplit"}}))
    for form in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"]:
        out.append((form, {"normalizer": {"type": form}}))
    for left in [False, True]:
        for right in [False, True]:
            strip = {"type": "Strip", "strip_left": left, "strip_right": right}
            out.append((f"strip {left} {right}", {"normalizer": strip}))
            out.append((f"strip {left} {right}, metaspace first",
                        {"normalizer": strip, "pre_tokenizer": metaspace("first")}))
    for scheme in ["always", "first", "never"]:
        for whole in [False, True]:
            out.append((f"metaspace {scheme} {whole}", {
                "pre_tokenizer": metaspace(scheme, whole),
                "added_tokens": [added("<s>", True), added("x"), added("user", lstrip=True, rstrip=True)]}))
    replace_e = {"type": "Replace", "pattern": {"Regex": "^[a-z]+"}, "content": "_"}
    out.append(("replace at the start, metaspace first",
                {"normalizer": replace_e, "pre_tokenizer": metaspace("first")}))
    out.append(("replace by nothing, metaspace first",
                {"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": ""},
                 "pre_tokenizer": metaspace("first")}))
    out.append(("prepend, split, metaspace first", {
        "normalizer": {"type": "Prepend", "prepend": "xy"},
        "pre_tokenizer": sequence("pretokenizers", regex_split("y|[A-Z]"), metaspace("first"))}))
    out.append(("replace between all", {
        "normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "|"}}))
    out.append(("three normalizers", {"normalizer": sequence(
        "normalizers", {"type": "NFD"}, {"type": "Replace", "pattern": {"Regex": r"\p{Mn}"}, "content": ""},
        {"type": "Lowercase"})}))
    out.append(("two byte levels", {"pre_tokenizer": sequence(
        "pretokenizers", {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False})}))
    out += token_variants()
    return out


def token_variants():
    overlapping = [added("<s>", True), added("<s"), added("s>h"), added("<|im_start|>", True),
                   added("<|im_start|>user"), added("end"), added("endo"), added("of"), added("oft")]
    flags = [added("text", lstrip=True, rstrip=True), added("<mask>", True, lstrip=True), added(" "),
             added("a", single_word=True), added("x", single_word=True, rstrip=True), added("\n", rstrip=True)]
    normalized = [added("the", normalized=True), added("Straße", normalized=True), added("É", normalized=True),
                  added("QUICK", normalized=True, lstrip=True), added("<s>", True, normalized=True), added("Hi")]
    lower = sequence("normalizers", {"type": "NFC"}, {"type": "Lowercase"})
    return [
        ("overlapping tokens", {"added_tokens": overlapping}),
        ("tokens that strip", {"added_tokens": flags}),
        ("normalized tokens", {"added_tokens": normalized, "normalizer": lower}),
        ("normalized tokens behind a prefix", {
            "added_tokens": normalized, "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "_"})}),
    ]


def apply_changes(data, changes):
    """The base with some members replaced; added tokens get the next free ids, as HF would give them."""
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
