#!/usr/bin/env python3
"""Write the results of the transformers library for the model in tests/data/stories.

reference.json holds, for each of four prompts, its token ids and the 48 tokens
that greedy decoding gives; reference.safetensors holds the logits at every
position of prompt N as logits.N.  The bfloat16 weights are used in float32, so
another implementation can be compared closely.

Needs: torch, transformers, tokenizers, safetensors.
"""

import argparse
import json
import os

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, LlamaForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_MODEL = os.path.normpath(os.path.join(HERE, "..", "..", "tests", "data", "stories"))

CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = ["Once upon a time", "Tom had a red ball.", "Lily and her dog",
           CHAT.format("Tell me a story about a rabbit named Pip.")]
MORE_PROMPTS = ["<|endoftext|>", "One day, a little girl named Mia", "There was a small bear", "It was a sunny day. Ben",
                "The little cat", CHAT.format("Tell me a story."), CHAT.format("Tell me a story about a dog.")]
NEW_TOKENS = 48


def greedy(model, ids, count):
    """Plain greedy decoding without a cache: nothing between the model and the answer."""
    ids = list(ids)
    for _ in range(count):
        ids.append(model(torch.tensor([ids])).logits[0, -1].argmax().item())
    return ids[-count:]


def write_reference(folder, model):
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    prompts, logits = [], {}
    for n, text in enumerate(PROMPTS):
        ids = tok.encode(text).ids
        logits[f"logits.{n}"] = model(torch.tensor([ids])).logits[0].float().contiguous()
        new = greedy(model, ids, NEW_TOKENS)
        prompts.append({"text": text, "ids": ids, "greedy_ids": new,
                        "greedy_text": tok.decode(new, skip_special_tokens=False)})
    with open(os.path.join(folder, "reference.json"), "w", encoding="utf-8", newline="\n") as f:
        json.dump({"torch": torch.__version__, "prompts": prompts}, f, indent=1)
        f.write("\n")
    save_file(logits, os.path.join(folder, "reference.safetensors"))


def print_samples(folder, model, count):
    tok = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(1)
    for text in PROMPTS + MORE_PROMPTS:
        ids = torch.tensor([tok(text)["input_ids"]])
        for i in range(count + 1):
            how = {"do_sample": True, "temperature": 0.7, "top_k": 0} if i else {"do_sample": False}
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=300, **how)[0]
            print(f"--- {'T=0.7' if i else 'greedy'}: {tok.decode(out)}\n", flush=True)


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
               "  reference.py                 write reference.json and reference.safetensors\n"
               "  reference.py --samples 2     and print a greedy and two sampled stories for each of some prompts")
    ap.add_argument("--model", default=DEFAULT_MODEL, help="model folder, read and written (default: tests/data/stories of this tree)")
    ap.add_argument("--samples", type=int, default=0, metavar="N", help="print stories: one greedy and N at temperature 0.7 a prompt")
    args = ap.parse_args()

    with torch.no_grad():
        model = LlamaForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
        write_reference(args.model, model)
        if args.samples:
            print_samples(args.model, model, args.samples)


if __name__ == "__main__":
    main()
