"""Hostile documents: two that never end, and a bystander's own, which is read beside them."""
import io, itertools, json, time, zipfile, zlib

from .beside import Attack, side_by_side
from .server import MALLORY, tally

CONTENT_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def word_document(text):
    """Returns a Word document of one paragraph."""
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", CONTENT_TYPES)
        archive.writestr("_rels/.rels", RELATIONS)
        archive.writestr(
            "word/document.xml",
            '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>",
        )
    return contents.getvalue()


def endless_pdf(number):
    """Returns a PDF of 1.2 kB whose map of characters has ranges of four thousand million codes."""
    ranges = b"\n".join(b"<00000000> <FFFFFFFF> [<0041>]" for _ in range(40))
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        b"1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange\n40 beginbfrange\n"
        + ranges + b"\nendbfrange endcmap end end"
    )
    packed, text = zlib.compress(cmap), b"BT /F1 12 Tf 72 720 Td <00000041> Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text),
        b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[6 0 R]/ToUnicode 7 0 R>>",
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed),
    ]
    out, places = b"%%PDF-1.7\n%%%d\n" % number, []
    for index, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (index, body)
    start = len(out)
    out += b"xref\n0 8\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer<</Size 8/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start


def quadratic_html(number):
    """Returns a page of 500 kB whose elements a parser closes in quadratic time."""
    return b"<!--%d-->" % number + b"<div>" * 100_000 + b"hello"


def with_file(file):
    """Returns the body of a run whose message has this file."""
    return {"input": [{"type": "text", "text": "[tokens=1]"}, {"type": "file", "file_id": file}]}


class Documents(Attack):
    """Two users and an anonymous address send a PDF and a page that never end, in chats and to collections."""

    # The model reads no PDFs, so the worker extracts their texts.
    settings = {"HOLDFAST_MODEL_FILES": "none"}
    numbers = itertools.count()

    def __init__(self):
        self.acts = (self.read_word_document,)

    def read_word_document(self, connection):
        """Sends a new Word document in a chat, and waits for the end of the run."""
        import http.client

        text = f"Document {time.monotonic_ns()}"
        headers = {**connection.headers, "content-type": WORD, "content-disposition": 'attachment; filename="a.docx"'}
        upload = http.client.HTTPConnection("127.0.0.1", connection.port, timeout=60)
        upload.request("POST", "/v1/files", word_document(text), headers)
        answer = json.loads(upload.getresponse().read())
        upload.close()
        body = with_file(answer["id"])
        run = connection.ask("POST", "/v1/runs", body)["run"]["id"]
        status = connection.ask("GET", f"/v1/runs/{run}/wait?timeout_ms=60000")["status"]
        if status != "completed":
            raise RuntimeError(status)

    def strike(self, server, until):
        secrets = [server.json("POST", "/v1/users/anonymous")["token"] for _ in range(2)]
        callers = [{"user": MALLORY}, {"user": "trudy"}] + [{"authorization": "Bearer " + secret} for secret in secrets]
        collections = [server.json("POST", "/v1/collections", {"name": "c"}, **caller)["id"] for caller in callers]

        def send(i):
            caller, number = callers[i % len(callers)], next(self.numbers)
            kind = [("a.pdf", "application/pdf", endless_pdf), ("a.html", "text/html", quadratic_html)][number % 2]
            file = server.upload(kind[0], kind[1], kind[2](number * 100 + i), **caller)
            if " " in file:
                time.sleep(0.5)
                return file.split(" ")
            if i % 2:
                path = f"/v1/collections/{collections[i % len(callers)]}/documents"
                answer = server.ask("POST", path, {"file_id": file}, **caller)
            else:
                body = with_file(file)
                answer = server.ask("POST", "/v1/runs", body, **caller)
            time.sleep(0.2)
            return answer

        return tally(side_by_side(12, until, send))


ATTACKS = [Documents]
