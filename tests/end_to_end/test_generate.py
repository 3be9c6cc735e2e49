"""Text from language models on the command line, held to a plain forward pass in numpy."""

import json
import shutil
import sys

import numpy as np
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
from decoder_reference import decoder_logits, decoder_shapes, random_weights, read_safetensors, safetensors_bytes  # noqa: E402

# llama2.c's doc/stories260K.md: what its run prints at temperature 0, 256 tokens.
STORY = ("Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, "
         "red ball. She wanted to play with it, but it was too high.\n"
         "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do.")


def generated(compress_run, *arguments):
    done = compress_run("generate", *arguments, "--json")
    assert done.code == 0, done.error
    return json.loads(done.out)


@pytest.fixture()
def stories(shared_data):
    return shared_data / "stories260k"


@pytest.mark.parametrize("cache", ["fp32", "fp16"])
def test_greedy_text_is_the_published_one(compress_run, stories, cache):
    result = generated(compress_run, stories, "--prompt", "", "--tokens", 256, "--cache", cache, "--ignore-end")
    assert result["text"].startswith(STORY)
    assert result["tokens"] == {"prompt": 1, "new": 256}


def test_greedy_tokens_are_those_of_a_forward_pass_in_numpy(compress_run, stories):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(stories / "tokenizer.json"))
    config = json.loads((stories / "config.json").read_text())
    weights = read_safetensors(stories / "model.safetensors")
    prompt = "Tom had a red"
    ids = tokenizer.encode(prompt).ids
    count = len(ids)
    for _ in range(40):
        ids.append(int(np.argmax(decoder_logits(config, weights, np.array(ids))[-1])))
    whole = tokenizer.decode(ids)
    result = generated(compress_run, stories, "--prompt", prompt, "--tokens", 40, "--cache", "fp32", "--ignore-end")
    assert result["tokens"]["prompt"] == count
    assert prompt + result["text"] == whole


def test_draws_depend_on_the_seed_and_not_on_threads_or_chunks(compress_run, stories):
    def text(seed, *more):
        return generated(compress_run, stories, "--prompt", "Once upon a time there was", "--tokens", 60, "--temperature", 1,
                         "--top-p", 0.95, "--top-k", 100, "--seed", seed, *more)["text"]

    assert text(1, "--threads", 1) == text(1, "--threads", 2, "--chunk", 3)
    assert text(1) != text(2)


def test_text_is_printed_and_times_go_to_stderr(compress_run, stories):
    done = compress_run("generate", stories, "--prompt", "Once upon a time", "--tokens", 5)
    assert done.code == 0
    assert done.out.startswith("Once upon a time, there was")
    assert "prompt tokens, 5 new" in done.err and "first token" in done.err and "tokens/s" in done.err


def test_text_longer_than_the_context_slides(compress_run, stories):
    result = generated(compress_run, stories, "--prompt", "Once upon a time", "--tokens", 100, "--context", 32, "--ignore-end")
    assert result["tokens"]["new"] == 100 and result["context"] == 32
    assert result["text"].startswith(", there was a little girl named Lily.")


def test_bad_input_is_one_error_each(compress_run, stories, shared_data, tmp_path):
    def refused(*arguments):
        done = compress_run("generate", *arguments)
        return done.code, done.error

    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(stories / name, bare / name)
    code, error = refused(bare, "--prompt", "x")
    assert code == 3 and "expected a tokenizer.json beside the model" in error and "--tokenizer" in error
    code, error = refused(stories, "--prompt", "once upon a time " * 40, "--context", 16)
    assert code == 2 and "--prompt: expected at most 16 tokens, the context, found" in error and "--context" in error
    code, error = refused(stories, "--prompt", "x", "--context", 100000)
    assert code == 2 and "context: expected from 2 to" in error
    code, error = refused(stories, "--prompt", "x", "--temperature", -1)
    assert code == 2 and "temperature: expected a number from 0 to 100" in error
    code, error = refused(stories, "--prompt", "x", "--activations", 8)
    assert code == 2 and "expected a model with coded weights in groups" in error
    code, error = refused(shared_data / "kws" / "kws_dscnn.onnx", "--prompt", "x", "--tokenizer", stories)
    assert code == 3 and "expected a language model" in error


def test_a_vocabulary_smaller_than_the_tokenizer_is_refused(compress_run, stories, tmp_path):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 48, "intermediate_size": 70,
              "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 61,
              "max_position_embeddings": 128, "tie_word_embeddings": False}
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(random_weights(decoder_shapes(config), 7)))
    done = compress_run("generate", folder, "--prompt", "x", "--tokenizer", stories)
    assert done.code == 3
    assert "expected a tokenizer of at most 61 tokens, the model's vocabulary, found 512" in done.error


def coded_bundle(compress_run, stories, tmp_path, scheme):
    (tmp_path / "p.yaml").write_text(f"""
model: {stories}
output: out
data:
  calibrate: {{path: {stories / "stories_calib_generated.txt"}, lines: true, bos: true, context: 256}}
  evaluate:  {{path: {stories / "tinystories_eval.txt"}, lines: true, bos: true, context: 512, metric: perplexity}}
stages:
  - quantize: {{method: rtn, scheme: {scheme}}}
  - export:   {{formats: [bundle]}}
""")
    done = compress_run("run", tmp_path / "p.yaml")
    assert done.code == 0, done.error
    return next((tmp_path / "out").glob("*.ctkb"))


@pytest.mark.parametrize("scheme", ["w4a16_g32", "w6a16_g32"])
def test_a_bundle_of_codes_runs_with_activations_of_either_width(compress_run, stories, tmp_path, scheme):
    bundle = coded_bundle(compress_run, stories, tmp_path, scheme)

    def text(*more):
        return generated(compress_run, bundle, "--tokenizer", stories, "--prompt", "", "--tokens", 150, *more)["text"]

    as_coded = text()
    assert as_coded.startswith("Once upon a time, there was a little")
    assert text("--activations", 16) == as_coded
    assert text("--activations", 8) != as_coded  # another rounding: the greedy texts part somewhere


CHAT = ("{{ bos_token }}{% for m in messages %}{{ m.role + ': ' + m.content.strip() + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}")
FILLED = "<s>system: Be kind.\nuser: Tom had a red\nassistant:"


@pytest.mark.parametrize("place", ["option", "jinja", "settings", "named"])
def test_a_message_goes_through_the_chat_template(compress_run, stories, tmp_path, place):
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (model / name).symlink_to(stories / name)
    more = []
    if place == "option":
        (tmp_path / "chat.jinja").write_text(CHAT)
        more = ["--chat-template", tmp_path / "chat.jinja"]
    elif place == "jinja":
        (model / "chat_template.jinja").write_text(CHAT)
    template = CHAT if place == "settings" else [{"name": "tools", "template": ""}, {"name": "default", "template": CHAT}]
    settings = {"bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    if place in ("settings", "named"):
        settings["chat_template"] = template
    (model / "tokenizer_config.json").write_text(json.dumps(settings))
    said = generated(compress_run, model, "--chat", "--system", "Be kind.", "--prompt", " Tom had a red ", "--tokens", 20, *more)
    plain = generated(compress_run, model, "--raw", "--prompt", FILLED, "--tokens", 20)
    assert said["text"] == plain["text"]
    assert said["tokens"] == plain["tokens"]


def test_a_chat_without_a_template_is_refused(compress_run, stories, tmp_path):
    done = compress_run("generate", stories, "--chat", "--prompt", "hi")
    assert done.code == 3 and "--chat-template" in done.error
    done = compress_run("generate", stories, "--system", "x", "--prompt", "hi")
    assert done.code == 2 and "--chat" in done.error
    (tmp_path / "t").write_text("{{ raise_exception('only users') }}")
    done = compress_run("generate", stories, "--chat", "--chat-template", tmp_path / "t", "--prompt", "hi")
    assert done.code == 3 and "only users" in done.error


def test_codes_without_groups_keep_their_activations(compress_run, stories, tmp_path):
    bundle = coded_bundle(compress_run, stories, tmp_path, "w4a16_c")
    done = compress_run("generate", bundle, "--tokenizer", stories, "--prompt", "x", "--activations", 8)
    assert done.code == 2 and "expected a model with coded weights in groups, found none" in done.error
