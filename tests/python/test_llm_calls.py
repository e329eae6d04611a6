"""Calls of a language model that need no session: rules, draft texts, beams, perplexity."""

import math
import unittest

import loom
import numpy as np
from support import PROGRAM, STORIES, needs_program, run, same_bits

PROMPT = "Once upon a time"
STORY = "Once upon a time there was a little girl who had a red ball. She liked to play with it."


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = loom.LLM(STORIES)

    def test_the_tokenizer_of_a_model_is_that_of_its_file(self):
        own, alone = self.llm.tokenizer, loom.Tokenizer(STORIES)
        ids = own.encode(STORY)
        self.assertEqual(ids, alone.encode(STORY))
        self.assertEqual(b"".join(own.token_bytes(i) for i in ids).strip(), STORY.encode())
        self.assertIsInstance(own.token_bytes(ids[0]), bytes)
        with self.assertRaises(loom.OutOfRangeError):
            own.token_bytes(own.vocab_size)

    def test_a_fingerprint_tells_weights_and_cache_types_apart(self):
        prints = {
            self.llm.fingerprint(),
            self.llm.fingerprint("float16"),
            loom.LLM(STORIES, dtype="int8").fingerprint(),
        }
        self.assertEqual(len(prints), 3)
        self.assertEqual({len(p) for p in prints}, {16})
        self.assertEqual(self.llm.fingerprint(), loom.LLM(STORIES).fingerprint())

    def test_compiled_rules_give_the_text_of_the_rules(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
        rules = self.llm.compile_rules(json_schema=schema)
        plain = self.llm.generate(PROMPT, max_tokens=30, json_schema=schema)
        for _ in range(2):
            made = self.llm.generate(PROMPT, max_tokens=30, json_schema=schema, rules=rules)
            self.assertEqual(made, plain)
        self.assertIsNone(self.llm.compile_rules())

    def test_rules_are_checked_without_a_model(self):
        loom.check_rules(grammar='root ::= "yes" | "no"')
        loom.check_rules(json_schema={"type": "integer"})
        wrong = [
            ({"grammar": "root ::= ("}, loom.InvalidArgumentError),
            ({"json_schema": "{"}, loom.BadFileError),
        ]
        for rules, error in wrong:
            with self.assertRaises(error):
                loom.check_rules(**rules)

    def test_a_draft_text_leaves_the_text_as_it_is(self):
        ids = self.llm.tokenize(STORY)
        text = loom.LookupText(ids)
        self.assertEqual(text.next(ids[:3]), ids[3])
        self.assertIsNone(text.next([1 << 20]))
        plain = self.llm.generate(PROMPT, max_tokens=20)
        drafted = self.llm.generate(PROMPT, max_tokens=20, lookup=True, lookup_text=text)
        self.assertEqual(drafted, plain)

    def test_perplexity_is_that_of_the_logits(self):
        ids = self.llm.tokenize(STORY)[:9]
        found = self.llm.perplexity(ids, window=8)
        nats = 0.0
        for i in range(1, len(ids)):
            logits = self.llm.logits(ids[:i]).astype(np.float64)
            nats += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[ids[i]]
        self.assertEqual(found.predictions, 8)
        self.assertAlmostEqual(found.nats_per_token, nats / 8, places=4)
        self.assertAlmostEqual(found.perplexity, math.exp(found.nats_per_token), places=6)
        with self.assertRaises(loom.CancelledError):
            self.llm.perplexity(ids, window=2, progress=lambda done, total: False)

    @needs_program
    def test_beams_are_those_of_the_program(self):
        texts = self.llm.beam_search(PROMPT, num_beams=3, max_tokens=12)
        scores = [text.score for text in texts]
        self.assertEqual(scores, sorted(scores, reverse=True))
        told = run(PROGRAM, "run", STORIES, "-p", PROMPT, "--beams", 3, "--max-tokens", 12)
        self.assertIn(texts[0].text.strip(), told)

    def test_one_beam_is_the_likeliest_text(self):
        plain = self.llm.generate(PROMPT, max_tokens=12)
        watched = []
        (text,) = self.llm.beam_search(
            PROMPT, num_beams=1, max_tokens=12, progress=lambda *seen: watched.append(seen)
        )
        self.assertEqual((text.token_ids, text.stop), (plain.token_ids, "length"))
        self.assertEqual(text.text, plain)
        self.assertEqual(watched[-1][1], 12)

    def test_tokens_have_the_vector_of_their_text(self):
        ids = self.llm.tokenize(PROMPT)
        vectors = self.llm.embed_tokens([ids, ids[:2]])
        self.assertTrue(same_bits(vectors[0], self.llm.embed(PROMPT)))
        self.assertAlmostEqual(loom.cosine(vectors[0], vectors[0]), 1.0, places=6)
        alike = float(np.dot(*vectors.astype(np.float64)))
        self.assertAlmostEqual(loom.cosine(vectors[0], vectors[1]), alike, places=5)
        with self.assertRaises(ValueError):
            loom.cosine([1.0], [1.0, 2.0])

    def test_pooling_none_has_a_vector_per_token_of_one_text(self):
        rows = self.llm.embed(PROMPT, pooling="none", normalize=False)
        self.assertEqual(rows.shape[0], len(self.llm.tokenize(PROMPT)))
        mean = self.llm.embed(PROMPT, pooling="mean", normalize=False)
        np.testing.assert_allclose(rows.mean(axis=0), mean, rtol=1e-4, atol=1e-5)
        for pooling in (None, "model", "weighted-mean", "weighted_mean"):
            self.assertEqual(self.llm.embed(PROMPT, pooling=pooling).shape, mean.shape)
        with self.assertRaisesRegex(ValueError, "one text per call"):
            self.llm.embed([PROMPT, PROMPT], pooling="none")

    def test_special_tokens_of_a_text_may_be_plain_text(self):
        with loom.Tokenizer(STORIES) as tokenizer:
            read = tokenizer.encode("<|im_end|>")
            plain = tokenizer.encode("<|im_end|>", parse_special_tokens=False)
            self.assertEqual(len(read), 1)
            self.assertGreater(len(plain), 1)
            self.assertEqual(tokenizer.decode(plain), "<|im_end|>")

    def test_a_grammar_of_calls_makes_the_reply_a_call(self):
        self.assertIn("{%", self.llm.chat_template)
        tool = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
        grammar = self.llm.call_grammar(PROMPT, [tool], required=True)
        text = self.llm.generate(PROMPT, grammar=grammar, special_text=True, max_tokens=40)
        reply = self.llm.parse_reply(text, prompt=PROMPT, tools=[tool])
        self.assertEqual([call.name for call in reply.calls], ["now"])
        self.assertEqual(self.llm.call_grammar(PROMPT, [tool]), "")
        with self.assertRaises(loom.InvalidArgumentError):
            self.llm.call_grammar(PROMPT, {"not": "a list"})

    def test_suggested_sampling_is_options_of_generate(self):
        suggested = self.llm.suggested_sampling()
        self.assertEqual((suggested["temperature"], suggested["top_p"]), (0, 1))
        plain = self.llm.generate(PROMPT, max_tokens=12)
        self.assertEqual(self.llm.generate(PROMPT, max_tokens=12, **suggested), plain)

    def test_a_session_tells_its_position_and_memory(self):
        llm = loom.LLM(STORIES, context=128)
        self.assertEqual((llm.position, llm.context), (0, 128))
        llm.generate(PROMPT, max_tokens=10)
        whole = llm.position
        self.assertGreater(whole, 10)
        llm.rewind(4)
        self.assertEqual(llm.position, 4)
        with self.assertRaises(loom.OutOfRangeError):
            llm.rewind(whole)
        self.assertEqual(llm.bytes, llm.activation_bytes + llm.cache_bytes)


if __name__ == "__main__":
    unittest.main()
