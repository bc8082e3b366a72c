"""Writes the Unicode tables of the tokenizer as the Python package `tokenizers` has them.

Each code point is shown to the package itself, because its parts follow different versions of
Unicode (its regular expressions another than its digits and its normal forms), and none of them
that of the Go release.

    python tables.py ../../engine/tokenizer

split/classes.bin: records of gap (code points of no class since the last record), length, and one
byte of classes; numbers as unsigned LEB128. nfc/nfc.bin: two lists, each with its length in front:
combining classes (gap, length, class), and full decompositions (gap to the code point before, what
it is put together from with the last of its decomposition or 0 if it never is, length, the
decomposition). Hangul syllables are left out, they have a rule.
"""
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def matching(expression):
    out, split = set(), pre_tokenizers.Split(Regex(expression), "removed")
    for i in range(0, len(POINTS), 4096):
        part = POINTS[i : i + 4096]
        kept = set()
        for _, (a, b) in split.pre_tokenize_str("".join(map(chr, part))):
            kept.update(range(a, b))
        out.update(c for k, c in enumerate(part) if k not in kept)
    return out


def digits():
    out, split = set(), pre_tokenizers.Digits(individual_digits=True)
    for i in range(0, len(POINTS), 2048):
        part = POINTS[i : i + 2048]
        for _, (a, b) in split.pre_tokenize_str("".join("a" + chr(c) + "a" for c in part)):
            if b - a == 1 and a % 3 == 1:
                out.add(part[a // 3])
    return out


def words():
    """Code points in front of which a token that is to stand alone is not found."""
    t = Tokenizer(models.BPE(vocab={"x": 0}, merges=[], unk_token="x", fuse_unk=True))
    t.add_tokens([AddedToken("foo", single_word=True, normalized=False)])
    foo = t.token_to_id("foo")
    return {c for c in POINTS if foo not in t.encode(chr(c) + "foo").ids}


def runs(value_of):
    """Yields gap, length, value for runs of code points with the same value that is not zero."""
    end, c = 0, 0
    while c < 0x110000:
        v = value_of(c)
        start = c
        while c < 0x110000 and value_of(c) == v:
            c += 1
        if v:
            yield start - end, c - start, v
            end = c


def leb(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def classes():
    of = [0] * 0x110000
    sets = [matching(rf"\p{{{k}}}") for k in "LN"] + [matching(r"\s")] + [matching(rf"\p{{{k}}}") for k in "MPS"]
    for bit, points in enumerate(sets + [digits(), words()]):
        for c in points:
            of[c] |= 1 << bit
    return b"".join(leb(gap) + leb(n) + bytes([v]) for gap, n, v in runs(of.__getitem__))


def normal():
    nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str
    hangul = range(0xAC00, 0xAC00 + 11172)
    full = {c: nfd(chr(c)) for c in POINTS if c not in hangul}
    full = {c: d for c, d in full.items() if d != chr(c)}
    # A combining class shows by the order into which two marks are brought.
    def before(x, y):
        return x != y and nfd("a" + y + x) == "a" + x + y
    last = "\u0345"  # of the highest class
    marks = {c for c in POINTS if c not in full and c not in hangul and before(chr(c), last)} | {ord(last)}
    known = {}  # a mark per class
    for c in sorted(marks):
        if unicodedata.combining(chr(c)):
            known.setdefault(unicodedata.combining(chr(c)), chr(c))
    levels = sorted(known)
    ccc = {}
    for c in marks:
        ccc[c] = next(k for k in levels if not before(known[k], chr(c)))  # the first that does not go in front
    out = b""
    records = [leb(gap) + leb(n) + leb(v) for gap, n, v in runs(lambda c: ccc.get(c, 0))]
    out += leb(len(records)) + b"".join(records)
    at, records = 0, []
    for c in sorted(full):
        d = full[c]
        head = 0  # what it comes together from, with the last one of its decomposition
        if len(d) > 1 and nfc(d) == chr(c):
            head = nfc(d[:-1])
            assert len(head) == 1, f"U+{c:04X}: {head!r} does not come together"
            head = ord(head)
        records.append(leb(c - at) + leb(head) + leb(len(d)) + b"".join(leb(ord(x)) for x in d))
        at = c
    return out + leb(len(records)) + b"".join(records)


if __name__ == "__main__":
    base = sys.argv[1]
    with open(base + "/split/classes.bin", "wb") as f:
        f.write(classes())
    with open(base + "/nfc/nfc.bin", "wb") as f:
        f.write(normal())
