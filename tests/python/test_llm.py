"""Stories from Python."""

import threading
import unittest

import loom
import numpy as np
from support import ROOT, STORIES

PROMPT = "Once upon a time"
BEGINNING = ", there was a brave boy named Jacob."


class Stories(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = loom.LLM(STORIES)

    def test_a_stream_is_what_generate_gives(self):
        whole = self.llm.generate(PROMPT, max_tokens=50, temperature=0.7, seed=3, logprobs=True)
        tokens = list(
            self.llm.stream(PROMPT, max_tokens=50, temperature=0.7, seed=3, logprobs=True)
        )
        self.assertEqual("".join(tokens), whole)
        self.assertEqual([t.id for t in tokens], whole.token_ids)
        self.assertEqual([t.logprob for t in tokens], whole.logprobs)
        self.assertEqual(whole.stop, "length")
        self.assertTrue(self.llm.generate(PROMPT, max_tokens=20).startswith(BEGINNING))

    def test_leaving_a_stream_ends_it(self):
        before = threading.active_count()
        for token in self.llm.stream(PROMPT, max_tokens=400):
            self.assertIsInstance(token, str)
            break
        del token
        self.assertEqual(threading.active_count(), before)
        self.assertTrue(self.llm.generate(PROMPT, max_tokens=20).startswith(BEGINNING))

    def test_calls_stand_alone(self):
        first = self.llm.generate(PROMPT, max_tokens=20)
        self.llm.generate("The little fox", max_tokens=20)
        self.assertEqual(self.llm.generate(PROMPT, max_tokens=20), first)
        ids = self.llm.tokenize(PROMPT)
        self.assertEqual(self.llm.generate(ids, max_tokens=20), first)

    def test_reading_a_prompt_is_watched_and_stopped(self):
        ids = self.llm.tokenize(PROMPT) * 70
        seen = []
        watched = self.llm.logits(ids, progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen[-1], (len(ids), len(ids)))
        self.assertTrue(np.array_equal(watched, self.llm.logits(ids)))
        with self.assertRaises(loom.CancelledError):
            self.llm.logits(ids, progress=lambda done, total: False)

    def test_callbacks_and_stop_strings_end_it(self):
        seen = []
        stopped = self.llm.generate(PROMPT, on_token=lambda t: seen.append(t) or len(seen) < 4)
        self.assertEqual((len(seen), stopped.stop), (4, "cancelled"))
        stopped = self.llm.generate(PROMPT, stop="brave")
        self.assertEqual((stopped, stopped.stop), (", there was a ", "string"))

        def fails(_):
            raise RuntimeError("mine")

        with self.assertRaisesRegex(RuntimeError, "mine"):
            self.llm.generate(PROMPT, on_token=fails)
        with self.assertRaisesRegex(RuntimeError, "mine"):
            list(self.llm.stream(PROMPT, on_token=fails))

    def test_likely_tokens_are_told(self):
        seen = []
        self.llm.generate(PROMPT, max_tokens=3, logprobs=True, top_logprobs=4, on_token=seen.append)
        for token in seen:
            self.assertEqual(len(token.top), 4)
            self.assertEqual(token.top[0], (token.id, token.logprob))

    def test_logits_and_tokens(self):
        ids = self.llm.tokenize(PROMPT, special_tokens=False)
        self.assertEqual(self.llm.detokenize(ids), PROMPT)
        logits = self.llm.logits(PROMPT)
        self.assertEqual(logits.shape, (self.llm.info["vocab"],))
        first = self.llm.generate(PROMPT, max_tokens=1)
        self.assertEqual(int(np.argmax(logits)), first.token_ids[0])

    def test_conversations_are_written_by_the_template(self):
        talk = [("user", "Hello"), ("assistant", "Hi"), ("user", "Who are you?")]
        text = self.llm.render_chat(talk)
        self.assertIn("Hello<|im_end|>", text)
        self.assertTrue(text.endswith("<|im_start|>assistant\n"))
        self.assertTrue(text.startswith(self.llm.render_chat(talk, reply=False)))
        ids = self.llm.tokenize_chat(talk)
        self.assertEqual(self.llm.detokenize(ids, skip_special=False), text)

    def test_types_and_progress(self):
        seen = []
        other = loom.LLM(STORIES, dtype="q4_0", progress=lambda *a: seen.append(a))
        self.assertEqual(other.info["dtype"], "q4_0")
        self.assertEqual(seen[-1][0], seen[-1][1])
        with self.assertRaises(loom.CancelledError):
            loom.LLM(STORIES, dtype="q4_0", progress=lambda *_: False)

    def test_wrong_use_is_an_error(self):
        with self.assertRaises(loom.NotFoundError):
            loom.LLM("/nowhere/model.entity")
        with self.assertRaises(loom.OutOfRangeError):
            self.llm.detokenize([1 << 30])
        with self.assertRaises(loom.OutOfRangeError):
            self.llm.generate([5] * 100000)
        with self.assertRaisesRegex(ValueError, "NUL"):
            self.llm.generate("a\0b")
        with self.assertRaisesRegex(ValueError, "max_tokens is 0"):
            self.llm.generate(PROMPT, max_tokens=0)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "date"):
            self.llm.render_chat([("user", "Hello")], date="yesterday")
        closed = loom.LLM(STORIES)
        closed.close()
        closed.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            closed.generate(PROMPT)

    def test_text_of_any_bytes_round_trips(self):
        for text in ("naïve café", "日本語 \U0001f600", "tab\tand\nline"):
            ids = self.llm.tokenize(text, special_tokens=False)
            self.assertEqual(self.llm.detokenize(ids), text)


class Tokenizers(unittest.TestCase):
    def test_a_tokenizer_alone_gives_the_ids_of_its_model(self):
        with open(STORIES, "rb") as file:
            data = file.read()
        llm = loom.LLM(STORIES)
        for tokenizer in (loom.Tokenizer(STORIES), loom.Tokenizer(data, name="x.entity")):
            for special in (False, True):
                ids = tokenizer.encode(PROMPT, special_tokens=special)
                self.assertEqual(ids, llm.tokenize(PROMPT, special_tokens=special))
                self.assertEqual(tokenizer.decode(ids), PROMPT)
            self.assertLessEqual(tokenizer.vocab_size, llm.info["vocab"])

    def test_special_tokens_have_names_and_ids(self):
        tokenizer = loom.Tokenizer(STORIES)
        self.assertTrue(tokenizer.special_tokens)
        for name, token in tokenizer.special_tokens.items():
            self.assertEqual(tokenizer.token_id(name), token)
            self.assertEqual(tokenizer.decode([token]), "")

    def test_what_cannot_be_had_is_an_error(self):
        with self.assertRaises(loom.NotFoundError):
            loom.Tokenizer("/no/such/file")
        tokenizer = loom.Tokenizer(STORIES)
        with self.assertRaisesRegex(loom.NotFoundError, "no such token"):
            tokenizer.token_id("no such token")
        with self.assertRaises(loom.OutOfRangeError):
            tokenizer.decode([1 << 30])


if __name__ == "__main__":
    unittest.main()
