"""Writes sums of what the Python package `tokenizers` makes of many texts as normal form C.

    python nfc.py > ../../engine/tokenizer/nfc/testdata/sums.txt
"""
import hashlib

from tokenizers import normalizers

nfc = normalizers.NFC().normalize_str
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
# Where the characters are that do not stay as they are, and some that do.
BLOCKS = [(0x41, 0x5A), (0xC0, 0x17F), (0x300, 0x36F), (0x300, 0x36F), (0x340, 0x345), (0x591, 0x5C7), (0x930, 0x95F), (0x9C7, 0x9DF),
          (0xB47, 0xB5D), (0xDCA, 0xDDE), (0xF40, 0xFB9), (0x1025, 0x102E), (0x1100, 0x1112), (0x1161, 0x1175), (0x11A7, 0x11C2),
          (0x1B05, 0x1B43), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x20D0, 0x20F0), (0x2126, 0x212B), (0x2ADC, 0x2ADC), (0x304B, 0x309A),
          (0xAC00, 0xAC60), (0xF900, 0xF910), (0xFB1D, 0xFB4E), (0x11099, 0x110BA), (0x114B9, 0x114BE), (0x1D15E, 0x1D16F), (0x2F800, 0x2F810)]


class Random:
    """splitmix64, as in the test."""
    def __init__(self, seed):
        self.s = seed

    def below(self, n):
        m = (1 << 64) - 1
        self.s = (self.s + 0x9E3779B97F4A7C15) & m
        z = self.s
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & m
        z = (z ^ z >> 27) * 0x94D049BB133111EB & m
        return (z ^ z >> 31) % n


def total(texts):
    h = hashlib.sha256()
    for t in texts:
        h.update(nfc(t).encode() + b"\xff")
    return h.hexdigest()


def random_texts():
    r = Random(1)
    for _ in range(20000):
        n = 1 + r.below(12)
        text = ""
        for _ in range(n):
            lo, hi = BLOCKS[r.below(len(BLOCKS))]
            text += chr(lo + r.below(hi - lo + 1))
        yield text


print("alone", total(chr(c) for c in POINTS))
print("behind", total("a\u0345" + chr(c) for c in POINTS))
print("between", total("e" + chr(c) + "\u0323\u0301" for c in POINTS))
print("random", total(random_texts()))
