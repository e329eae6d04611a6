"""llama.cpp as a reader of GGUF files, in a separate process: a wrong file may end that process.

    llama = Llama(LIBRARIES)     # a folder with libllama: package/bins/linux-x64 of the npm package
                                 # @node-llama-cpp/linux-x64, llama.cpp 0.5.0.
    llama.ids(model, texts)      # token ids of texts (bytes), special tokens parsed;
                                 # around=False: without those that a model puts around a text.
    llama.nats(model, text, 24)  # the mean loss of the next token over windows of a text

Both raise LlamaFailure if llama.cpp refuses the file. The next call then starts another process.
"""

import ctypes
import glob
import json
import math
import os
import struct
import subprocess
import sys


class LlamaFailure(Exception):
    pass


class Blob(ctypes.Structure):
    """Parameters of llama.cpp. A call copies the number of bytes that it knows."""

    _fields_ = [("bytes", ctypes.c_ubyte * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


POINTER, INT, BOOL, TEXT = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool, ctypes.c_char_p
CALLS = {
    "llama_model_default_params": (Blob, []),
    "llama_context_default_params": (Blob, []),
    "llama_model_load_from_file": (POINTER, [TEXT, Blob]),
    "llama_model_free": (None, [POINTER]),
    "llama_model_get_vocab": (POINTER, [POINTER]),
    "llama_vocab_n_tokens": (INT, [POINTER]),
    "llama_init_from_model": (POINTER, [POINTER, Blob]),
    "llama_free": (None, [POINTER]),
    "llama_get_memory": (POINTER, [POINTER]),
    "llama_memory_clear": (None, [POINTER, BOOL]),
    "llama_batch_init": (Batch, [INT, INT, INT]),
    "llama_decode": (INT, [POINTER, Batch]),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [POINTER, INT]),
    "llama_tokenize": (INT, [POINTER, TEXT, INT, POINTER, INT, BOOL, BOOL]),
}
LOG = ctypes.CFUNCTYPE(None, INT, TEXT, POINTER)
# Offsets of the fields set here in llama_context_params of llama.cpp 0.5.0, and their defaults.
CONTEXT = {
    "n_ctx": (0, 512),
    "n_threads": (28, 4),
    "n_threads_batch": (32, 4),
    "flash_attn_type": (52, -1),
    "type_k": (104, 1),
    "type_v": (108, 1),
}


class Library:
    """The calls of libllama, and the last opened model."""

    def __init__(self, folder):
        for stem in ("libggml-base", "libggml.", "libllama."):
            path = sorted(glob.glob(f"{folder}/{stem}*so*"))[0]
            self.calls = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            if stem == "libggml.":
                self.calls.ggml_backend_load_all_from_path(folder.encode())
        for name, (result, arguments) in CALLS.items():
            function = getattr(self.calls, name)
            function.restype, function.argtypes = result, arguments
        self.lines = []
        self.log = LOG(lambda level, text, _: self.lines.append(text.decode("utf-8", "replace")))
        self.calls.llama_log_set(self.log, None)
        self.batch = self.calls.llama_batch_init(512, 0, 1)
        self.model, self.seen = None, None

    def reason(self, what):
        said = [line.strip() for line in self.lines if line.strip(" .\n")]
        errors = [line for line in said if "error" in line or "fail" in line or "missing" in line]
        return f"{what}: {(errors or said or ['no reason'])[0]}"

    def open(self, path):
        now = os.stat(path)
        seen = (path, now.st_ino, now.st_size, now.st_mtime_ns)
        if self.model and seen == self.seen:
            return
        if self.model:
            self.calls.llama_model_free(self.model)
        self.lines.clear()
        loaded = self.calls.llama_model_load_from_file
        self.model = loaded(path.encode(), self.calls.llama_model_default_params())
        if not self.model:
            raise LlamaFailure(self.reason("llama.cpp refuses the file"))
        self.vocabulary, self.seen = self.calls.llama_model_get_vocab(self.model), seen

    def ids(self, text, around=True):
        out = (ctypes.c_int32 * (len(text) * 4 + 16))()
        count = self.calls.llama_tokenize(
            self.vocabulary, text, len(text), out, len(out), around, True
        )
        if count < 0:
            raise LlamaFailure(f"llama_tokenize: {count}")
        return out[:count]

    def context(self, positions):
        """In float32 throughout, one thread."""
        blob = self.calls.llama_context_default_params()
        wanted = {"n_ctx": positions, "n_threads": 1, "n_threads_batch": 1}
        for name, (at, default) in CONTEXT.items():
            found = struct.unpack_from("<i", blob.bytes, at)[0]
            if found != default:
                raise LlamaFailure(f"{name} of llama_context_params is {found}, not {default}")
            struct.pack_into("<i", blob.bytes, at, wanted.get(name, 0))
        made = self.calls.llama_init_from_model(self.model, blob)
        if not made:
            raise LlamaFailure(self.reason("llama.cpp makes no context"))
        return made

    def nats(self, ids, window):
        """The mean loss over windows of `window` predictions, each without earlier context."""
        context = self.context(max(window, 32))
        size, losses = self.calls.llama_vocab_n_tokens(self.vocabulary), []
        try:
            for begin in range(0, (len(ids) - 1) // window * window, window):
                self.feed(context, ids[begin : begin + window])
                for i in range(window):
                    row = self.calls.llama_get_logits_ith(context, i)[:size]
                    top = max(row)
                    total = math.fsum(math.exp(v - top) for v in row)
                    losses.append(math.log(total) + top - row[ids[begin + i + 1]])
        finally:
            self.calls.llama_free(context)
        return math.fsum(losses) / len(losses)

    def feed(self, context, ids):
        self.calls.llama_memory_clear(self.calls.llama_get_memory(context), True)
        self.batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            self.batch.token[i], self.batch.pos[i] = token, i
            self.batch.n_seq_id[i], self.batch.seq_id[i][0], self.batch.logits[i] = 1, 0, 1
        code = self.calls.llama_decode(context, self.batch)
        if code:
            raise LlamaFailure(f"llama_decode: {code}")


def answer(library, request):
    library.open(request["model"])
    texts = [bytes.fromhex(text) for text in request["texts"]]
    if request["do"] == "ids":
        return [library.ids(text, request["around"]) for text in texts]
    return library.nats(library.ids(texts[0]), request["window"])


def serve(folder):
    # Only answers reach the reader: llama.cpp prints to stdout too.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    library = Library(folder)
    for line in sys.stdin:
        try:
            reply = {"answer": answer(library, json.loads(line))}
        except LlamaFailure as failure:
            reply = {"failure": str(failure)}
        print(json.dumps(reply), file=answers, flush=True)
    os._exit(0)


class Llama:
    def __init__(self, folder):
        self.folder, self.child = str(folder), None

    def ask(self, request):
        if self.child is None:
            self.child = subprocess.Popen(
                [sys.executable, __file__, self.folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        try:
            self.child.stdin.write(json.dumps(request) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            ended, self.child = self.child.wait(), None
            raise LlamaFailure(f"llama.cpp ended with {ended}")
        reply = json.loads(line)
        if "failure" in reply:
            raise LlamaFailure(reply["failure"])
        return reply["answer"]

    def ids(self, model, texts, around=True):
        hexed = [text.hex() for text in texts]
        return self.ask({"do": "ids", "model": str(model), "texts": hexed, "around": around})

    def nats(self, model, text, window):
        hexed = [text.hex()]
        return self.ask({"do": "nats", "model": str(model), "texts": hexed, "window": window})


if __name__ == "__main__":
    serve(sys.argv[1])
