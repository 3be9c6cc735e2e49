"""Writes unicode_tables.def: what the `tokenizers` package (its parts follow Unicode 8 to 17) takes each character for.

    python data/text/make_unicode_tables.py    # needs the packages tokenizers and CPython 3.11 (Unicode 14, as PCRE2 10.42)

Classes are asked from the package, character by character, so that ids equal its ids; combining classes and
composition pairs, which it does not tell, come from Python's unicodedata for the characters the package knows.
"""

import pathlib
import struct
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()


def cut_out(splitter, beside):
    """Characters that `splitter` cuts from two copies of `beside`."""
    return {c for c in CODE_POINTS if len(splitter.pre_tokenize_str(beside + chr(c) + beside)) > 1}


def matched(pattern, beside):
    return cut_out(pre_tokenizers.Split(Regex(pattern), "isolated"), beside)


def changed(normalizer):
    return {c: out for c in CODE_POINTS if (out := normalizer.normalize_str(chr(c))) != chr(c)}


def ranges(points):
    """{code point: value} or a set -> [first, last, value]."""
    values = points if isinstance(points, dict) else dict.fromkeys(points)
    out = []
    for c in sorted(values):
        if out and out[-1][1] == c - 1 and out[-1][2] == values[c]:
            out[-1][1] = c
        else:
            out.append([c, c, values[c]])
    return out


def table(kind, name, rows):
    text, line = [f"constexpr {kind} {name}[] = {{"], "   "
    for row in rows:
        cell = " {" + ", ".join(row) + "},"
        if len(line) + len(cell) > 120:
            text.append(line)
            line = "   "
        line += cell
    return "\n".join([*text, line, "};"]) + "\n"


def spans(name, points):
    return table("Range", name, [(hex(a), hex(b)) for a, b, _ in ranges(points)])


def literal(text):
    return '"' + "".join(f"\\{b:03o}" for b in text.encode()) + '"'


def strings(name, mapping):
    return table("Mapping", name, [(hex(c), literal(mapping[c])) for c in sorted(mapping)])


def bert(**switches):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **switches})


def joining():
    """Characters that are one grapheme with the letter before them: a map for "a" alone then takes both away."""
    units = [1 << 31] * 768      # the root's children stand at 256 ^ byte, the text of "a" is named at 512
    units[0], units[256 ^ 97] = 256 << 10, (256 ^ 97 ^ 512) << 10 | 1 << 8 | 97
    normalizer = normalizers.Precompiled(struct.pack("<769I", 4 * 768, *units) + b"X\0")
    return {c for c in CODE_POINTS if normalizer.normalize_str("a" + chr(c)) == "X"}


def main():
    assert unicodedata.unidata_version == "14.0.0"
    hangul = range(0xAC00, 0xD7A4)
    nfd = {c: s for c, s in changed(normalizers.NFD()).items() if c not in hangul}
    nfkd = {c: s for c, s in changed(normalizers.NFKD()).items() if c not in hangul}
    accents = changed(normalizers.StripAccents())
    nfc = normalizers.NFC()
    pairs = {}
    for c in nfd:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and nfc.normalize_str(chr(c)) == chr(c):
            pairs[int(parts[0], 16), int(parts[1], 16)] = c
    newer = {c: k for k in CATEGORIES for c in matched(rf"\p{{{k}}}", "a" if k[0] != "L" else "0")
             if unicodedata.category(chr(c)) != k}
    classes = {c: k for c in accents if (k := unicodedata.combining(chr(c)))}
    spaces = cut_out(pre_tokenizers.WhitespaceSplit(), "a")
    cleaned = changed(bert(clean_text=True))
    stripped = {c for c in CODE_POINTS if bert(strip_accents=True).normalize_str(chr(c)) == ""}
    parts = [
        f"// Made by make_unicode_tables.py with tokenizers {tokenizers.__version__}: not edited by hand. Ranges are"
        " inclusive and ascend.\n",
        "// Numbers as the pre-tokenizer Digits sees them.\n" + spans("kNumeric", cut_out(pre_tokenizers.Digits(True), "a")),
        "// White space.\n" + spans("kWhitespace", spaces),
        "// Letters, marks, digits and connectors: \\w of the pre-tokenizer Whitespace and of single_word.\n"
        + spans("kWord", set(CODE_POINTS) - cut_out(pre_tokenizers.Whitespace(), "a")),
        "// Punctuation of BertPreTokenizer and Punctuation.\n" + spans("kPunctuation", cut_out(pre_tokenizers.Punctuation(), "a")),
        "// What BertNormalizer drops when it cleans.\n" + spans("kControl", [c for c in cleaned if cleaned[c] == ""]),
        "// What BertNormalizer puts spaces around.\n" + spans("kChinese", set(changed(bert(handle_chinese_chars=True)))),
        "// Accents that BertNormalizer strips after NFD.\n" + spans("kNonspacing", stripped),
        "// Marks that StripAccents drops.\n" + spans("kMark", [c for c in accents if accents[c] == ""]),
        "// What is one grapheme with the character before it.\n" + spans("kJoining", joining()),
        "// Lower case, one character at a time.\n" + strings("kLower", changed(normalizers.Lowercase())),
        "// Full canonical decompositions, Hangul left out.\n" + strings("kCanonical", nfd),
        "// Full compatibility decompositions where they differ from the canonical.\n"
        + strings("kCompatibility", {c: s for c, s in nfkd.items() if nfd.get(c) != s}),
        "// Characters that compose: first, second, the pair's composition.\n"
        + table("Composition", "kCompositions", [(hex(a), hex(b), hex(c)) for (a, b), c in sorted(pairs.items())]),
        "// Canonical combining classes other than 0.\n"
        + table("ClassRange", "kCombining", [(hex(a), hex(b), str(k)) for a, b, k in ranges(classes)]),
        "// General categories of characters newer than Unicode 14, for patterns.\n"
        + table("CategoryRange", "kNewer", [(hex(a), hex(b), f'"{k}"') for a, b, k in ranges(newer)]),
    ]
    pathlib.Path(__file__).with_name("unicode_tables.def").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
