#!/usr/bin/env python3
"""Write simple children's stories, the training text of the model in models/stories.entity.

Standard library only.  The same seed and count always give the same text: story
number i depends on the seed and on i alone, so the work can be split over
processes without changing the result.

Stories are separated by <|endoftext|>.  Some of them are written as a chat
(ChatML: a user asks for a story, the assistant tells it) so that the model
also works with a chat prompt.
"""

import argparse
import multiprocessing
import random

from engine import Story
from plots import PLOTS

SEPARATOR = "<|endoftext|>"
MIN_WORDS, MAX_WORDS = 60, 160

_PLOTS = [plot for plot, weight in PLOTS for _ in range(weight)]

ASK = [  # {what} is "a girl named Lily", "Tom and a red ball", ...
    "Tell me a story about {what}.", "Tell me a story about {what}.", "Tell me a story about {what}.",
    "Tell me a short story about {what}.", "Write a story about {what}.", "Can you tell me a story about {what}?",
    "Please tell me a story about {what}.",
]
ASK_ANY = ["Tell me a story.", "Tell me a short story.", "Write a story.", "Please tell me a story.", "Can you tell me a story?", "Hello! Tell me a story.", "Once upon a time"]


def one_story(seed, number):
    """The text of one story and a phrase with its subject."""
    attempt = 0
    while True:
        story = Story(f"{seed}/{number}/{attempt}")
        story.pick(_PLOTS)(story)
        text = story.text()
        if MIN_WORDS <= len(text.split()) <= MAX_WORDS:
            return text, story.request
        attempt += 1


def one_document(seed, number, chat):
    text, request = one_story(seed, number)
    rng = random.Random(f"{seed}/{number}/form")
    if rng.random() >= chat:
        return text
    ask = rng.choice(ASK_ANY) if rng.random() < 0.1 else rng.choice(ASK).format(what=request)
    return f"<|im_start|>user\n{ask}<|im_end|>\n<|im_start|>assistant\n{text}<|im_end|>\n"


def _chunk(args):
    seed, first, last, chat = args
    return [one_document(seed, i, chat) for i in range(first, last)]


def documents(seed, count, chat=0.15, jobs=1):
    """Yield `count` documents, in order."""
    step = 2000
    work = [(seed, i, min(i + step, count), chat) for i in range(0, count, step)]
    if jobs == 1:
        for item in work:
            yield from _chunk(item)
    else:
        with multiprocessing.Pool(jobs) as pool:
            for part in pool.imap(_chunk, work):
                yield from part


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
               "  generate_text.py --stories 5                      five stories on the screen\n"
               "  generate_text.py --seed 7 --stories 3 --chat 0    other stories, none as a chat\n"
               "  generate_text.py --stories 500000 --jobs 8 --out stories.txt")
    ap.add_argument("--seed", type=int, default=20261120, help="seed of all random choices (default %(default)s)")
    ap.add_argument("--stories", type=int, default=10, metavar="N", help="how many stories (default %(default)s)")
    ap.add_argument("--chat", type=float, default=0.15, metavar="P", help="share of stories told in a chat (default %(default)s)")
    ap.add_argument("--jobs", type=int, default=1, help="processes to use; does not change the text (default %(default)s)")
    ap.add_argument("--out", metavar="FILE", help="file to write (default: standard output)")
    args = ap.parse_args()

    out = open(args.out, "w", encoding="utf-8", newline="\n") if args.out else None
    for doc in documents(args.seed, args.stories, args.chat, args.jobs):
        # A separator before each story: the model meets every story right after one.
        print(SEPARATOR + doc, file=out)
    if out:
        print(SEPARATOR, end="", file=out)
        out.close()


if __name__ == "__main__":
    main()
