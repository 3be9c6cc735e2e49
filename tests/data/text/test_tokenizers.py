"""Ids of our tokenizers beside those of the package `tokenizers`: real files and texts, hard strings."""

import json

import pytest

import compress

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

HARD = [
    "", " ", "  ", "a", " a", "a ", "Hello world", "\t\ttabs\tin\t", "CRLF\r\nline\r\n\r\n", "1234567890" * 5, "3.14159 2,000,000",
    "many                          spaces   ", "\n\n\n  \n x", "👩‍👩‍👧‍👦 family 👍🏽 🇩🇪🇺🇸 ❤️", "é e\u0301 a\u0308\u0323 ẛ̣ Å Å",
    "中文字符测试 日本語テキスト 한국어 텍스트 각", "שלום עולם مرحبا بالعالم", "नमस्ते ไทย", "\x00nul\x00", "\u200b\u200d\ufeff\u00ad",
    "don't DON'T I'll we've 'S 's 'ſ", "ﬁ ﬀ ① ² ½ Ⅷ ㍿", "x" * 300, "ab" * 400, "İstanbul ǅ ß ẞ Σς",
    "<s>hello</s> <unk> <|endoftext|>a<|im_start|> [CLS] [MASK]x", "a\u00a0b\u2003c\u3000d\u180ee", "\u0301\u0301 lone", "𝕳𝖊𝖑𝖑𝖔 𐍈",
    "___ --- ... !!! ?!", "path/to/file_name.txt http://x.y/z?a=b&c=d", "\U00031350\U0001e030 new \u1c89", " ▁ under ▁▁ ", "\ufffd", "\r",
    "\u0085\u2028\u2029", "a\x0bb\x0cc", "\U0010ffff\ue000", "q\u0307\u0323", "ᄀ\u1161\u11a8 \u1100\u1161",
]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = ["the cat sat on the mat; don't they've 12345 cats?", "Ünïcödé naïve café, 中文 中文字符 日本語", "hello hello world\n\tworld  spaces 2024"]


def ours(reference, folder) -> "compress.Tokenizer":
    path = folder / "tokenizer.json"
    reference.save(str(path))
    return compress.Tokenizer(path)


def assert_same(reference, mine, texts, special=False):
    for text in texts:
        assert mine.encode(text, special).tolist() == reference.encode(text, add_special_tokens=special).ids, repr(text[:80])


def trained(model, trainer, pre=None, normalizer=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(WORDS * 4, trainer)
    return tokenizer


BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
BYTE_PRE = {
    "byte_level": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "byte_level_prefix": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "gpt2": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT2), "isolated"), BYTE_LEVEL]),
    "llama3": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), BYTE_LEVEL]),
    "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), BYTE_LEVEL]),
    "punctuation": pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), BYTE_LEVEL]),
    "whitespace": pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), BYTE_LEVEL]),
    "removed": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\s+"), "removed"), BYTE_LEVEL]),
    "previous": pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_previous"), BYTE_LEVEL]),
    "next": pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_next"), BYTE_LEVEL]),
    "inverted": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True), BYTE_LEVEL]),
    "delimiter": pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("e"), BYTE_LEVEL]),
}


@pytest.mark.parametrize("name", BYTE_PRE)
def test_byte_level_bpe(name, tmp_path):
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "<|im_start|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    reference = trained(models.BPE(), trainer, BYTE_PRE[name], decoder=decoders.ByteLevel())
    mine = ours(reference, tmp_path)
    assert_same(reference, mine, HARD + WORDS)
    assert mine.vocabulary_size == reference.get_vocab_size()


def test_bytes_that_are_no_utf8_come_back(tmp_path):
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    reference = trained(models.BPE(), trainer, pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel())
    mine = ours(reference, tmp_path)
    for text in [b"\xff", b"a\xc3", b"\xed\xa0\x80 \xf5\x80", b"ok \xe4\xb8 cut", b"\xc0\x80\x00", bytes(range(256))]:
        assert mine.decode(mine.encode(text)) == text


def test_errors_are_ours(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "Nothing"}}))
    with pytest.raises(compress.Error, match="model: expected a model of type BPE") as caught:
        compress.Tokenizer(path)
    assert caught.value.code == 3


def real_texts(shared_data):
    names = ["text/wiki.test.raw", "text/wikitext2_valid_500k.txt", "stories260k/tinystories_eval.txt", "stories260k/stories_calib_generated.txt"]
    return [(shared_data / name).read_bytes().decode() for name in names]


@pytest.mark.parametrize("model", ["smollm2", "stories260k"])
def test_real_texts(model, shared_data):
    reference = Tokenizer.from_file(str(shared_data / model / "tokenizer.json"))
    mine = compress.Tokenizer(shared_data / model)
    texts = real_texts(shared_data)
    assert_same(reference, mine, texts + HARD)
    if model == "smollm2":
        assert len(mine.encode(texts[0])) == 304830
        assert (mine.bos_id, mine.eos_id) == (1, 2)
    assert mine.decode(mine.encode(texts[0])).decode() == texts[0]
