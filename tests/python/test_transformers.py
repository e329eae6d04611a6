"""Language models of transformers absorbed by their class; skipped where it is not installed."""

import importlib.util
import json
import os
import unittest
import warnings
from pathlib import Path

import loom
import numpy as np
from support import PROGRAM, Scratch, needs_program, run

warnings.simplefilter("ignore")
HERE = all(importlib.util.find_spec(n) is not None for n in ("torch", "transformers"))
if HERE:
    import torch
    import transformers
    from loom.bridge import Unabsorbable
    from loom.bridge import transformers as rules

    transformers.utils.logging.set_verbosity_error()

# A checkpoint with a tokenizer: LOOM_CHECKPOINT names another.
CHECKPOINT = Path(os.environ.get("LOOM_CHECKPOINT", "/nowhere"))
SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
KINDS = {
    "Llama": {},
    "Mistral": {"sliding_window": 8},
    "Qwen2": {},
    "Qwen3": {"head_dim": 16},
    "Gemma": {"head_dim": 16},
    "Gemma2": {"head_dim": 16},
    "Gemma3": {"head_dim": 16},
    "Phi3": ENDS,
    "SmolLM3": ENDS,
    "OPT": {"ffn_dim": 96, "word_embed_proj_dim": 64},
    "GPTNeoX": {},
    "Phi": ENDS,
    "Starcoder2": {},
}
# Sizes that a class does not have.
ABSENT = {
    "OPT": ("intermediate_size", "num_key_value_heads"),
    "GPTNeoX": ("num_key_value_heads",),
}


def made(kind, **more):
    """With every weight distinct, scales of norms too."""
    torch.manual_seed(5)
    config = getattr(transformers, "Gemma3TextConfig" if kind == "Gemma3" else f"{kind}Config")
    sizes = {key: value for key, value in SIZES.items() if key not in ABSENT.get(kind, ())}
    model = getattr(transformers, f"{kind}ForCausalLM")(config(**{**sizes, **KINDS[kind], **more}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape) * 0.2)
    return model


@unittest.skipUnless(HERE, "torch and transformers are not installed")
class Transformers(Scratch):
    def test_every_known_class_is_proven(self):
        for kind in KINDS:
            with self.subTest(kind):
                model = made(kind).train()
                llm = loom.absorb(model, fresh_process=kind == "Llama")
                self.assertTrue(llm.proof.passed)
                self.assertLess(llm.proof.max_abs, 1e-5)
                self.assertTrue(model.training)
                self.assertIn(f"{kind}ForCausalLM", llm.proof.source)

    def test_the_bits_are_those_of_the_folder_that_transformers_saves(self):
        for kind, dtype in (("Llama", torch.bfloat16), ("Qwen2", torch.float16), ("Gemma", None)):
            with self.subTest(kind):
                model = made(kind) if dtype is None else made(kind).to(dtype)
                model.save_pretrained(self.folder / kind)
                ids = list(range(3, 40))
                ours = rules.all_logits(loom.LLM(self.folder / kind), ids)
                llm = loom.absorb(model, torch.tensor([ids]), abs_tol=1e-4, fresh_process=False)
                np.testing.assert_array_equal(rules.all_logits(llm, ids), ours)
                np.testing.assert_array_equal(llm.logits(ids), ours[-1])

    def test_gpt2_becomes_a_language_model_of_any_length(self):
        torch.manual_seed(3)
        # Its class has tokens beyond this vocabulary by default; positions end at 40.
        config = transformers.GPT2Config(
            n_embd=33, n_layer=2, n_head=3, n_positions=40, vocab_size=97
        )
        model = transformers.GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape) * 0.1)
        ids = list(range(3, 43))
        llm = loom.absorb(model, torch.tensor([ids]), abs_tol=1e-4, fresh_process=True)
        self.assertTrue(llm.proof.passed)
        self.assertTrue(llm.info["tied_head"])
        wanted = model(torch.tensor([ids[:5]])).logits[0, -1].detach().numpy()
        np.testing.assert_allclose(llm.logits(ids[:5]), wanted, atol=1e-4)
        with self.assertRaisesRegex(loom.LoomError, "the context is full"):
            llm.logits(list(range(41)))

    def test_classes_that_the_loader_does_not_know_become_networks(self):
        few = {"vocab_size": 97, "max_position_embeddings": 64}
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, **few}
        ids = torch.tensor([[5, 0, 96, 17, 17, 3, 42]])
        for model, config in [
            ("BloomForCausalLM", transformers.BloomConfig(n_layer=2, n_head=4, **sizes)),
            ("FalconForCausalLM", transformers.FalconConfig(**sizes)),
        ]:
            with self.subTest(model):
                torch.manual_seed(7)
                source = getattr(transformers, model)(config).eval()
                with torch.no_grad():
                    for parameter in source.parameters():
                        parameter.add_(torch.randn(parameter.shape) * 0.1)
                net = loom.absorb(source, ids, fresh_process=False, abs_tol=2e-5)
                self.assertIn(model, net.proof.source)
                other = (ids * 31 + 7) % 97
                wanted = source(other).logits.detach().numpy()
                np.testing.assert_allclose(net.predict(other.numpy()), wanted, atol=1e-4)

    def test_tied_heads_are_written_once(self):
        model = made("Llama", tie_word_embeddings=True)
        llm = loom.absorb(model, fresh_process=False, folder=str(self.folder / "kept"))
        self.assertTrue(llm.info["tied_head"])
        head = (self.folder / "kept" / "model.safetensors").read_bytes()
        self.assertNotIn(
            "lm_head.weight", json.loads(head[8 : 8 + int.from_bytes(head[:8], "little")])
        )
        self.assertEqual(llm.info["parameters"], sum(p.numel() for p in model.parameters()))

    def test_a_class_without_a_loader_is_told_where_a_folder_is_wanted(self):
        config = transformers.GraniteConfig(**SIZES)
        model = transformers.GraniteForCausalLM(config)
        kept = str(self.folder)
        (problem,) = loom.absorb(model, plan_only=True, folder=kept).problems
        self.assertEqual(problem.what, "GraniteForCausalLM")
        self.assertIn("LlamaForCausalLM", problem.why)
        with self.assertRaises(Unabsorbable):
            loom.absorb(model, folder=kept)
        self.assertEqual(loom.absorb(model, plan_only=True).problems, [])
        self.assertEqual(loom.absorb(made("Llama"), plan_only=True).problems, [])

    def test_bad_calls_say_what_to_give(self):
        model = made("Llama")
        for ids in (torch.zeros(2, 4, dtype=torch.long), torch.zeros(1, 4), np.zeros((1, 0), int)):
            with self.assertRaisesRegex(loom.InvalidArgumentError, r"\[1, tokens\]"):
                loom.absorb(model, ids)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "no fast tokenizer"):
            loom.absorb(model, tokenizer=object())
        with self.assertRaisesRegex(loom.InvalidArgumentError, "language models"):
            loom.absorb(torch.nn.Linear(2, 2), torch.zeros(1, 2), folder="x")

    def test_each_broken_rule_turns_its_proof_red(self):
        def swapped(weights):
            by = dict(weights)
            for name in list(by):
                if "layers.0.self_attn.k_proj" in name:
                    by[name] = by[name.replace("k_proj", "v_proj")]
            return list(by.items())

        def dropped(weights):
            return [(n, t * 0 if n.endswith("q_proj.bias") else t) for n, t in weights]

        def turned(weights):
            return [
                (n, t.T.contiguous() if "o_proj" in n and t.shape[0] == t.shape[1] else t)
                for n, t in weights
            ]

        kept = rules._weights
        model = made("Qwen2")
        with torch.no_grad():
            for layer in model.model.layers:
                layer.self_attn.q_proj.bias.normal_()
                layer.self_attn.k_proj.bias.normal_()
        for change in (swapped, dropped, turned):
            rules._weights = lambda m, c=change: c(kept(m))
            try:
                with self.subTest(change.__name__), self.assertRaises(ArithmeticError):
                    loom.absorb(model, fresh_process=False)
            finally:
                rules._weights = kept
        loom.absorb(model, fresh_process=False)

    @needs_program
    @unittest.skipUnless(CHECKPOINT.is_dir(), "LOOM_CHECKPOINT names no checkpoint")
    def test_a_real_checkpoint_has_the_hash_of_our_own_loader(self):
        model = transformers.AutoModelForCausalLM.from_pretrained(CHECKPOINT)
        tokenizer = transformers.AutoTokenizer.from_pretrained(CHECKPOINT)
        folder = self.folder / "absorbed"
        llm = loom.absorb(model, tokenizer=tokenizer, folder=str(folder))
        self.assertEqual(llm.proof.rungs, ("native", "engine", "file", "wheel"))
        hashes = [run(PROGRAM, "verify", "hash", path) for path in (CHECKPOINT, folder)]
        self.assertEqual(hashes[0], hashes[1])
        own = loom.LLM(CHECKPOINT)
        self.assertEqual(llm.generate("Once", max_tokens=12), own.generate("Once", max_tokens=12))


if __name__ == "__main__":
    unittest.main()
