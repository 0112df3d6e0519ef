"""Makes the synchronous client of the asynchronous one: make_sync.py [--check]"""

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "src/holdfast"
WORDS = {
    "AsyncClient": "Client",
    "AsyncIterator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aiter_raw": "iter_raw",
    "aread": "read",
    "asyncio": "time",
}

text = (FOLDER / "_async_client.py").read_text()
text = text.split('"""\n', 1)[1]
text = re.sub(r"\b(async|await) ", "", text)
text = re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), text)
text = '"""The synchronous client. `make_sync.py` makes it of the asynchronous one; changes belong there."""\n' + text
target = FOLDER / "_client.py"
if "--check" in sys.argv and target.read_text() != text:
    sys.exit("clients/python/src/holdfast/_client.py is out of date: run clients/python/make_sync.py")
if "--check" not in sys.argv:
    target.write_text(text)
