"""loom.load() of any file, and files of images, sounds and tables as inputs."""

import struct
import unittest
import unittest.mock
import wave

import loom
import numpy as np
from loom import _media
from loom.bridge._onnx import INT64, OnnxGraph
from support import STORIES, Scratch, points

X, Y = points(60)


def image_bytes(values):
    """A binary PNM image of [height, width, 3] bytes."""
    return b"P6 %d %d 255\n" % (values.shape[1], values.shape[0]) + values.tobytes()


class Load(Scratch):
    def network(self):
        return loom.Sequential([loom.Dense(8), loom.Dense(3)], input=4)

    def test_every_file_gives_its_class(self):
        for ending in (".entity", ".json", ".onnx", ".npz"):
            path = self.folder / f"net{ending}"
            self.network().save(path)
            self.assertIs(type(loom.load(path)), loom.Network, ending)
        self.assertIs(type(loom.load(STORIES)), loom.LLM)
        self.assertIs(type(loom.load(STORIES.read_bytes(), name="x.entity")), loom.LLM)
        self.assertIs(type(loom.load(self.network().save_bytes())), loom.Network)
        loom.convert(STORIES, self.folder / "stories.gguf")
        self.assertIs(type(loom.load(self.folder / "stories.gguf")), loom.LLM)
        self.assertIs(type(loom.load((self.folder / "stories.gguf").read_bytes())), loom.LLM)
        loom.convert(STORIES, self.folder / "stories")
        self.assertIs(type(loom.load(self.folder / "stories")), loom.LLM)
        tokenizer = self.folder / "stories" / "tokenizer.json"
        if tokenizer.exists():
            self.assertIs(type(loom.load(tokenizer)), loom.Tokenizer)

    def test_a_graph_that_no_network_can_be_is_an_evaluator(self):
        graph = OnnxGraph()
        graph.input("x", ["n", 4])
        graph.node("NonZero", ["x"], ["y"], {})
        graph.output("y", INT64)
        file = self.folder / "graph.onnx"
        file.write_bytes(graph.serialize(20))
        found = loom.load(file)
        self.assertIs(type(found), loom.Evaluator)
        out = found.run({"x": np.array([[0, 2, 0, 1]], np.float32)})
        self.assertEqual(out["y"].tolist(), [[0, 0], [1, 3]])

    def test_wrong_files_say_what_to_do(self):
        (self.folder / "a.csv").write_text("1,2\n")
        for source, error, words in (
            (self.folder / "a.csv", loom.InvalidArgumentError, "Dataset.from_file"),
            ("/nowhere/net.entity", loom.NotFoundError, "net.entity"),
            (b"nothing", loom.LoomError, ""),
        ):
            with self.subTest(source=source), self.assertRaisesRegex(error, words):
                loom.load(source)


class Files(Scratch):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(4)
        self.values = draw.integers(0, 256, (8, 8, 3)).astype(np.uint8)
        self.net = loom.Sequential([loom.Conv2d(4, padding=1), loom.Dense(2)], input=(3, 8, 8))
        self.path = self.folder / "a.ppm"
        self.path.write_bytes(image_bytes(self.values))

    def test_an_image_is_predicted_as_its_pixels(self):
        pixels = self.values.transpose(2, 0, 1)[None].astype(np.float32) / 255
        expected = self.net.predict(pixels)
        np.testing.assert_allclose(self.net.predict(self.path), expected, atol=1e-6)
        both = self.net.predict([self.path, str(self.path)])
        np.testing.assert_array_equal(both[0], both[1])
        self.assertEqual(len(self.net.classify(self.path)), 1)

    def test_grey_and_deep_images_and_comments(self):
        grey = self.values[:, :, 0]
        (self.folder / "b.pgm").write_bytes(b"P5\n# made by hand\n8 8\n255\n" + grey.tobytes())
        deep = (grey.astype(np.uint16) * 257).astype(">u2")
        (self.folder / "c.pgm").write_bytes(b"P5 8 8 65535\n" + deep.tobytes())
        a, b = (self.net.predict(self.folder / name) for name in ("b.pgm", "c.pgm"))
        np.testing.assert_allclose(a, b, atol=1e-6)

    def test_damaged_images_are_told(self):
        whole = image_bytes(self.values)
        for data, words in (
            (whole[:-1], "ends before its last pixel"),
            (b"P6 8 8 100\n" + whole[11:], "255 or 65535"),
            (b"P6 0 8 255\n", "no size"),
            (b"P6 8 99999999999999999999 255\n", "no size"),
        ):
            with self.subTest(words=words):
                self.path.write_bytes(data)
                with self.assertRaisesRegex(loom.BadFileError, words):
                    self.net.predict(self.path)

    def test_a_folder_is_trained_and_predicted(self):
        for name, shift in (("dark", 0), ("light", 128)):
            (self.folder / "photos" / name).mkdir(parents=True)
            for i in range(4):
                values = (self.values // 2 + shift + i).astype(np.uint8)
                (self.folder / "photos" / name / f"{i}.ppm").write_bytes(image_bytes(values))
        self.net.fit(self.folder / "photos", epochs=30, rate=0.02)
        self.assertEqual(self.net.info["classes"], ["dark", "light"])
        found = self.net.classify(self.folder / "photos" / "light" / "1.ppm")
        self.assertEqual(found, ["light"])

    def test_a_sound_is_read(self):
        path = self.folder / "a.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(struct.pack("<400h", *range(0, 8000, 20)))
        net = loom.Sequential([loom.Dense(2)], input=400)
        self.assertEqual(net.predict(path).shape, (1, 2))

    def test_a_table_is_read(self):
        path = self.folder / "a.csv"
        path.write_text("\n".join(",".join(map(str, row)) for row in X[:5].tolist()))
        net = loom.Sequential([loom.Dense(2)], input=4)
        np.testing.assert_allclose(net.predict(path), net.predict(X[:5]), atol=1e-6)


class WithoutReaders(Scratch):
    """Replaces the library by one like that of a wheel, which does not read PNG and JPEG."""

    def setUp(self):
        super().setUp()
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("Pillow is not installed")
        self.image = Image
        self.net = loom.Sequential([loom.Conv2d(4, padding=1), loom.Dense(2)], input=(3, 8, 8))
        self.values = np.random.default_rng(5).integers(0, 256, (8, 8, 3)).astype(np.uint8)

    def read(self, path):
        """As in a wheel: the library reads no file of these endings."""

        def reader(there):
            if there.endswith((".png", ".jpg")) or there == str(self.folder / "photos"):
                raise loom.UnsupportedError("this build has no reader of PNG and JPEG")
            return loom.Dataset.from_file(there, self.net, inputs_only=path.is_file())

        return _media.read(path, reader)

    def test_pillow_reads_images_of_every_mode(self):
        for mode in ("RGB", "L", "P", "RGBA", "1", "LA", "I;16"):
            image = self.image.fromarray(self.values)
            if mode == "I;16":
                deep = self.values[:, :, 0].astype(np.uint16) * 257
                image = self.image.fromarray(deep)
            else:
                image = image.convert(mode)
            path = self.folder / f"{mode.replace(';', '')}.png"
            image.save(path)
            with self.subTest(mode=mode):
                data, room = self.read(path)
                self.assertEqual(data.x.shape, (1, 3, 8, 8))
                grey = mode in ("L", "1", "LA", "I;16")
                plain = image.convert("L" if grey else "RGB") if mode != "I;16" else None
                expected = np.asarray(plain) if plain is not None else deep / 257
                expected = np.asarray(expected, np.float32)
                expected = expected[None].repeat(3, 0) if grey else expected.transpose(2, 0, 1)
                np.testing.assert_allclose(data.x[0], expected / 255, atol=1e-6)
                room.cleanup()

    def test_a_jpeg_is_turned_as_its_camera_says(self):
        image = self.image.fromarray(self.values)
        exif = self.image.Exif()
        exif[0x0112] = 6
        image.save(self.folder / "a.jpg", exif=exif, quality=95)
        image.save(self.folder / "b.jpg", quality=95)
        turned, straight = (self.read(self.folder / n)[0].x[0] for n in ("a.jpg", "b.jpg"))
        np.testing.assert_allclose(turned, np.rot90(straight, -1, (1, 2)), atol=1e-6)

    def test_a_folder_of_images_has_its_classes(self):
        for name in ("cat", "dog"):
            (self.folder / "photos" / name).mkdir(parents=True)
            self.image.fromarray(self.values).save(self.folder / "photos" / name / "1.png")
        data, _ = self.read(self.folder / "photos")
        self.assertEqual((len(data), data.classes), (2, ["cat", "dog"]))

    def test_the_missing_package_is_named(self):
        self.image.fromarray(self.values).save(self.folder / "a.png")
        with unittest.mock.patch.object(_media, "import_module", side_effect=ImportError):
            with self.assertRaisesRegex(loom.UnsupportedError, "pip install pillow"):
                self.read(self.folder / "a.png")


if __name__ == "__main__":
    unittest.main()
