"""The story engine: a context of words, a tiny template language, and tidying.

A template is a string with `{slot}` for a word from the story's context and
`[one|two|]` for a free choice (choices nest; an empty one is allowed).
"""

import random
import re

import words as W

_TOKEN = re.compile(r"[\[\]|]|\{\w+\}|[^\[\]|{}]+")
_PARSED = {}


def _parse(template):
    """Turn a template into nested lists: str, ("slot", name) or ("pick", [...])."""
    stack = [[[]]]  # a stack of choices, each a list of sequences
    for tok in _TOKEN.findall(template):
        if tok == "[":
            stack.append([[]])
        elif tok == "]":
            done = stack.pop()
            stack[-1][-1].append(("pick", done))
        elif tok == "|" and len(stack) > 1:
            stack[-1].append([])
        elif tok[0] == "{":
            stack[-1][-1].append(("slot", tok[1:-1]))
        else:
            stack[-1][-1].append(tok)
    if len(stack) != 1:
        raise ValueError("unbalanced brackets: " + template)
    return stack[0][0]


def _tidy(text):
    """Capital letters, a/an and spaces: templates may ignore all three."""
    text = re.sub(r" +", " ", text).strip()
    text = re.sub(r" ([.,!?])", r"\1", text)
    text = re.sub(r"\bBut One\b", "But one", text).replace("But On Sat", "But on Sat")
    text = re.sub(r"\b([Aa]) (?=[aeio]|u(?!ni|s))", r"\1n ", text)
    # The start, after a full stop, and after an opening quote.  A lower-case
    # word after `!"` or `?"` may be a dialogue tag, so it is left alone.
    return re.sub(r'(^"?|(?<!Mr)(?<!Mrs)[.!?] "?|\." "?|[,:.] ")([a-z])', lambda m: m[1] + m[2].upper(), text)


PRONOUNS = {"he": ("he", "him", "his"), "she": ("she", "her", "her")}


class Story:
    """One story while it is being told: its random choices, words and sentences."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.v = {}
        self.out = []
        self.used_names = set()
        self.action = 0  # the sentences before this one only introduce the hero
        self.request = None  # a phrase for "Tell me a story about ..."

    # -- choosing -----------------------------------------------------------
    def pick(self, items):
        return items[int(self.rng.random() * len(items))]

    def pick2(self, items):
        return self.rng.sample(items, 2)

    def chance(self, p):
        return self.rng.random() < p

    def name(self, names):
        while True:
            name = self.pick(names)
            if self.chance(0.06):
                # A made-up name now and then: the model must learn to repeat
                # any name that it is given, not only those of the lists.
                name = self.render("[B|D|F|G|K|L|M|N|P|R|S|T|V|Z|Br|Ch|Cl|Fr|Gr|Tr|Th|W]")
                name += self.render("[a|e|i|o|u|ee|oo|ai][d|k|l|m|n|r|v|ll|nn|rr|nd][a|e|i|o|y|in|a]")
            if name not in self.used_names:
                self.used_names.add(name)
                return name

    # -- writing ------------------------------------------------------------
    def render(self, template):
        seq = _PARSED.get(template)
        if seq is None:
            seq = _PARSED[template] = _parse(template)
        parts = []
        self._render(seq, parts)
        return "".join(parts)

    def _render(self, seq, parts):
        for item in seq:
            if isinstance(item, str):
                parts.append(item)
            elif item[0] == "slot":
                parts.append(self.v[item[1]])
            else:
                self._render(self.pick(item[1]), parts)

    def add(self, *alternatives):
        """Append one of the alternatives (each one or more whole sentences)."""
        text = _tidy(self.render(self.pick(alternatives)))
        if text:
            self.out.append(text)

    def maybe(self, p, *alternatives):
        if self.chance(p):
            self.add(*alternatives)

    def text(self):
        """The finished story.  Some stories start right in the action."""
        out = self.out
        start = self.action
        if start and re.match(r"One (day|morning|afternoon|sunny|windy|warm)|On Saturday", out[start]) and self.chance(0.22):
            # Only if the hero comes before any "his"; otherwise "his" has no referent.
            first = re.search(rf"\b({self.v['h']}|{self.v['he']}|his|her)\b(?!')", out[start])
            if first and first[1] not in ("his", "her"):
                out = [self._introduce(out[start])] + out[start + 1:]
        return " ".join(out)

    def _introduce(self, sentence):
        """Name the hero in a sentence that was written to follow an introduction."""
        v = self.v
        who = self.pick([f"a {v['kind']} named {v['h']}", f"a {v['hadj']} {v['kind']} named {v['h']}",
                         f"{v['h']} the {v['kind']}" if self.animal else v["h"]])
        name = v["h"] if v["h"] in sentence else v["he"]
        sentence = re.sub(rf"\b{name}\b(?!')", who, sentence, count=1)
        # "One sunny day, a girl ..." can also be "It was a sunny day. A girl ..."
        if self.chance(0.4):
            sentence = re.sub(r"^One (sunny|windy|warm) day, ", r"It was a \1 day. ", sentence)
        return _tidy(sentence)

    # -- casting ------------------------------------------------------------
    def set_person(self, prefix, name, pronoun):
        he, him, his = PRONOUNS[pronoun]
        v = self.v
        v[prefix] = name
        v[prefix + "he"], v[prefix + "him"], v[prefix + "his"] = he, him, his
        v[prefix + "He"], v[prefix + "His"] = he.capitalize(), his.capitalize()

    def kid(self, girl=None):
        """Cast the hero as a child."""
        girl = self.chance(0.5) if girl is None else girl
        self.animal = False
        self._hero(self.name(W.GIRLS if girl else W.BOYS), "she" if girl else "he",
                   "girl" if girl else "boy", self.pick(W.KID_ADJ), self.pick(W.KID_HOBBIES))
        self.v["home"] = "house"

    def beast(self, kinds=None):
        """Cast the hero as an animal."""
        kind = self.pick(kinds or list(W.ANIMAL_HOMES))
        girl = self.chance(0.5)
        pool = W.ANIMAL_NAMES_SHE if girl else W.ANIMAL_NAMES_HE
        if self.chance(0.25):
            pool = W.GIRLS if girl else W.BOYS
        self.animal = True
        self._hero(self.name(pool), "she" if girl else "he", kind, self.pick(W.ANIMAL_ADJ), self.pick(W.ANIMAL_HOBBIES))
        self.v["home"] = W.ANIMAL_HOMES.get(kind, "house")

    def anyone(self, p_animal=0.4):
        if self.chance(p_animal):
            self.beast()
        else:
            self.kid()

    def _hero(self, name, pronoun, kind, adj, hobby):
        self.set_person("h", name, pronoun)
        v = self.v
        for key in ("he", "him", "his", "He", "His"):  # the hero's own go without a prefix
            v[key] = v.pop("h" + key)
        v["kind"], v["hadj"], v["hobby"] = kind, adj, hobby
        v["self"] = "herself" if pronoun == "she" else "himself"
        self.request = f"a {kind} named {name}" if self.chance(0.85) else f"a {kind}"

    def friend(self):
        """A friend of the hero: {f} is the name, {mf} the first mention."""
        same = self.chance(0.3)
        hero_she = self.v["he"] == "she"
        she = hero_she if same else not hero_she
        if self.animal:
            kind = self.pick([k for k in W.ANIMAL_HOMES if k != self.v["kind"]])
            name = self.name(W.ANIMAL_NAMES_SHE if she else W.ANIMAL_NAMES_HE)
            self.v["mf"] = f"{self.v['his']} friend {name} the {kind}"
            self.v["fkind"] = kind
        else:
            name = self.name(W.GIRLS if she else W.BOYS)
            self.v["mf"] = f"{self.v['his']} friend {name}"
            self.v["fkind"] = "girl" if she else "boy"
        self.set_person("f", name, "she" if she else "he")

    def family(self, only=None):
        """A relative: {g} is "his mom", {G} is "Mom"."""
        choices = [m for m in W.FAMILY if only is None or m[0] in only]
        word, name, pronoun = self.pick(choices)
        self.set_person("G", name, pronoun)
        self.v["g"] = f"{self.v['his']} {word}"
        self.v["gword"] = word

    def sibling(self):
        """A brother or sister: {sib} is "his little brother Ben", {b} is "Ben"."""
        she = self.chance(0.5)
        name = self.name(W.GIRLS if she else W.BOYS)
        self.set_person("b", name, "she" if she else "he")
        self.v["sib"] = f"{self.v['his']} [big|little|] {'sister' if she else 'brother'} {name}"
        self.v["sib"] = re.sub(" +", " ", self.render(self.v["sib"]))

    def neighbor(self):
        name, pronoun = self.pick(W.NEIGHBORS)
        self.set_person("n", name, pronoun)

    def pet(self, kinds=None):
        """The hero's pet: {p} is the animal, {pn} its name."""
        she = self.chance(0.4)
        self.set_person("pn", self.name(W.ANIMAL_NAMES_SHE if she else W.ANIMAL_NAMES_HE), "she" if she else "he")
        self.v["p"] = self.pick(kinds or W.PETS)
        self.v["padj"] = self.pick(W.PET_ADJ)

    def toy(self, nouns=None):
        """The thing the story turns on: {toy} and {adj}, "red" and "ball"."""
        self.v["toy"] = self.pick(nouns or W.TOYS)
        self.v["adj"] = self.pick(W.COLORS) if self.chance(0.65) else self.pick(W.QUALITIES)
        if self.v["toy"] == "balloon" and self.v["adj"] in ("old", "soft"):
            self.v["adj"] = "red"

    def place(self, places=None):
        self.v["place"], self.v["at"], self.v["to"] = self.pick(places or W.OUTDOORS)

    # -- the parts every plot shares ------------------------------------------
    def meet(self, short=False):
        """The opening that introduces the hero."""
        self.v["village"] = self.pick(W.VILLAGES)
        where = "[in {village}|in a cozy {home}|near a big forest]" if not self.animal else "[in a cozy {home}|in the forest|on a green hill|near a quiet river]"
        if self.animal and self.v["home"] in ("tree", "pond", "tunnel", "dam", "glade"):
            where = "[in the forest|on a green hill|near a quiet river|near an old oak tree]"
        self.add(
            "Once upon a time, there was a {hadj} {kind} named {h}.",
            "Once upon a time, there was a {hadj} {kind} named {h}.",
            "Once upon a time, a {hadj} {kind} named {h} lived " + where + ".",
            "Once upon a time, " + where + ", there lived a {hadj} {kind} named {h}.",
            "There once was a {hadj} {kind} named {h}.",
            "There was a {hadj} {kind} named {h}.",
            "{h} was a {hadj} {kind}.",
            "{h} was a {hadj} {kind} who lived " + where + ".",
            "{h} was a {kind} who loved to {hobby}." if not short else "{h} was a {hadj} {kind}.",
            "{h} the {kind} lived " + where + "." if self.animal else "{h} lived " + where + ".",
            "A {hadj} {kind} named {h} lived " + where + ".",
            "Long ago, there was a {hadj} {kind} named {h}.",
            "There was once a {hadj} {kind}. {His} name was {h}.",
            ("The" if self.animal else "A") + " {hadj} {kind} lived " + where + ". {His} name was {h}.",
        )
        if not short and "who loved" not in self.out[-1]:
            self.maybe(0.6, "{He} loved to {hobby}.", "{He} [liked|loved] to {hobby} [every day|all day long].",
                       "Every day, {he} liked to {hobby}.", "{h} loved to {hobby}.")
        self.action = len(self.out)

    def owns(self):
        """The opening that gives the hero {adj} {toy}, with or without a meeting first."""
        self.request = self.pick([self.request, self.request, f"{self.v['h']} and a {self.v['adj']} {self.v['toy']}"])
        if self.animal or self.chance(0.45):
            self.meet(short=True)
            self.add("{He} had a {adj} {toy}.", "{h} had a {adj} {toy} that {he} loved very much.",
                     "{His} favorite thing was a {adj} {toy}.", "{h} had a [very special|lovely] {adj} {toy}.")
        else:
            self.add("{h} had a {adj} {toy}.", "{h} had a {adj} {toy}.", "{h} had a [new|nice] {adj} {toy}." if self.v["adj"] not in ("new", "old") else "{h} had a {adj} {toy}.",
                     "Once upon a time, {h} had a {adj} {toy}.", "{h} loved {his} {adj} {toy}.",
                     "One day, {h} got a {adj} {toy}.")
        self.maybe(0.6, "{He} took it everywhere.", "{He} played with it every day.", "It was {his} favorite [toy|thing].",
                   "{He} loved it very much.", "It was a gift from {his} [grandma|grandpa|mom|dad].")

    def with_pet(self):
        """The opening "Lily and her dog ..."."""
        self.v["village"] = self.pick(W.VILLAGES)
        self.request = self.pick([self.request, f"{self.v['h']} and a {self.v['p']} named {self.v['pn']}", f"a {self.v['p']} named {self.v['pn']}"])
        self.add("{h} and {his} {p} {pn} were best friends.", "{h} and {his} {p} were best friends. The {p} was named {pn}.",
                 "{h} had a {padj} {p} named {pn}.", "{h} and {his} {p} [loved to play together|did everything together]. The {p}'s name was {pn}.",
                 "Once upon a time, there was a {hadj} {kind} named {h}. {He} had a {padj} {p} named {pn}.",
                 "{h} was a {hadj} {kind}. {He} had a {p} named {pn}.",
                 "The {padj} {p} was named {pn}. {pnHe} lived with a {hadj} {kind} named {h}.",
                 "Once upon a time, {h} and {his} {p} {pn} lived in {village}.")
        self.maybe(0.5, "They played together every day.", "{pn} was {padj} and [sweet|kind|smart].", "{h} loved {pn} very much.",
                   "{pn} followed {h} everywhere.")

    def one_day(self):
        """A time phrase that starts the action, as a slot."""
        self.v["oneday"] = self.render("[One day|One day|One morning|One sunny day|One afternoon|One windy day|On Saturday|One warm day]")

    def lesson(self, key, who="{h}"):
        self.v["lesson"] = self.render(self.pick(W.LESSONS[key]))
        self.add(f"{who} learned that {{lesson}}.", f"That day, {who} learned that {{lesson}}.", f"From that day on, {who} knew that {{lesson}}.",
                 f"Now {who} knew that {{lesson}}.", f"And {who} never forgot that {{lesson}}.")

    def close(self, key=None, together=None, p_lesson=0.6):
        """The end: a feeling, a lesson, or both.  `together` names who shares it."""
        outside = "at" in self.v  # a story without a place happens at home
        said = False
        if key and self.chance(p_lesson):
            self.lesson(key)
            said = True
        if not said or self.chance(0.35):
            if together:
                self.v["both"] = together
                self.add("{h} and {both} were very happy.", "{h} and {both} [laughed|smiled] " + ("[all the way home|together]." if outside else "together."),
                         "{h} and {both} were [good|best] friends from that day on." if together == self.v.get("f") or together == self.v.get("pn") else "{h} and {both} hugged each other.",
                         "It was a wonderful night for {h} and {both}." if "night" in self.v else "It was a wonderful day for {h} and {both}.",
                         "{h} and {both} went home with a smile." if outside else "{h} was so glad to have {both}.")
            else:
                self.add("{h} went home with a [big|happy] smile." if outside else "{h} was [so|very] happy.", "{h} felt [happy|proud|warm inside|very happy].",
                         "It was the best day ever." if "night" not in self.v else "{h} felt safe and warm.",
                         "That night, {h} fell asleep with a smile." if "night" not in self.v else "{h} smiled in the dark.",
                         "{h} was [so|very] happy.", "And {h} smiled all day long." if "night" not in self.v else "{h} was not afraid of the dark anymore.")
        self.maybe(0.12, "The end.")
