"""Models that verbs download by themselves: names and addresses of a hub in place of a path.

LOOM_PROGRAM=build/dev/cli/loom python3 -m unittest discover -s tests/hub
"""

import json
import unittest

from hub_case import ROOT, HubTest

STORIES = (ROOT / "models" / "stories.entity").read_bytes()
NAME = "hf:org/stories:stories.entity"
ONCE = ["-p", "Once", "--max-tokens", "3"]


class ModelsByName(HubTest):
    def setUp(self):
        super().setUp()
        self.mirror.add("org/stories", {"stories.entity": STORIES}, lfs={"stories.entity"})

    def hub(self, *words: str, **env: str):
        return self.loom(*words, HF_ENDPOINT=self.mirror.url, **env)

    def offline(self, *words: str):
        return self.hub(*words, HF_HUB_OFFLINE="1")

    def text(self, *words: str) -> str:
        return self.good(self.loom("run", str(ROOT / "models" / "stories.entity"), *words))

    def test_run_downloads_a_model_once(self):
        first = self.hub("run", NAME, *ONCE)
        self.assertEqual(self.good(first), self.text(*ONCE))
        self.assertIn("org/stories: ", first.stderr)
        self.assertIn("downloaded to", first.stderr)
        self.mirror.seen.clear()
        for words in [["run", NAME, *ONCE], ["run", "stories:stories.entity", *ONCE]]:
            self.assertEqual(self.good(self.hub(*words)), first.stdout)
        self.assertEqual(self.good(self.offline("run", NAME, *ONCE)), first.stdout)
        self.assertEqual(self.mirror.seen, [])

    def test_every_form_of_an_address_is_the_same_model(self):
        page = "org/stories/{}/main/stories.entity"
        names = [
            f"{self.mirror.url}/{page.format('resolve')}?download=true",
            f"{self.mirror.url}/{page.format('blob')}",
            f"https://huggingface.co/{page.format('resolve')}",
            f"HTTPS://HuggingFace.co/{page.format('blob')}#L1",
            f"huggingface.co/{page.format('raw')}",
            "hf.co/org/stories:stories.entity",
            "https://hf.co/org/stories:stories.entity",
        ]
        wanted = self.text(*ONCE)
        for name in names:
            self.assertEqual(self.good(self.hub("run", name, *ONCE, "--quiet")), wanted, name)
        self.assertEqual(len(self.mirror.requests_of("/stories.entity")), 2)  # and the redirect

    def test_a_page_names_its_revision(self):
        commit = self.mirror.repos["org/stories"].commit
        for revision in [commit, "refs%2Fpr%2F1"]:
            page = f"{self.mirror.url}/org/stories/resolve/{revision}/stories.entity"
            self.good(self.hub("info", page))
        refs = self.repo_folder("org/stories") / "refs"
        self.assertEqual((refs / "refs" / "pr" / "1").read_text(), commit)
        self.assertFalse((refs / "main").exists())
        # Without a revision it is main.
        new = self.mirror.add("org/stories", {"stories.entity": STORIES, "more.txt": b"new"})
        self.good(self.offline("info", NAME))
        self.good(self.hub("info", NAME))
        self.assertEqual((refs / "main").read_text(), new.commit)

    def test_verbs_take_names(self):
        out = str(self.home / "out.gguf")
        for words in [
            ["info", NAME, "--json"],
            ["tokenize", NAME, "Once"],
            ["convert", NAME, out],
            ["run", NAME, *ONCE, "--draft", NAME],
        ]:
            self.good(self.hub(*words))

    def test_the_size_of_a_gguf_file_is_chosen_and_named(self):
        files = {}
        for dtype in ["q4_0", "q8_0"]:
            path = self.home / f"m-{dtype.upper()}.gguf"
            story = str(ROOT / "models" / "stories.entity")
            self.good(self.loom("convert", story, str(path), "--dtype", dtype))
            files[path.name] = path.read_bytes()
        self.mirror.add("org/sizes", files)
        ran = self.hub("run", "hf.co/org/sizes", *ONCE)
        self.good(ran)
        self.assertIn("Q4_0 (", ran.stderr)
        self.assertIn("of 2 GGUF files; hf:org/sizes:Q8_0 takes another of: Q8_0 (", ran.stderr)
        told = json.loads(self.good(self.hub("run", "hf.co/org/sizes:q8_0", *ONCE, "--json")))
        self.assertEqual(told["dtype"], "q8_0")

    def test_a_cut_download_goes_on(self):
        self.mirror.fault("stories.entity", cut=100_000)
        ran = self.hub("run", NAME, *ONCE)
        self.assertEqual(self.good(ran), self.text(*ONCE))
        self.assertIn("attempt 1 of", ran.stderr)

    def test_a_wrong_line_downloads_nothing(self):
        self.refused(self.hub("run", NAME, "--no-such-option"), 2, "no option --no-such-option")
        self.assertEqual(self.mirror.seen, [])

    def test_names_that_cannot_be_had_say_what_to_do(self):
        self.mirror.add("org/gated", {"stories.entity": STORIES}, token="secret-1")
        cases = [
            (["run", "hf:org/none", "-p", "x"], 1, "org/none: no such model", "check the name"),
            (["run", "hf:org/gated", "-p", "x"], 1, "401", "HF_TOKEN"),
            (["info", "hf:org/stories:storys.entity"], 3, "did you mean 'stories.entity'"),
            (["run", "https://example.com/org/name", "-p", "x"], 2, "not a page of the hub"),
            (["run", "hf.co/datasets/org/name", "-p", "x"], 2, "data set"),
            (["run", "hf:a/b/c", "-p", "x"], 2, "write hf:ORG/NAME"),
        ]
        for words, code, *texts in cases:
            ran = self.hub(*words)
            self.refused(ran, code, *texts)
            self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        gone = self.offline("run", "hf:org/new", "-p", "x")
        self.refused(gone, 3, "loom pull hf:org/new", "HF_HUB_OFFLINE is set")
        self.refused(self.offline("pull", NAME), 4, "HF_HUB_OFFLINE is set")

    def test_a_modelfile_names_a_model_of_the_hub(self):
        file = self.home / "Modelfile"
        file.write_text(f"FROM {NAME}\nPARAMETER num_predict 3\n")
        self.assertEqual(self.good(self.hub("run", str(file), "-p", "Once")), self.text(*ONCE))


if __name__ == "__main__":
    unittest.main()
