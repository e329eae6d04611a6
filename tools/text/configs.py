"""Small tokenizers in the shapes of well-known families, trained on the texts of this folder.

`families()` answers {name: tokenizer.json as a dict}.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

import texts

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"]


def corpus():
    here = pathlib.Path(__file__).resolve().parent
    return texts.TEXTS * 3 + here.joinpath("texts.py").read_text("utf-8").splitlines()


def byte_level_trainer(size, specials):
    return trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=specials,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )


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
    tok = byte_level(
        pre_tokenizers.ByteLevel(add_prefix_space=True), specials=["<s>", "<pad>", "</s>", "<unk>"]
    )
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tok


def llama3():
    names = [
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
    ]
    tok = byte_level(pre_tokenizers.Sequence([split(LLAMA3), raw_bytes()]), ignore_merges=True)
    tok.add_special_tokens(names)
    bos = tok.token_to_id(names[0])
    tok.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{names[0]} $A",
                pair=f"{names[0]} $A {names[0]} $B:1",
                special_tokens=[(names[0], bos)],
            ),
        ]
    )
    return tok


def qwen2():
    tok = byte_level(pre_tokenizers.Sequence([split(QWEN2), raw_bytes()]), normalizers.NFC())
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tok.add_tokens(
        [AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)]
    )
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok


def gpt4o():
    return byte_level(
        pre_tokenizers.Sequence([split(GPT4O), raw_bytes()]), specials=["<|endoftext|>"]
    )


def deepseek():
    parts = [split(pattern) for pattern in DEEPSEEK] + [raw_bytes()]
    return byte_level(pre_tokenizers.Sequence(parts), specials=["<|begin|>"])


def smollm():
    return byte_level(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        ),
        specials=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    )


def sentencepiece(pre_tokenizer=None, normalizer=None, bytes_first=True, size=700, **model):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **model))
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    if normalizer is not None:
        tok.normalizer = normalizer
    # Training needs words; the published files have none.
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=specials, show_progress=False, limit_alphabet=180
        ),
    )
    data = json.loads(tok.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["id"] < 3]
    data["pre_tokenizer"] = None
    tok = Tokenizer.from_str(json.dumps(data))
    if pre_tokenizer is not None:
        tok.pre_tokenizer = pre_tokenizer
    return tok


def bos_template(tok, name="<s>"):
    return processors.TemplateProcessing(
        single=f"{name} $A",
        pair=f"{name} $A {name}:1 $B:1",
        special_tokens=[(name, tok.token_to_id(name))],
    )


def llama2():
    tok = sentencepiece(
        normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    )
    tok.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tok.post_processor = bos_template(tok)
    return tok


def gemma():
    tok = sentencepiece(
        normalizer=normalizers.Replace(" ", "▁"),
        pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"),
    )
    tok.add_special_tokens(["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"])
    tok.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("▁▁", normalized=False)])
    tok.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tok.post_processor = bos_template(tok, "<bos>")
    return tok


def mistral():
    tok = sentencepiece(pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    tok.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]
    )
    tok.post_processor = bos_template(tok)
    return tok


def clip():
    tok = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tok.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Lowercase(),
            normalizers.Strip(),
        ]
    )
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(False)]
    )
    tok.decoder = decoders.BPEDecoder()
    tok.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=["<unk>", "<mask>"],
            end_of_word_suffix="</w>",
            limit_alphabet=120,
            show_progress=False,
        ),
    )
    return tok


def pieces():
    tok = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tok.normalizer = normalizers.NFKD()
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    tok.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=["<unk>"],
            continuing_subword_prefix="##",
            limit_alphabet=120,
            show_progress=False,
        ),
    )
    return tok


def families():
    makers = [
        gpt2,
        roberta,
        llama3,
        qwen2,
        gpt4o,
        deepseek,
        smollm,
        llama2,
        gemma,
        mistral,
        clip,
        pieces,
    ]
    return {maker.__name__: json.loads(maker().to_str()) for maker in makers}
