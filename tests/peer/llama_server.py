#!/usr/bin/env python3
"""llama-server's command line in front of `loom serve`, for the test suite of llama.cpp (run.sh).

Every model that the suite asks for is the one in LOOM_PEER_MODEL. Flags that only change speed or
memory there mean nothing here. An unknown flag ends the program, so its test fails.
"""
import datetime
import json
import os
import sys

# Flags with a value, and those without one, that change nothing that a client can see.
IGNORED_VALUES = {"--hf-repo", "--hf-file", "--model", "--model-url", "--ubatch-size", "-fa",
                  "--n-gpu-layers", "-ctk", "-ctv", "--cache-ram", "--reasoning-format",
                  "--pooling", "--grp-attn-n", "--grp-attn-w", "--spec-type", "--spec-draft-n-min"}
IGNORED = {"--offline", "--cont-batching", "--kv-unified", "--swa-full", "--jinja", "--no-jinja",
           "--no-cache-idle-slots", "--embedding", "--reranking"}
# Names of templates that llama.cpp has built in.
TEMPLATES = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
              "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "llama3": "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
              "{{ m.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}"
              "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    "command-r": "{% for m in messages %}<|START_OF_TURN_TOKEN|>{{ {'user': '<|USER_TOKEN|>', "
                 "'system': '<|SYSTEM_TOKEN|>'}.get(m.role, '<|CHATBOT_TOKEN|>') }}"
                 "{{ m.content | trim }}<|END_OF_TURN_TOKEN|>{% endfor %}"
                 "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
                 "{% endif %}",
}


def loom_arguments(arguments: list[str], environment: dict[str, str]) -> list[str]:
    """The arguments of `loom serve`; a key goes into the environment."""
    out, hidden, defaults = [], {"slots", "metrics"}, {}
    context, sessions, thinking, guesses = None, 1, True, 0
    rest = iter(arguments)
    for flag in rest:
        if flag in IGNORED:
            continue
        if flag in ("--slots", "--metrics"):
            hidden.discard(flag[2:])
        elif flag == "--no-slots":
            hidden.add("slots")
        elif flag in ("--verbose", "--context-shift"):
            out += [flag]
        elif flag == "--slot-save-path":
            out += [flag, next(rest)]
        elif flag == "--no-ui":
            hidden.add("page")
        elif flag in IGNORED_VALUES:
            next(rest)
        elif flag == "--model-draft":
            next(rest)
            out += ["--draft", environment["LOOM_PEER_DRAFT"]]
        elif flag == "--spec-draft-n-max":
            guesses = int(next(rest))
        elif flag == "--port":
            out += ["--port", next(rest)]
        elif flag == "--host":
            out += ["--host", next(rest)]
        elif flag == "--alias":
            # llama-server has them in order of the alphabet; the first names the model.
            out += ["--alias", ",".join(sorted(next(rest).split(",")))]
        elif flag == "--cors-origins":
            out += ["--allow-origin", next(rest)]
        elif flag == "--sleep-idle-seconds":
            out += ["--keep-alive", next(rest)]
        elif flag == "--tags":
            out += ["--tags", next(rest)]
        elif flag == "--batch-size":
            out += ["--chunk", next(rest)]
        elif flag == "--threads":
            out += ["--threads", next(rest)]
        elif flag == "--parallel":
            sessions = int(next(rest))
        elif flag == "--ctx-size":
            context = int(next(rest))
        elif flag == "--api-key":
            environment["LOOM_API_KEY"] = next(rest)
            out += ["--allow-origin", "*"]
        elif flag == "--temp":
            defaults["temperature"] = float(next(rest))
        elif flag == "--seed":
            defaults["seed"] = int(next(rest))
        elif flag == "--n-predict":
            defaults["n_predict"] = int(next(rest))
        elif flag == "--chat-template":
            name = next(rest)
            out += ["--chat-template", TEMPLATES.get(name, name)]
        elif flag == "--reasoning":
            thinking = next(rest) != "off"
        elif flag == "--chat-template-file":
            # Those of the source distribution, wherever the suite says they are.
            name = os.path.basename(next(rest))
            out += ["--chat-template-file", os.path.join(environment["LOOM_PEER_TEMPLATES"], name)]
        else:
            raise SystemExit(f"no flag of `loom serve` stands for {flag}")
    # Variables that llama-server gives to every template.
    today = datetime.date.today()
    for name, value in (("enable_thinking", json.dumps(thinking)),
                        ("date_string", today.strftime("%d %b %Y")),
                        ("datetime", today.strftime("%b %d %Y"))):
        out += ["--template-arg", f"{name}={value}"]
    if guesses and "--draft" in out:
        out += ["--guesses", str(guesses)]
    out += ["--parallel", str(sessions)]
    if context:
        most = int(environment.get("LOOM_PEER_CONTEXT", "0")) or context
        out += ["--context", str(min(context // sessions, most))]
    for route in sorted(hidden):
        out += ["--without", route]
    return out + ["--defaults", json.dumps(defaults)]


def main() -> None:
    environment = dict(os.environ)
    arguments = loom_arguments(sys.argv[1:], environment)
    program, model = environment["LOOM_PEER_PROGRAM"], environment["LOOM_PEER_MODEL"]
    os.execve(program, [program, "serve", model, "--quiet", *arguments], environment)


if __name__ == "__main__":
    main()
