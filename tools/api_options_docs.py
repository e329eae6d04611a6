"""The page of docs that has every option of a struct, and every value of an enum."""

import api_options
from api_options import Group, Option, Struct, Vocabulary

TRAINING = "training.toml"
SHORT_TOP = """\
# {title}

<!-- {mark} -->
{help} {where}

"""
NAMED = 'In C they are `loom_options_new("{kind}", ..)`; Python has them as keywords.'
FIELDS = "In C they are fields of `{c}`; Python has them as keywords."
TOP = """\
# {title}

<!-- {mark} -->
{help}

An option of a struct inside, as `schedule.floor`, is given so:

<!-- not run: a line of each language -->
```text
C++         options.schedule.floor = 1e-4;  or  set_option(options, "schedule.floor", "1e-4")
C           loom_options_set(options, "schedule.floor", "1e-4")
Python      net.fit(x, y, schedule=loom.Schedule("cosine", floor=1e-4))
TypeScript  network.trainer({{ schedule: "cosine", scheduleFloor: 1e-4 }})
Rust, Go    TrainerOptions {{ schedule_floor: 1e-4, .. }},  TrainerOptions{{ScheduleFloor: 1e-4}}
Java, C#    new Trainer.Options().scheduleFloor(1e-4),  new TrainOptions {{ ScheduleFloor = 1e-4 }}
program     loom train --schedule cosine --floor 1e-4
```

Where nothing is given, the program trains with `--rate 0.002 --schedule cosine`.
"""


def shown(value: str) -> str:
    return value.replace("|", "\\|")


def _default(option: Option, v: Vocabulary) -> str:
    if isinstance(option.default, list):
        return ", ".join(option.default)
    if option.type in v.enums and option.default is not None:
        words = v.enums[option.type].words
        return next(w.text for w in words if w.name == option.default)
    return "" if option.default is None else api_options.number(option.default)


def _type(option: Option) -> str:
    return option.type + (", may be unset" if option.optional else "")


def _table(struct: Struct, group: str, v: Vocabulary) -> list[str]:
    lines = ["| option | flag | type | default | |", "|---|---|---|---|---|"]
    for dotted, _, option in api_options.flat(struct, v, all_=False):
        outer = next(o for o in struct.options if o.name == dotted.partition(".")[0])
        if outer.group != group:
            continue
        off = "no-" if option.type == "bool" and option.default else ""
        flag = f"`--{off}{option.flag}`" if option.flag else ""
        lines.append(f"| `{dotted}` | {flag} | {_type(option)} | {_default(option, v)} | "
                     f"{shown(api_options.sentence(option))} |")  # fmt: skip
    return lines


def page(v: Vocabulary, mark: str) -> str:
    lines = []
    for struct in v.user_structs():
        top = TOP if v.source == TRAINING else SHORT_TOP
        fields = FIELDS.format(c=struct.c or "loom_generate_options")
        where = fields if struct.c or not v.rows else ""
        where = NAMED.format(kind=struct.kind) if struct.kind else where
        lines.append(top.format(title=f"Options: {struct.name}", mark=mark, help=struct.help,
                                where=where).rstrip() + "\n")  # fmt: skip
        for group in struct.groups or (Group("", ""),):
            heading = [f"## {group.title}", ""] if group.title else []
            lines += [*heading, *_table(struct, group.name, v), ""]
    for enum in v.own_enums():
        lines += [f"## Values of {enum.name}", "", enum.help, "", "| value | |", "|---|---|"]
        lines += [f"| `{word.text}` | {shown(word.help)} |" for word in enum.words]
        lines.append("")
    return "\n".join(lines)


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    return {f"docs/{v.source.removesuffix('.toml')}-options.md": page(v, mark)
            for v in vocabularies}  # fmt: skip
