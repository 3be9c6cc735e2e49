"""Unigram models and a tokenizer.model: ids and texts of our tokenizers beside those of the packages `tokenizers` and `sentencepiece`."""

import io
import random

import pytest

import compress

tokenizers = pytest.importorskip("tokenizers")
spm = pytest.importorskip("sentencepiece", reason="needs sentencepiece: pip install -r python/requirements-test.txt")
from sentencepiece import sentencepiece_model_pb2 as schema  # noqa: E402
from test_tokenizers import HARD, WORDS, assert_same, ours  # noqa: E402
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402

MORE = ["e\u0301\u0300 ①\u0301 \r\n\u0301", "a\u200d\u00ad\u0301 \u200b\u0301x", "ᄀ\u1161\u11a8\u0301 ©\u200d®", "\u0600a \u0e33", "½½ ﬁﬂ ㍿ Ⅷ"]
CHARACTERS = ("aeb ,.\u2581  éñ©®™①½ﬁ中日한ᄀ\u1161\u11a8각\r\n\t\x01\x00\u200b\ufeff\u00ad\u200d\u200c\u0301\u0308\u20dd\u0903\u0915\u094d\u0e33"
              "👨🇩🏽\u0600\u06dd\u3000\u180e09<>s/\U0010ffff")


def random_texts(count, seed=7):
    generator = random.Random(seed)
    return ["".join(generator.choices(CHARACTERS, k=generator.randint(1, 24))) for _ in range(count)]


def trained(**options) -> schema.ModelProto:
    out, sentences = io.BytesIO(), WORDS * 3 + ["a cat; the dogs' 2024-11-30, (round) [square] {curly} 3.14!"] * 3
    spm.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=out, hard_vocab_limit=False, num_threads=1,
                                   minloglevel=2, **{"vocab_size": 150, **options})
    return schema.ModelProto.FromString(out.getvalue())


@pytest.fixture(scope="module")
def unigram() -> schema.ModelProto:
    return trained(model_type="unigram", normalization_rule_name="nmt_nfkc")


def real_text(shared_data):
    return (shared_data / "text/wiki.test.raw").read_bytes().decode()


def as_tokenizer(proto, scheme, split, byte_fallback):
    vocabulary = [(piece.piece, piece.score) for piece in proto.pieces]
    if byte_fallback:
        vocabulary += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    reference = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=byte_fallback))
    charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    reference.normalizer = normalizers.Sequence([charsmap, normalizers.Replace(Regex(" {2,}"), " ")])
    reference.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    reference.decoder = decoders.Metaspace(prepend_scheme=scheme)
    reference.add_special_tokens(["<s>", "</s>"])
    return reference


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_unigram_of_tokenizers(unigram, scheme, split, byte_fallback, tmp_path, shared_data):
    reference = as_tokenizer(unigram, scheme, split, byte_fallback)
    mine = ours(reference, tmp_path)
    whole = real_text(shared_data)
    is_default = scheme == "always" and split and not byte_fallback
    texts = HARD + WORDS + MORE + random_texts(500) + [whole if is_default else whole[:50000]]
    assert_same(reference, mine, texts)
    for text in texts:
        ids = reference.encode(text, add_special_tokens=False).ids
        assert mine.decode(ids) == reference.decode(ids, skip_special_tokens=False).encode(), repr(text[:80])


def test_a_mark_joins_what_stands_before_it(tmp_path):
    # Where the package takes "a" and a character for one grapheme, the rule for "a" swallows both.
    rules = tmp_path / "rules.tsv"
    rules.write_text("61\t58\n")
    charsmap = trained(model_type="char", normalization_rule_tsv=str(rules)).normalizer_spec.precompiled_charsmap
    reference = Tokenizer(models.Unigram([("?", 0.0), ("X", -1.0), ("\n", -1.0)], unk_id=0))
    reference.normalizer = normalizers.Precompiled(charsmap)
    mine = ours(reference, tmp_path)
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assert_same(reference, mine, ["\n".join("a" + chr(code) for code in codes[at:at + 4096]) for at in range(0, len(codes), 4096)])


SYMBOLS = ["<ud>", "<a b>", "①", "ﬁx", "aa"]
KINDS = {
    "unigram": dict(model_type="unigram", normalization_rule_name="nmt_nfkc"),
    "unigram_symbols": dict(model_type="unigram", normalization_rule_name="nmt_nfkc", byte_fallback=True, user_defined_symbols=SYMBOLS, pad_id=3),
    "unigram_identity": dict(model_type="unigram", normalization_rule_name="identity", byte_fallback=True, add_dummy_prefix=False,
                             remove_extra_whitespaces=False),
    "unigram_suffix": dict(model_type="unigram", normalization_rule_name="nfkc_cf", treat_whitespace_as_suffix=True),
    "bpe": dict(model_type="bpe", normalization_rule_name="nmt_nfkc"),
    "bpe_identity": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False,
                         split_digits=True, user_defined_symbols=SYMBOLS, bos_id=-1, eos_id=5),
    "bpe_suffix": dict(model_type="bpe", normalization_rule_name="nfkc", treat_whitespace_as_suffix=True, control_symbols=["<c>"]),
}
BYTES = [b"\xff", b"a\xc3", b"\xed\xa0\x80 \xf5\x80", b"ok \xe4\xb8 cut", b"\xc0\x80\x00", bytes(range(256)), b"<ud>\xff <a b>"]


def assert_equal_to_sentencepiece(proto, texts, folder):
    (folder / "tokenizer.model").write_bytes(proto.SerializeToString())
    reference, mine = spm.SentencePieceProcessor(model_proto=proto.SerializeToString()), compress.Tokenizer(folder)
    assert mine.vocabulary_size == reference.get_piece_size()
    assert [-1 if id is None else id for id in (mine.bos_id, mine.eos_id)] == [reference.bos_id(), reference.eos_id()]
    marks = [piece.piece.encode() for piece in proto.pieces if piece.type in (2, 3)]   # which ours takes for tokens in a text
    for text in texts + BYTES:
        if any(mark in (text.encode() if isinstance(text, str) else text) for mark in marks):
            continue
        ids = reference.encode(text)
        assert mine.encode(text).tolist() == ids, repr(text[:80])
        if isinstance(text, str) and reference.unk_id() not in ids:
            assert mine.decode(ids, True) == reference.decode(ids).encode(), repr(text[:80])


@pytest.mark.parametrize("kind", KINDS)
def test_tokenizer_model(kind, tmp_path, shared_data):
    lines = real_text(shared_data).splitlines()
    out = io.BytesIO()
    sentences = iter(WORDS * 3 + [line for line in lines[:900] if line.strip()])
    spm.SentencePieceTrainer.train(sentence_iterator=sentences, model_writer=out, hard_vocab_limit=False, num_threads=1,
                                   minloglevel=2, vocab_size=1000, **KINDS[kind])
    proto = schema.ModelProto.FromString(out.getvalue())
    texts = HARD + WORDS + MORE + random_texts(1000) + lines[:300] + [real_text(shared_data)]
    assert_equal_to_sentencepiece(proto, texts, tmp_path)
    for piece in proto.pieces[::3]:      # every third piece out of use; spaces stay what they are
        piece.type = 5 if piece.type == 1 else piece.type
    proto.normalizer_spec.escape_whitespaces = False
    assert_equal_to_sentencepiece(proto, HARD + WORDS + MORE + random_texts(500), tmp_path)
