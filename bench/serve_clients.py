#!/usr/bin/env python3
"""The official clients of OpenAI, Anthropic and Ollama against `loom serve`.

  python3 bench/serve_clients.py build/dev/cli/loom models/stories.entity

Needs the packages openai, anthropic and ollama; bench/serve.sh makes a Python that has them.
Each line is a check; the exit code is 1 if one fails.
"""

import concurrent.futures
import contextlib
import json
import subprocess
import sys
import tempfile
from typing import Callable, Iterator

import anthropic
import httpx
import ollama
import openai

STORY = [{"role": "user", "content": "Tell me a story about a rabbit."}]


@contextlib.contextmanager
def served(loom: str, model: str, *flags: str) -> Iterator[str]:
    """`loom serve` at a free port until the block ends; it has to end well itself."""
    command = [loom, "serve", model, "--port", "0", "--quiet", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()
            if process.wait(30) != 0:
                raise SystemExit(f"loom serve ended with {process.returncode}")


class Checks:
    """Runs functions whose docstrings state their condition."""

    def __init__(self) -> None:
        self.failed = 0
        self.done = 0

    def run(self, check: Callable[[], None]) -> None:
        self.done += 1
        try:
            check()
            print(f"ok      {check.__doc__}")
        except Exception as why:  # pylint: disable=broad-except
            self.failed += 1
            print(f"FAILED  {check.__doc__}: {type(why).__name__}: {why}")


def refused(kind: type, call: Callable[[], object]) -> Exception:
    try:
        call()
    except kind as why:
        return why
    raise AssertionError(f"no {kind.__name__}")


def openai_checks(checks: Checks, url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    say = {"model": "stories", "messages": STORY, "seed": 7, "max_tokens": 40}

    def chat() -> None:
        """openai: a chat"""
        reply = client.chat.completions.create(**say)
        assert reply.choices[0].message.content
        assert reply.choices[0].message.role == "assistant"
        assert reply.choices[0].finish_reason == "length"
        assert reply.usage.completion_tokens == 40
        assert reply.system_fingerprint.startswith("b")

    def stream() -> None:
        """openai: a streamed chat has the text of the whole one, and its usage"""
        whole = client.chat.completions.create(**say).choices[0].message.content
        parts = list(client.chat.completions.create(
            **say, stream=True, stream_options={"include_usage": True}))
        text = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
        assert text == whole, (text, whole)
        assert parts[-1].usage.total_tokens == parts[-1].usage.prompt_tokens + 40
        assert [p.choices[0].finish_reason for p in parts if p.choices][-1] == "length"

    def helper() -> None:
        """openai: the stream helper gathers a message"""
        long = {**say, "max_tokens": 400}  # to its end, for the helper refuses texts that are cut
        with client.chat.completions.stream(**long) as events:
            for _ in events:
                pass
            final = events.get_final_completion()
        assert final.choices[0].message.content == \
            client.chat.completions.create(**long).choices[0].message.content

    def chances() -> None:
        """openai: logprobs are those of the tokens, best first"""
        reply = client.chat.completions.create(**say, logprobs=True, top_logprobs=4, n=2)
        for choice in reply.choices:
            tokens = choice.logprobs.content
            assert "".join(t.token for t in tokens) == choice.message.content
            for token in tokens:
                tops = [t.logprob for t in token.top_logprobs]
                assert len(tops) == 4 and tops == sorted(tops, reverse=True)
                assert bytes(token.bytes).decode() == token.token

    def repeats() -> None:
        """openai: the same request gives the same text, the other choice another"""
        texts = [client.chat.completions.create(**say, n=2).choices for _ in range(3)]
        assert len({t[0].message.content for t in texts}) == 1
        assert len({t[1].message.content for t in texts}) == 1
        assert texts[0][0].message.content != texts[0][1].message.content

    def legacy() -> None:
        """openai: completions with logprobs, echo and several prompts"""
        reply = client.completions.create(model="stories", prompt=["Tom", "Lily and"], echo=True,
                                          logprobs=2, max_tokens=5, seed=1)
        assert [c.text.startswith(p) for c, p in zip(reply.choices, ["Tom", "Lily and"])] == \
            [True, True]
        assert len(reply.choices[0].logprobs.tokens) == 5
        parts = client.completions.create(model="stories", prompt="Tom", max_tokens=5, seed=1,
                                          stream=True)
        assert "".join(p.choices[0].text for p in parts if p.choices)

    def models() -> None:
        """openai: models are listed and found by name"""
        name = client.models.list().data[0].id
        assert client.models.retrieve(name).owned_by == "loom"
        refused(openai.NotFoundError, lambda: client.models.retrieve("other"))

    def errors() -> None:
        """openai: bad requests are 400 with a reason"""
        why = refused(openai.BadRequestError,
                      lambda: client.chat.completions.create(**{**say, "max_tokens": "x"}))
        assert "max_tokens must be an integer" in str(why)
        refused(openai.BadRequestError, lambda: client.chat.completions.create(
            **say, tools=[{"type": "function", "function": {"name": "f"}}]))
        refused(openai.BadRequestError,
                lambda: client.embeddings.create(model="stories", input=[]))
        assert len(client.embeddings.create(model="stories", input=["a", "b"]).data) == 2

    def at_once() -> None:
        """openai: thirty-two chats at once are those that came alone"""
        def one(seed: int) -> str:
            return client.chat.completions.create(**{**say, "seed": seed}) \
                .choices[0].message.content
        alone = [one(seed) for seed in range(32)]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            assert list(pool.map(one, range(32))) == alone

    for check in (chat, stream, helper, chances, repeats, legacy, models, errors, at_once):
        checks.run(check)


def responses_checks(checks: Checks, url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)

    def responses() -> None:
        """openai: a response, and its events"""
        say = {"model": "stories", "input": "Tell me a story.", "max_output_tokens": 20,
               "extra_body": {"seed": 7}}
        whole = client.responses.create(**say, instructions="You tell stories.")
        assert whole.output_text and whole.status == "incomplete"
        assert whole.usage.output_tokens == 20
        whole = client.responses.create(**say)
        events = list(client.responses.create(**say, stream=True))
        assert [e.sequence_number for e in events] == list(range(len(events)))
        deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
        assert "".join(deltas) == whole.output_text == events[-1].response.output_text
        with client.responses.stream(**say) as stream_of:
            for _ in stream_of:
                pass
        hello = {"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
        talk = [{"role": "user", "content": "Hi"}, hello, {"role": "user", "content": "A story!"}]
        assert client.responses.create(**{**say, "input": talk}).output_text

    def resumed() -> None:
        """openai: an abandoned response resumes"""
        say = {"model": "stories", "input": "Tell me a story.", "max_output_tokens": 30,
               "stream": True, "extra_body": {"seed": 7, "resumable": True}}
        events = list(client.responses.create(**say))
        name = events[0].response.id
        again = list(client.responses.retrieve(name, stream=True, starting_after=5))
        assert [e.to_dict() for e in again] == [e.to_dict() for e in events[6:]]

    def counted() -> None:
        """openai: the tokens of a response's input are counted"""
        tokens = client.responses.input_tokens.count(model="stories", input="Tell me a story.")
        whole = client.responses.create(model="stories", input="Tell me a story.",
                                        max_output_tokens=1)
        assert tokens.input_tokens == whole.usage.input_tokens

    for check in (responses, resumed, counted):
        checks.run(check)


def anthropic_checks(checks: Checks, url: str) -> None:
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    say = {"model": "stories", "messages": STORY, "max_tokens": 30,
           "extra_body": {"seed": 7}}

    def message() -> None:
        """anthropic: a message"""
        reply = client.messages.create(**say, system="You tell stories.")
        assert reply.content[0].text and reply.stop_reason == "max_tokens"
        assert reply.usage.output_tokens == 30

    def stream() -> None:
        """anthropic: a streamed message has the text of the whole one"""
        with client.messages.stream(**say) as events:
            text = "".join(events.text_stream)
            final = events.get_final_message()
        assert text == client.messages.create(**say).content[0].text == final.content[0].text
        assert final.stop_reason == "max_tokens" and final.usage.output_tokens == 30

    def stop() -> None:
        """anthropic: the reply names the stop sequence"""
        reply = client.messages.create(**{**say, "max_tokens": 200}, stop_sequences=["zzz", " a "])
        assert reply.stop_reason == "stop_sequence" and reply.stop_sequence == " a ", reply

    def count() -> None:
        """anthropic: tokens are counted"""
        counted = client.messages.count_tokens(model="stories", messages=STORY)
        assert counted.input_tokens > 10

    def errors() -> None:
        """anthropic: bad requests are 400 with a reason"""
        why = refused(anthropic.BadRequestError,
                      lambda: client.messages.create(**{**say, "messages": []}))
        assert "messages must be a list" in str(why)

    for check in (message, stream, stop, count, errors):
        checks.run(check)


def ollama_checks(checks: Checks, url: str) -> None:
    client = ollama.Client(host=url)
    options = {"seed": 3, "num_predict": 25}

    def chat() -> None:
        """ollama: a chat, streamed and whole"""
        whole = client.chat("stories", messages=STORY, options=options)
        parts = list(client.chat("stories", messages=STORY, options=options, stream=True))
        assert "".join(p.message.content for p in parts) == whole.message.content
        assert whole.eval_count == 25 and parts[-1].done and parts[-1].done_reason == "length"

    def generate() -> None:
        """ollama: generate, raw as well"""
        assert client.generate("stories", "Tell me a story.", options=options).response
        raw = client.generate("stories", "Once upon a time", raw=True, options=options)
        assert raw.response and raw.prompt_eval_count == 4

    def lists() -> None:
        """ollama: list, show and ps"""
        assert client.list().models[0].model
        assert client.show("stories").capabilities == ["completion"]
        assert client.ps().models[0].model

    def embeds() -> None:
        """ollama: embed gives vectors of length one, embeddings one of them"""
        vectors = client.embed("stories", ["Tom", "Lily and her dog"]).embeddings
        assert len(vectors) == 2 and abs(sum(x * x for x in vectors[0]) - 1) < 1e-4
        assert len(client.embeddings("stories", "Tom").embedding) == len(vectors[0])

    def formats() -> None:
        """ollama: a format holds the answer to its schema"""
        reply = client.generate("stories", "The weather?", format=SCHEMA,
                                options={**options, "num_predict": 200})
        assert is_forecast(json.loads(reply.response)), reply.response

    def errors() -> None:
        """ollama: bad requests say why"""
        why = refused(ollama.ResponseError,
                      lambda: client.generate("stories", "a", options={"top_p": 7}))
        assert "top_p must be a number from 0 to 1; got 7" in str(why)

    for check in (chat, generate, lists, embeds, formats, errors):
        checks.run(check)


def native_checks(checks: Checks, url: str) -> None:
    """llama.cpp has no client of its own: its routes, through that of OpenAI."""
    client = openai.OpenAI(base_url=url, api_key="any", max_retries=0)

    def post(path: str, **body: object) -> object:
        return json.loads(client.post(path, body=body, cast_to=httpx.Response).text)

    def get(path: str) -> str:
        return client.get(path, cast_to=httpx.Response).text

    def texts() -> None:
        """llama.cpp: completion, and its stream has the same text"""
        ask = {"prompt": "Once upon a time", "n_predict": 20, "seed": 3}
        whole = post("/completion", **ask)["content"]
        stream = client.post("/completion", body={**ask, "stream": True},
                             cast_to=httpx.Response).text
        parts = [json.loads(line[6:]) for line in stream.splitlines() if line[:6] == "data: "]
        assert "".join(part["content"] for part in parts) == whole

    def tokens() -> None:
        """llama.cpp: tokenize, detokenize and apply-template"""
        ids = post("/tokenize", content="Once upon a time")["tokens"]
        assert post("/detokenize", tokens=ids)["content"] == "Once upon a time"
        assert STORY[0]["content"] in post("/apply-template", messages=STORY)["prompt"]

    def holes() -> None:
        """llama.cpp: infill is refused with a message if the model has no tokens for holes"""
        refused(openai.BadRequestError,
                lambda: post("/infill", input_prefix="a = ", input_suffix="\n"))

    def slots() -> None:
        """llama.cpp: a slot is saved, erased and restored, and continues"""
        ask = {"prompt": "Once upon a time there was", "n_predict": 8, "seed": 3, "id_slot": 0}
        first = post("/completion", **ask)["content"]
        saved = post("/slots/0?action=save", filename="a.bin")
        assert post("/slots/0?action=erase")["n_erased"] == saved["n_saved"]
        assert post("/slots/0?action=restore", filename="a.bin")["n_restored"] == saved["n_saved"]
        again = post("/completion", **ask)
        assert again["content"] == first and again["timings"]["prompt_n"] == 1
        assert len(json.loads(get("/slots"))) == 4

    def streams() -> None:
        """an abandoned stream resumes, and stops on request"""
        stream = client.post("/completion", cast_to=httpx.Response, body={
            "prompt": "Once", "n_predict": 20, "seed": 3, "stream": True, "resumable": True})
        name = stream.headers["x-stream-id"]
        events = stream.text.split("\n\n")
        assert get(f"/v1/streams/{name}?after=3") == "\n\n".join(events[4:])
        client.delete(f"/v1/streams/{name}", cast_to=httpx.Response)
        refused(openai.NotFoundError, lambda: get(f"/v1/streams/{name}"))

    def tells() -> None:
        """props, metrics, health, the document of all routes and the page"""
        assert json.loads(get("/props"))["total_slots"] == 4
        assert "loom_texts_total" in get("/metrics")
        assert json.loads(get("/health"))["status"] == "ok"
        assert "/v1/messages" in json.loads(get("/openapi.json"))["paths"]
        assert get("/").startswith("<!doctype html>")

    for check in (texts, tokens, holes, slots, streams, tells):
        checks.run(check)


# Shows the form of a call, which the sample model does not write.
CALLING = ("{% if tools %}<tool_call>{{ tools | tojson }}{% endif %}{% for m in messages %}"
           "{{ m.role }}: {{ m.content }}{% endfor %}")
SCHEMA = {"type": "object", "required": ["days", "unit"], "additionalProperties": False,
          "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9},
                         "unit": {"enum": ["c", "f"]}}}


def is_forecast(arguments: dict) -> bool:
    return arguments["unit"] in ("c", "f") and 1 <= arguments["days"] <= 9 and len(arguments) == 2


def calls_checks(checks: Checks, url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    function = {"name": "forecast", "description": "The weather.", "parameters": SCHEMA}

    def chat() -> None:
        """openai: a chat that has to call does, streamed and whole"""
        ask = {"model": "stories", "messages": STORY, "seed": 5, "max_tokens": 200,
               "tools": [{"type": "function", "function": function}], "tool_choice": "required",
               "parallel_tool_calls": False}
        call = client.chat.completions.create(**ask).choices[0].message.tool_calls[0]
        assert call.function.name == "forecast"
        assert is_forecast(json.loads(call.function.arguments))
        with client.chat.completions.stream(**ask) as events:
            for _ in events:
                pass
            said = events.get_final_completion().choices[0].message.tool_calls[0]
        assert said.function.arguments == call.function.arguments

    def responses() -> None:
        """openai: a response that has to call does, streamed and whole, and takes the result"""
        ask = {"model": "stories", "max_output_tokens": 200, "parallel_tool_calls": False,
               "tools": [{"type": "function", "strict": True, **function}],
               "tool_choice": {"type": "function", "name": "forecast"}, "temperature": 0}
        first = client.responses.create(**ask, input="Rain?")
        assert [item.type for item in first.output] == ["function_call"]
        assert is_forecast(json.loads(first.output[0].arguments))
        parts = list(client.responses.create(**ask, input="Rain?", stream=True))
        assert parts[-1].type == "response.completed"
        assert "".join(part.delta for part in parts if part.type.endswith("arguments.delta")) == \
            first.output[0].arguments
        call = first.output[0]
        again = client.responses.create(
            model="stories", max_output_tokens=8,
            input=[{"role": "user", "content": "Rain?"}, call.to_dict(),
                   {"type": "function_call_output", "call_id": call.call_id, "output": "none"}])
        assert again.output[0].type == "message"

    def messages() -> None:
        """anthropic: a message that has to call does, streamed and whole"""
        other = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
        ask = {"model": "stories", "messages": STORY, "max_tokens": 200,
               "extra_body": {"seed": 5},
               "tools": [{"name": "forecast", "input_schema": SCHEMA}],
               "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
        whole = other.messages.create(**ask)
        assert whole.stop_reason == "tool_use" and is_forecast(whole.content[0].input)
        with other.messages.stream(**ask) as events:
            assert events.get_final_message().content[0].input == whole.content[0].input

    for check in (chat, responses, messages):
        checks.run(check)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    checks = Checks()
    with tempfile.TemporaryDirectory() as slots, \
            served(sys.argv[1], sys.argv[2], "--slot-save-path", slots) as url:
        openai_checks(checks, url)
        responses_checks(checks, url)
        anthropic_checks(checks, url)
        ollama_checks(checks, url)
        native_checks(checks, url)
    with served(sys.argv[1], sys.argv[2], "--chat-template", CALLING) as url:
        calls_checks(checks, url)
    print(f"{checks.done - checks.failed} of {checks.done} hold; "
          f"openai {openai.__version__}, anthropic {anthropic.__version__}")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
