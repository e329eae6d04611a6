#!/usr/bin/env python3
"""Make the model in tests/data/stories: text, tokenizer, training, Hugging Face files.

The text comes from generate_text.py (no download, no file to keep). A byte-level BPE tokenizer of
1024 tokens is trained on part of it. A small Llama is then trained on all of it, in plain PyTorch.
It has RMSNorm, rotary positions, grouped-query attention, SwiGLU and tied embeddings. Everything is
seeded. The text is the same every time, and the weights are the same up to the rounding of the
GPU's sums.

Needs: torch, tokenizers, safetensors, numpy.  A GPU makes it a matter of minutes.
"""

import argparse
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from generate_text import documents

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_OUT = os.path.normpath(os.path.join(HERE, "..", "..", "tests", "data", "stories"))

EOT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
EOT_ID, IM_END_ID = 0, 2

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": EOT_ID,
    "dtype": "bfloat16",
    "eos_token_id": EOT_ID,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 192,
    "initializer_range": 0.02,
    "intermediate_size": 512,
    "max_position_embeddings": 512,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 3,
    "num_hidden_layers": 4,
    "num_key_value_heads": 1,
    "pad_token_id": EOT_ID,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "tie_word_embeddings": True,
    "use_cache": True,
    "vocab_size": 1024,
}

CHAT_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


# -- tokenizer ---------------------------------------------------------------

def train_tokenizer(texts):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"], special_tokens=[EOT, IM_START, IM_END],
        # All 256 bytes are in the alphabet, so that any input can be encoded.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tok.train_from_iterator(texts, trainer)
    return tok


# -- model: the module names are those of the Hugging Face checkpoint --------

class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


def rotate(x, cos, sin):
    """Rotary positions, the half-split pairing: element i turns with i + dim/2."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.q_proj = nn.Linear(c["hidden_size"], self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], self.kv * self.dim, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], self.kv * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, c["hidden_size"], bias=False)

    def forward(self, x, cos, sin):
        n, t, _ = x.shape
        q = self.q_proj(x).view(n, t, self.heads, self.dim).transpose(1, 2)
        k = self.k_proj(x).view(n, t, self.kv, self.dim).transpose(1, 2)
        v = self.v_proj(x).view(n, t, self.kv, self.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        group = self.heads // self.kv
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(n, t, -1))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = MLP(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = Body(c)
        half = c["head_dim"] // 2
        freq = c["rope_parameters"]["rope_theta"] ** (-torch.arange(half).float() / half)
        angle = torch.arange(c["max_position_embeddings"]).float()[:, None] * freq
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                # Projections into the residual stream start smaller (GPT-2's rule).
                scale = (2 * c["num_hidden_layers"]) ** -0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                nn.init.normal_(p, std=c["initializer_range"] * scale)

    def forward(self, ids, targets):
        t = ids.shape[1]
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, self.cos[:t], self.sin[:t])
        logits = F.linear(self.model.norm(x), self.model.embed_tokens.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


# -- data --------------------------------------------------------------------

class Data:
    """The documents as one run of tokens, each after an <|endoftext|>."""

    def __init__(self, tok, docs, device):
        parts, starts, at = [], [], 0
        for i in range(0, len(docs), 10000):
            for enc in tok.encode_batch(docs[i:i + 10000]):
                ids = np.array([EOT_ID] + enc.ids, dtype=np.int16)
                starts.append(at)
                at += len(ids)
                parts.append(ids)
        self.tokens = torch.from_numpy(np.concatenate(parts)).to(device)
        self.starts = torch.tensor(starts, device=device)
        self.device = device

    def batch(self, rows, length, gen):
        """Half of the windows begin anywhere; a quarter begin at the <|endoftext|> before
        a story and a quarter at its first word, since a prompt may come with or without one."""
        size = len(self.tokens) - length - 1
        at = torch.randint(size, (rows,), generator=gen, device=self.device)
        pick = torch.randint(len(self.starts), (rows // 2,), generator=gen, device=self.device)
        story = self.starts[pick]
        story[rows // 4:] += 1
        at[:rows // 2] = story.clamp(max=size)
        window = self.tokens[at[:, None] + torch.arange(length + 1, device=self.device)].long()
        return window[:, :-1], window[:, 1:]


# -- files -------------------------------------------------------------------

def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def save(folder, tok, model):
    os.makedirs(folder, exist_ok=True)
    write_json(folder, "config.json", CONFIG)
    write_json(folder, "generation_config.json", {
        # A plain story ends with <|endoftext|>, a chat answer with <|im_end|>.
        "bos_token_id": EOT_ID, "eos_token_id": [EOT_ID, IM_END_ID], "pad_token_id": EOT_ID, "use_cache": True})
    write_json(folder, "tokenizer_config.json", {
        "bos_token": EOT, "eos_token": EOT, "pad_token": EOT, "unk_token": EOT,
        "model_max_length": CONFIG["max_position_embeddings"], "tokenizer_class": "PreTrainedTokenizerFast"})
    with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8", newline="\n") as f:
        f.write(CHAT_TEMPLATE)
    tok.save(os.path.join(folder, "tokenizer.json"))
    weights = {k: v.detach().to(torch.bfloat16).cpu().contiguous() for k, v in model.state_dict().items()}
    save_file(weights, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


# -- training ----------------------------------------------------------------

def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
               "  train.py --jobs 16                                      what made the model in the tree\n"
               "  train.py --jobs 16 --layers 2 --hidden 96 --heads 3 --head-dim 32 --ffn 256 --steps 8000 --lr 6e-3 \\\n"
               "    --tokenizer tests/data/stories/tokenizer.json --out draft               the small one that guesses for it\n"
               "  train.py --stories 2000 --steps 20 --batch 8 --no-compile --out /tmp/try    a quick try")
    ap.add_argument("--seed", type=int, default=20261120, help="seed of the text and of the training (default %(default)s)")
    ap.add_argument("--stories", type=int, default=600000, help="stories to train on (default %(default)s)")
    ap.add_argument("--steps", type=int, default=9000, help="optimizer steps (default %(default)s)")
    ap.add_argument("--batch", type=int, default=128, help="windows of 512 tokens a step (default %(default)s)")
    ap.add_argument("--lr", type=float, default=3e-3, help="peak learning rate (default %(default)s)")
    ap.add_argument("--jobs", type=int, default=1, help="processes that write the text (default %(default)s)")
    ap.add_argument("--layers", type=int, default=CONFIG["num_hidden_layers"], help="layers (default %(default)s)")
    ap.add_argument("--hidden", type=int, default=CONFIG["hidden_size"], help="hidden size (default %(default)s)")
    ap.add_argument("--heads", type=int, default=CONFIG["num_attention_heads"], help="heads, with one of keys and values (default %(default)s)")
    ap.add_argument("--head-dim", type=int, default=CONFIG["head_dim"], help="numbers of a head (default %(default)s)")
    ap.add_argument("--ffn", type=int, default=CONFIG["intermediate_size"], help="width inside of SwiGLU (default %(default)s)")
    ap.add_argument("--tokenizer", help="tokenizer.json of another model, whose tokens it is to have (default: train one)")
    ap.add_argument("--no-compile", action="store_true", help="do not use torch.compile")
    ap.add_argument("--out", default=DEFAULT_OUT, help="folder to write (default: tests/data/stories of this tree)")
    args = ap.parse_args()
    CONFIG.update(num_hidden_layers=args.layers, hidden_size=args.hidden, num_attention_heads=args.heads,
                  head_dim=args.head_dim, intermediate_size=args.ffn)

    start = time.time()

    def log(*words):
        print(f"[{time.time() - start:6.1f} s]", *words, flush=True)

    docs = list(documents(args.seed, args.stories, jobs=args.jobs))
    held = list(documents(args.seed + 1, 2000, jobs=1))  # another seed: stories the model never saw
    log(f"{len(docs)} stories, {len(set(docs))} different, {sum(map(len, docs)) / 1e6:.1f} million characters")

    tok = Tokenizer.from_file(args.tokenizer) if args.tokenizer else train_tokenizer(docs[:60000])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, check = Data(tok, docs, device), Data(tok, held, device)
    log(f"{len(data.tokens) / 1e6:.1f} million tokens, {len(data.tokens) / len(docs):.0f} a story")

    torch.manual_seed(args.seed)
    gen = torch.Generator(device).manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    model = Llama(CONFIG).to(device)
    log(f"{sum(p.numel() for p in model.parameters())} parameters on {device}")
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    opt = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.98), fused=device == "cuda")
    run = model if args.no_compile else torch.compile(model)
    length = CONFIG["max_position_embeddings"]
    warmup = min(300, args.steps // 10 + 1)

    def held_out_loss():
        gen2 = torch.Generator(device).manual_seed(1)
        with torch.no_grad(), torch.autocast(device, torch.bfloat16):
            return sum(run(*check.batch(args.batch, length, gen2)).item() for _ in range(4)) / 4

    total = torch.zeros((), device=device)
    for step in range(1, args.steps + 1):
        progress = max(0.0, (step - warmup) / max(1, args.steps - warmup))
        lr = args.lr * min(step / warmup, 0.5 * (1 + math.cos(math.pi * progress)))
        for group in opt.param_groups:
            group["lr"] = lr
        with torch.autocast(device, torch.bfloat16):
            loss = run(*data.batch(args.batch, length, gen))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        total += loss.detach()
        if step % 500 == 0 or step == args.steps:
            n = step % 500 or 500
            log(f"step {step}/{args.steps}  loss {total.item() / n:.4f}  lr {lr:.2e}")
            total.zero_()
    log(f"held-out loss {held_out_loss():.4f}")

    save(args.out, tok, model)
    # The files have bfloat16: report the loss of accuracy.
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16))
    log(f"held-out loss with the stored bfloat16 weights {held_out_loss():.4f}")
    log(f"wrote {args.out}")


if __name__ == "__main__":
    main()
