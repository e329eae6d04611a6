"""Stories from Python."""

import tempfile
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

    def test_every_option_of_the_sampler_arrives(self):
        how = {"max_tokens": 60, "temperature": 1.2, "seed": 5}
        plain = self.llm.generate("One day", **how)
        cases = [{"frequency_penalty": 1.5}, {"presence_penalty": 1.5}, {"no_repeat_ngram": 2},
                 {"typical_p": 0.3}, {"top_n_sigma": 0.5}, {"mirostat": 2}, {"dynamic_range": 1.0},
                 {"banned_strings": ["the"]}, {"xtc_probability": 1.0},
                 {"dry_multiplier": 5.0, "dry_allowed_length": 1}]  # fmt: skip
        for case in cases:
            with self.subTest(case):
                self.assertNotEqual(self.llm.generate("One day", **how, **case), plain)
        first = plain.token_ids[0]
        banned = self.llm.generate("One day", **how, banned_tokens=[first])
        self.assertNotIn(first, banned.token_ids)
        biased = self.llm.generate("One day", **how, logit_bias={first: -100.0})
        self.assertEqual(banned, biased)
        guessed = self.llm.generate("One day", **how, lookup=True, guesses=3)
        self.assertEqual(guessed, plain)
        with self.assertRaisesRegex(TypeError, "temprature"):
            self.llm.generate("One day", temprature=1)
        with self.assertRaisesRegex(TypeError, "'temprature' is not an option"):
            self.llm.generate_batch(["One day"], temprature=1)

    def test_texts_are_held_to_grammars_and_schemas(self):
        said = self.llm.generate("Is it?", grammar='root ::= " yes" | " no"')
        self.assertIn(said, (" yes", " no"))
        self.assertEqual(said.stop, "eos")
        schema = {"enum": ["red", "blue"]}
        self.assertIn(self.llm.generate("A: ", json_schema=schema), ('"red"', '"blue"'))
        with self.assertRaises(loom.InvalidArgumentError):
            self.llm.generate("A: ", grammar="root ::= missing")

    def test_a_batch_writes_what_each_text_is_alone(self):
        prompts = [PROMPT, "The little fox", "One day", "A boy", "Mum said"]
        how = {"max_tokens": 15, "temperature": 0.8, "seed": 2}
        made = self.llm.generate_batch(prompts, sequences=2, **how)
        self.assertEqual(made, [self.llm.generate(prompt, **how) for prompt in prompts])
        self.assertEqual(made[0].stop, "length")

    def test_a_text_goes_on_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.llm.generate(PROMPT, max_tokens=5)
            self.llm.save_state(folder + "/read.state")
            goes_on = self.llm.continue_(" and then", max_tokens=12)
            self.llm.generate("something else", max_tokens=3)
            self.llm.load_state(folder + "/read.state")
            self.assertEqual(self.llm.continue_(" and then", max_tokens=12), goes_on)
            with self.assertRaises(loom.NotFoundError):
                self.llm.load_state(folder + "/nothing")

    def test_vectors_replies_and_tools(self):
        two = self.llm.embed(["a cat", "the sun is up"], pooling="mean")
        self.assertEqual(two.shape[0], 2)
        np.testing.assert_allclose(np.linalg.norm(two, axis=1), 1, rtol=1e-5)
        self.assertTrue((self.llm.embed("a cat", pooling="mean") == two[0]).all())
        with self.assertRaises(loom.UnsupportedError):
            self.llm.rerank("cat", ["a cat"])
        made = self.llm.chat("Hello", max_tokens=8)
        self.assertEqual(made.reply.text.strip(), made.strip())
        self.assertEqual((made.reply.reasoning, made.reply.calls), ("", []))
        self.assertIsInstance(self.llm.tool_format, str)

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

    def test_turns_of_unknown_shapes_are_refused_by_turn_and_key(self):
        calls = {"role": "assistant", "content": None}
        one = {"function": {"name": "look", "arguments": {}}}
        for turn, name in (
            ({**calls, "tool_calls": [{"id": "1"}]}, r"messages\[1\].tool_calls\[0\] needs"),
            ({**calls, "tool_calls": {}}, r"messages\[1\].tool_calls must be a list"),
            ({**calls, "tool_calls": [one]}, r"messages\[1\].tool_calls: the chat template"),
            ({"role": "user", "content": 5}, r"messages\[1\].content must be a text, null or"),
            ({"role": "user", "content": [5]}, r"messages\[1\].content\[0\] must be an object"),
            ({"role": "user", "content": None}, r"messages\[1\].content is missing"),
            ({"content": "Hi"}, r"messages\[1\].role is missing"),
            ({"role": "user", "content": "Hi", "name": 5}, r"messages\[1\].name must be a text"),
            ({"role": "user", "content": "Hi", "more": {1, 2}}, r"turns\[1\].more must be plain"),
            (("user", "Hi", "more"), r"turns\[1\] must be \(role, content\); got 3 parts"),
            (5, r"turns\[1\] must be a dict"),
        ):
            for render in (self.llm.render_chat, self.llm.tokenize_chat):
                with self.assertRaisesRegex(Exception, name):
                    render([("user", "Hello"), turn])

    def test_templates_see_all_members_of_turns(self):
        template = (
            "{% for m in messages %}[{{ m.role }}|{{ m.content }}|{{ m.tool_call_id }}|{{ m.mood }}"
            "{% for c in m.tool_calls %}|{{ c.function.name }} {{ c.function.arguments | tojson }}"
            "{% endfor %}]{% endfor %}{{ tools | length if tools }}{{ extra }}"
        )
        call = {"id": "1", "function": {"name": "look", "arguments": '{"at": [1, "Zürich"]}'}}
        turns = [
            {"role": "user", "content": "Hi", "mood": "calm"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "so"},
        ]
        with loom.LLM(STORIES, chat_template=template) as llm:
            text = llm.render_chat(turns, tools=[{"name": "look"}], variables={"extra": "!"})
            self.assertEqual(
                text,
                '[user|Hi||calm][assistant||||look {"at": [1, "Zürich"]}][tool|so|1|]1!',
            )
            self.assertEqual(
                llm.render_chat([("user", "a"), ("assistant", "b")], continue_final_message=True),
                "[user|a||][assistant|b",
            )

    def test_a_parsed_reply_is_a_turn_that_continues_the_conversation(self):
        template = "{% for m in messages %}<tool_call>{{ m.tool_calls }}{% endfor %}"
        with loom.LLM(STORIES, chat_template=template) as llm:
            text = 'I look.<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call>'
            tools = [{"name": "look", "parameters": {"type": "object"}}]
            reply = llm.parse_reply(text, prompt="p", tools=tools)
            (call,) = reply.calls
            self.assertEqual((reply.text, call.name, call.problem), ("I look.", "look", ""))
            self.assertRegex(call.id, "^[0-9a-z]{9}$")
            self.assertEqual(reply.message["tool_calls"][0]["id"], call.id)
            self.assertIn("look", llm.render_chat([reply.message]))
            same = llm.parse_reply(text, prompt="p", tools=tools)
            self.assertEqual(same, reply)

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


class Loading(unittest.TestCase):
    def test_a_scaling_of_positions_changes_the_text(self):
        texts = [
            loom.LLM(STORIES, rope_scaling=scaling).generate(PROMPT, max_tokens=20)
            for scaling in (None, "none", "linear:4", "yarn:4")
        ]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(len(set(texts)), 3)
        with self.assertRaisesRegex(ValueError, "'twice' is not known; use none, linear:F"):
            loom.LLM(STORIES, rope_scaling="twice")

    def test_a_template_replaces_that_of_the_file(self):
        llm = loom.LLM(STORIES, chat_template="Once upon a time{{ messages[0].content }}")
        said = llm.chat([{"role": "user", "content": ","}], max_tokens=15)
        plain = loom.LLM(STORIES).generate("Once upon a time,", max_tokens=15)
        self.assertEqual(str(said), str(plain))
        with self.assertRaisesRegex(ValueError, "template"):
            loom.LLM(STORIES, chat_template="{% if %}")


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
