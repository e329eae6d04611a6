"""`loom pull` against a hub of our own (mirror.py): what comes, what goes wrong, what is cut short.

LOOM_PROGRAM=build/dev/cli/loom python3 -m unittest discover -s tests/hub
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from hub_case import BIG, DEADLINE, LOOM, HubTest, model_files
from mirror import git_hash


class WhatIsPulled(HubTest):
    def test_a_model_comes_with_what_it_needs_in_the_layout_of_the_cache(self):
        repo = self.mirror.add("org/name", model_files())
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual(path, self.repo_folder("org/name") / "snapshots" / repo.commit)
        self.assertEqual(
            sorted(p.name for p in path.iterdir()),
            ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"],
        )
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)
        self.assertEqual((self.repo_folder("org/name") / "refs" / "main").read_text(), repo.commit)
        self.assertEqual(
            os.readlink(path / "config.json"), "../../blobs/" + repo.etag("config.json")
        )
        self.assertEqual(len(self.blobs("org/name")), 4)

    def test_a_second_pull_loads_nothing(self):
        self.mirror.add("org/name", model_files())
        self.good(self.pull("hf:org/name"))
        told = json.loads(self.good(self.pull("hf:org/name", "--json")))
        self.assertEqual(told["loaded_bytes"], 0)
        self.assertEqual(
            len(self.mirror.requests_of("/model.safetensors")), 2
        )  # the redirect and the file

    def test_shards_come_and_copies_of_the_weights_do_not(self):
        files = model_files(consolidated__safetensors=b"again")
        del files["model.safetensors"]
        files |= {
            "model-00001-of-00002.safetensors": b"one",
            "model-00002-of-00002.safetensors": b"two",
            "model.safetensors.index.json": b"{}",
            "model.fp16.safetensors": b"half",
        }
        self.mirror.add("org/name", files)
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual(
            sorted(p.name for p in path.glob("*.safetensors")),
            ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
        )

    def test_a_gguf_file_is_chosen_by_name_or_quantisation(self):
        files = {
            "m-Q4_K_M.gguf": b"four",
            "m-Q8_0.gguf": b"eight",
            "mmproj-F16.gguf": b"eye",
            "big/m-BF16-00001-of-00002.gguf": b"a",
            "big/m-BF16-00002-of-00002.gguf": b"b",
        }
        self.mirror.add("org/name", files)
        ran = self.pull("hf:org/name")
        self.assertEqual(Path(self.good(ran).strip()).name, "m-Q4_K_M.gguf")
        self.assertIn("Q4_K_M (4 B) of 3 GGUF files; hf:org/name:BF16 takes another of", ran.stderr)
        self.refused(self.pull("hf:org/name:Q5_K_M"), 3, "did you mean 'Q4_K_M'")
        for word, name in [("q8_0", "m-Q8_0.gguf"), ("m-Q4_K_M.gguf", "m-Q4_K_M.gguf")]:
            path = Path(self.good(self.pull(f"hf:org/name:{word}")).strip())
            self.assertEqual(path.name, name)
        path = Path(self.good(self.pull("hf:org/name:BF16")).strip())
        self.assertEqual(len(list(path.parent.glob("*.gguf"))), 2)

    def test_weights_of_pytorch_are_taken_if_there_are_no_others(self):
        shards = {f"pytorch_model-0000{i}-of-00002.bin": b"part" for i in (1, 2)}
        index = {"pytorch_model.bin.index.json": b"{}", "config.json": b"{}"}
        self.mirror.add("org/old", {**shards, **index, "training_args.bin": b"no", "a.txt": b"no"})
        folder = Path(self.good(self.pull("hf:org/old")).strip())
        names = {path.name for path in folder.iterdir()}
        self.assertEqual(names, {*shards, *index})
        self.assertIn("pytorch", self.good(self.loom("list")))
        self.mirror.add("org/both", {"m-Q4_0.gguf": b"g", "pytorch_model.bin": b"t"})
        self.assertEqual(Path(self.good(self.pull("hf:org/both")).strip()).name, "m-Q4_0.gguf")

    def test_without_q4_k_m_the_nearest_size_that_can_be_read_is_chosen(self):
        cases = [
            (["Q8_0", "Q5_K_M", "IQ4_XS", "F16"], "Q5_K_M"),
            (["Q8_0", "Q2_K", "BF16"], "Q2_K"),
            (["IQ4_XS", "IQ3_M", "Q8_0"], "Q8_0"),
        ]
        for i, (types, chosen) in enumerate(cases):
            self.mirror.add(f"org/n{i}", {f"m-{t}.gguf": t.encode() for t in types})
            path = self.good(self.pull(f"hf:org/n{i}")).strip()
            self.assertEqual(Path(path).name, f"m-{chosen}.gguf")
        self.mirror.add("org/unclear", {"a-Q4_0.gguf": b"a", "b-Q4_0.gguf": b"b"})
        self.refused(self.pull("hf:org/unclear"), 2, "2 GGUF files; say which")
        self.mirror.add("org/unread", {"m-IQ2_XS.gguf": b"a", "m-IQ3_S.gguf": b"b"})
        self.refused(self.pull("hf:org/unread"), 2, "2 GGUF files; say which")

    def test_a_file_comes_as_it_is_when_it_is_named(self):
        self.mirror.add("org/name", model_files())
        path = Path(self.good(self.pull("hf:org/name:onnx/model.onnx")).strip())
        self.assertEqual(path.read_bytes(), b"onnx")
        self.assertEqual(path.resolve().parent.name, "blobs")
        self.refused(self.pull("hf:org/name:onnx/modle.onnx"), 3, "did you mean 'onnx/model.onnx'")

    def test_a_revision_is_a_branch_or_a_commit(self):
        repo = self.mirror.add("org/name", model_files())
        self.good(self.pull(f"hf:org/name@{repo.commit}"))
        self.assertFalse((self.repo_folder("org/name") / "refs").exists())
        self.good(self.pull("hf:org/name@refs/pr/1"))
        self.assertEqual((self.repo_folder("org/name") / "refs/refs/pr/1").read_text(), repo.commit)
        self.refused(self.pull("hf:org/name@v9"), 3, "has no revision 'v9'")

    def test_a_hub_that_lists_names_alone_is_asked_for_headers(self):
        self.mirror.add("org/name", model_files(), blobs=False)
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)

    def test_names_that_are_none(self):
        for name in [
            "hf:",
            "hf:a/b/c",
            "hf:../x",
            "hf:a/..",
            "hf:a/b:",
            "hf:a/b@",
            "hf:a/b:../x",
            "hf:-a/b",
        ]:
            self.refused(self.pull(name), 2, "write hf:ORG/NAME")

    def test_no_endpoint_but_http(self):
        for address in ["ftp://x", "file:///etc/passwd", "x", "http://", "http://x y"]:
            self.refused(
                self.loom("pull", "hf:a/b", "--endpoint", address), 2, "not an address of a hub"
            )


class WhatGoesWrong(HubTest):
    def test_a_cut_connection_is_gone_on_from(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("model.safetensors", cut=1_000_000)
        self.mirror.fault("model.safetensors", cut=500_000)
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)
        ranges = [h.get("range") for m, p, h in self.mirror.cdn_seen]
        self.assertEqual(ranges, [None, "bytes=1000000-", "bytes=1500000-"])
        self.assertEqual(self.mirror.cdn_seen[1][2].get("if-range"), '"cdn-1"')

    def test_another_file_at_the_host_is_loaded_from_the_beginning(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("model.safetensors", cut=1_000_000)
        self.refused(self.pull("hf:org/name", "--retries", "0"), 1, "run the same command to go on")
        self.mirror.cdn_tag = "cdn-2"
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)

    def test_a_host_that_cuts_and_cannot_go_on_is_not_asked_for_ever(self):
        again = "from the beginning"
        wrongs = [{"start": 0}, {"start": 7}, {"status": 416}, {"cut": 900_000}]
        for number, wrong in enumerate(wrongs):
            repo = f"org/endless{number}"
            self.mirror.add(repo, model_files())
            for _ in range(50):
                self.mirror.fault("model.safetensors", cut=1_000_000)
                self.mirror.fault("model.safetensors", **wrong)
            self.mirror.ranges = "cut" not in wrong
            asked = len(self.mirror.cdn_seen)
            ran = self.pull("hf:" + repo, "--retries", "2")
            self.refused(ran, 1, "run the same command to go on")
            self.assertEqual(again in ran.stderr, "cut" not in wrong, ran.stderr)
            self.assertLessEqual(len(self.mirror.cdn_seen) - asked, 4)
            self.mirror.faults.clear()
            path = Path(self.good(self.pull("hf:" + repo)).strip())
            self.assertEqual((path / "model.safetensors").read_bytes(), BIG)

    def test_a_host_without_ranges(self):
        self.mirror.ranges = False
        self.mirror.add("org/name", model_files())
        self.mirror.fault("model.safetensors", cut=1_000_000)
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)

    def test_wrong_bytes_are_not_kept(self):
        for name, repo_name in [("config.json", "org/one"), ("model.safetensors", "org/two")]:
            repo = self.mirror.add(repo_name, model_files())
            self.mirror.fault(name, flip=True)
            self.refused(self.pull("hf:" + repo_name), 3, name, "another hash")
            self.assertNotIn(repo.etag(name), self.blobs(repo_name))
            self.assertFalse((self.repo_folder(repo_name) / "refs").exists())
            self.good(self.pull("hf:" + repo_name))

    def test_a_wrong_beginning_of_an_earlier_run_is_loaded_once_more(self):
        repo = self.mirror.add("org/name", model_files())
        blobs = self.repo_folder("org/name") / "blobs"
        blobs.mkdir(parents=True)
        (blobs / (repo.etag("model.safetensors") + ".incomplete")).write_bytes(b"x" * 1000)
        path = Path(self.good(self.pull("hf:org/name")).strip())
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)

    def test_sizes_that_are_not_those_of_the_list(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("model.safetensors", longer=True)
        self.refused(self.pull("hf:org/name"), 3, "more than the 3000000 bytes")
        self.mirror.fault("model.safetensors", length=17)
        self.refused(self.pull("hf:org/name"), 3, "has 17 bytes")
        self.good(self.pull("hf:org/name"))

    def test_refusals_say_what_to_do(self):
        self.mirror.add("org/gated", model_files(), token="secret-1")
        self.refused(self.pull("hf:org/none"), 1, "401", "HF_TOKEN")
        self.refused(self.pull("hf:org/gated"), 1, "401", "HF_TOKEN")
        self.refused(self.pull("hf:org/none", HF_TOKEN="secret-2"), 3, "no such model")
        self.refused(self.pull("hf:org/gated", HF_TOKEN="secret-2"), 1, "403", "accept the terms")

    def test_a_token_comes_from_the_environment_or_a_file_and_stays_at_the_hub(self):
        self.mirror.add("org/gated", model_files(), token="secret-1")
        (self.home / "token").write_text("secret-1\n")
        self.good(self.pull("hf:org/gated"))
        self.assertTrue(
            all(h.get("authorization") == "Bearer secret-1" for _, _, h in self.mirror.seen)
        )
        self.assertTrue(self.mirror.cdn_seen)
        self.assertTrue(all("authorization" not in h for _, _, h in self.mirror.cdn_seen))
        (self.home / "token").write_text("secret-2")
        shutil.rmtree(self.home / "hub")
        self.good(self.pull("hf:org/gated", HF_TOKEN=" secret-1 "))

    def test_a_busy_hub_is_asked_again_when_it_says(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("list", status=429, headers={"Retry-After": "1"})
        self.mirror.fault("list", status=503)
        self.mirror.fault("model.safetensors", status=500)
        start = time.monotonic()
        ran = self.pull("hf:org/name")
        self.good(ran)
        self.assertGreater(time.monotonic() - start, 1.5)
        self.assertIn("429", ran.stderr)

    def test_a_hub_that_stays_busy_ends_it(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("list", times=2, status=503)
        self.refused(self.pull("hf:org/name", "--retries", "1"), 1, "503", "the same command")
        self.mirror.fault("list", status=429, headers={"Retry-After": "86400"})
        self.refused(self.pull("hf:org/name"), 1, "429")

    def test_a_hub_that_says_nothing_more_is_left(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("model.safetensors", hold=0)
        self.good(self.pull("hf:org/name", "--timeout", "1"))
        self.assertGreaterEqual(len(self.mirror.cdn_seen), 2)

    def test_hostile_names_never_leave_the_cache(self):
        for name in [
            "../../evil",
            "/etc/evil",
            "a/../../evil",
            "a//b",
            "a\\..\\evil",
            "a\0b",
            "a\nb",
            ".",
            "..",
            "",
            "x" * 300,
            "./a.json",
        ]:
            with self.subTest(name=name):
                repo = self.mirror.add("org/evil", model_files())
                repo.extra = [{"rfilename": name, "size": 4, "blobId": git_hash(b"evil")}]
                self.refused(self.pull("hf:org/evil"), 3, "nonsense")
                self.assertFalse((self.repo_folder("org/evil") / "snapshots").exists())

    def test_hostile_hashes_and_sizes(self):
        for entry in [
            {"blobId": "../../evil"},
            {"blobId": "a" * 39},
            {"blobId": "A" * 40},
            {"size": -5},
            {"size": 1 << 62},
            {"lfs": {"sha256": "/etc/passwd"}},
            {"size": "x", "blobId": 7},
        ]:
            with self.subTest(entry=entry):
                repo = self.mirror.add("org/evil", model_files())
                repo.extra = [
                    {"rfilename": "evil.json", "size": 4, "blobId": git_hash(b"evil")} | entry
                ]
                self.assertNotEqual(self.pull("hf:org/evil", "--retries", "0").returncode, 0)
                self.assertFalse((self.repo_folder("org/evil") / "snapshots").exists())

    def test_hostile_lists(self):
        self.mirror.add("org/evil", {})
        commit = "0" * 40
        many = [{"rfilename": f"{i}.json", "size": 1, "blobId": commit} for i in range(20_000)]
        many.append({"rfilename": "model.safetensors", "size": 1, "blobId": commit})
        for body in [
            b"",
            b"[]",
            b"{",
            b"[" * 100_000,
            b'{"sha": "../../x", "siblings": []}',
            json.dumps({"sha": commit}).encode(),
            json.dumps({"sha": commit, "siblings": 7}).encode(),
            json.dumps({"sha": commit, "siblings": [7, None]}).encode(),
            json.dumps({"sha": commit, "siblings": many}).encode(),
            b" " * (65 << 20),
        ]:
            with self.subTest(body=body[:40]):
                self.mirror.answer_list = body
                self.refused(self.pull("hf:org/evil"), 3)

    def test_a_link_in_the_place_of_a_partial_file_is_not_followed(self):
        repo = self.mirror.add("org/name", model_files())
        blobs = self.repo_folder("org/name") / "blobs"
        blobs.mkdir(parents=True)
        victim = self.home / "victim"
        victim.write_text("keep")
        (blobs / (repo.etag("model.safetensors") + ".incomplete")).symlink_to(victim)
        self.assertEqual(self.pull("hf:org/name").returncode, 1)
        self.assertEqual(victim.read_text(), "keep")

    def test_no_room_is_said_before_anything_is_loaded(self):
        repo = self.mirror.add("org/big", {"config.json": b"{}"})
        repo.extra = [
            {"rfilename": "model.safetensors", "size": 1 << 45, "lfs": {"sha256": "0" * 64}}
        ]
        self.refused(self.pull("hf:org/big"), 1, "are free", "HF_HOME")


class WhatIsCutShort(HubTest):
    def start(self, name: str) -> subprocess.Popen:
        return subprocess.Popen(
            [LOOM, "pull", name, "--endpoint", self.mirror.url],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.clean_env(self.home),
        )

    def partial_sizes(self, repo: str) -> list[int]:
        """The bytes of each file under way. One may be renamed between its listing and its size."""
        sizes = []
        for path in (self.repo_folder(repo) / "blobs").glob("*.incomplete"):
            if ".etag." not in path.name:
                with contextlib.suppress(FileNotFoundError):
                    sizes.append(path.stat().st_size)
        return sizes

    def wait_for_partial(self, repo: str, size: int):
        """Waits for so many bytes of the weights; the other files have far fewer."""
        end = time.monotonic() + DEADLINE
        while not any(s >= size for s in self.partial_sizes(repo)):
            if time.monotonic() > end:
                self.fail(f"{self.partial_sizes(repo)} bytes came, not {size}")
            time.sleep(0.005)

    def test_a_kill_and_the_next_run_goes_on(self):
        self.mirror.add("org/name", model_files())
        for round_ in range(1, 4):
            self.mirror.fault("model.safetensors", hold=400_000)
            run = self.start("hf:org/name")
            self.wait_for_partial("org/name", 400_000 * round_)
            run.kill()
            run.communicate()
            self.assertFalse((self.repo_folder("org/name") / "refs").exists())
        told = json.loads(self.good(self.pull("hf:org/name", "--json")))
        self.assertLess(told["loaded_bytes"], len(BIG))
        self.assertEqual((Path(told["path"]) / "model.safetensors").read_bytes(), BIG)
        self.assertFalse([b for b in self.blobs("org/name") if b.endswith(".incomplete")])

    def test_ctrl_c_says_that_the_same_command_goes_on(self):
        self.mirror.add("org/name", model_files())
        self.mirror.fault("model.safetensors", hold=400_000)
        run = self.start("hf:org/name")
        self.wait_for_partial("org/name", 400_000)
        run.send_signal(signal.SIGINT)
        _, says = run.communicate(timeout=DEADLINE)
        self.assertEqual(run.returncode, 130, says)
        self.assertIn("goes on from there", says)
        self.assertLess(
            json.loads(self.good(self.pull("hf:org/name", "--json")))["loaded_bytes"], len(BIG)
        )

    def test_four_programs_pull_one_model_and_it_is_loaded_once(self):
        self.mirror.add("org/name", model_files())
        self.mirror.pace = 0.005
        runs = [self.start("hf:org/name") for _ in range(4)]
        for run in runs:
            out, says = run.communicate(timeout=DEADLINE)
            self.assertEqual(run.returncode, 0, says)
            self.assertEqual((Path(out.strip()) / "model.safetensors").read_bytes(), BIG)
        self.assertEqual(len(self.mirror.cdn_seen), 1)

    def test_nothing_is_removed_while_it_is_loaded(self):
        self.mirror.add("org/name", model_files())
        self.good(self.pull("hf:org/name"))
        lock = self.home / "hub/.locks/models--org--name/loom.lock"
        with open(lock) as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            self.refused(self.loom("rm", "name", "--yes"), 1, "being loaded")
        self.good(self.loom("rm", "name", "--yes"))

    def test_a_pipe_sees_the_path_and_nothing_else(self):
        self.mirror.add("org/name", model_files())
        ran = self.pull("hf:org/name", "--quiet")
        self.assertEqual(ran.stderr, "")
        self.assertEqual(ran.stdout.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
