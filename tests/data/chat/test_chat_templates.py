"""Chat templates beside Jinja itself, set up as transformers sets it up."""

import json

import pytest

import compress

jinja2 = pytest.importorskip("jinja2")
from jinja2 import ext, sandbox  # noqa: E402

# Templates in the style of what checkpoints carry: a role in brackets, with and without system messages, with
# alternation checked, with namespaces, slices, trimmed contents and white space control.
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
INSTRUCTION = """{% if messages[0]['role'] == 'system' %}
    {% set rest = messages[1:] %}
    {% set system_message = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' %}
{% else %}
    {% set rest = messages %}
    {% set system_message = '' %}
{% endif %}
{% for message in rest %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('roles must alternate user/assistant/user/assistant/...') }}
    {% endif %}
    {% if loop.index0 == 0 %}
        {% set content = system_message + message['content'] %}
    {% else %}
        {% set content = message['content'] %}
    {% endif %}
    {% if message['role'] == 'user' %}
        {{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
    {% elif message['role'] == 'assistant' %}
        {{ ' ' + content.strip() + ' ' + eos_token }}
    {% endif %}
{% endfor %}
"""
HEADERS = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{#- This block takes the system message out #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start|>system<|end|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: tools\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or 'tool_calls' in message) %}
        {{- '<|start|>' + message['role'] + '<|end|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant<|end|>\\n\\n' }}
{%- endif %}
"""
TURNS = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}"""
THINKING = """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
TEMPLATES = {"chatml": CHATML, "instruction": INSTRUCTION, "headers": HEADERS, "turns": TURNS, "thinking": THINKING}

USER = {"role": "user", "content": "  Hello, \u4e16\u754c!\n"}
CHATS = {
    "one": [USER],
    "system": [{"role": "system", "content": "Be brief. "}, USER],
    "turns": [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi.\n"}, {"role": "user", "content": "\u00a0Why?"}],
    "answered": [USER, {"role": "assistant", "content": "Hi."}],
    "wrong": [USER, USER],
    "empty": [{"role": "user", "content": ""}],
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Refused(Exception):
    pass


def peer(template, messages, add_generation_prompt):
    def refuse(message):
        raise Refused(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    return environment.from_string(template).render(
        messages=messages, tools=None, documents=None, add_generation_prompt=add_generation_prompt, **TOKENS
    )


def assert_same(template, messages, add_generation_prompt=True):
    try:
        expected = peer(template, messages, add_generation_prompt)
    except Refused as refusal:
        with pytest.raises(compress.Error, match=str(refusal).split("/")[0]) as raised:
            compress.chat_prompt(template, messages, TOKENS, add_generation_prompt)
        assert raised.value.code == 3
        return
    assert compress.chat_prompt(template, messages, TOKENS, add_generation_prompt) == expected


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("generates", [True, False])
def test_templates_of_checkpoints(template, chat, generates):
    assert_same(TEMPLATES[template], CHATS[chat], generates)


PIECES = [
    "", "\n", "a\n", "a\n\n", "{{ 'x' }}\n", "  {% if true %}\n  a\n  {% endif %}\n b", "{% if true -%}\n  a\n{%- endif %} b",
    "a {%+ if true %} b {%+ endif %} c", "  {# note #}\nx", "a{# note -#}  \n b", "x {#- c #}\n y", "{{- ' a ' -}}  b", "{% if true +%}\nx{% endif %}",
    "{{ {'a': 1, 'b': [1, 2.5, none, true]} | tojson }}", "{{ {'a': 1, 'b': {}} | tojson(indent=2) }}", "{{ [1, 'a', none] }}",
    "{{ 'a' 'b' ~ 1 ~ none ~ true ~ 1.0 ~ undefined_name }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 * 3.0 }}",
    "{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abcdef'[1:4] }}{{ 'abc'[::-1] }}{{ [1,2,3][:-1] }}", "{{ '\u4e16\u754c'[1] }}{{ '\u4e16\u754c' | length }}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in range(5) if x is odd %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% for x in range(6) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "{% if true %}{% set y = 3 %}{% endif %}{{ y }}",
    "{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
    "{% set text %}a {{ 1 + 1 }}{% endset %}[{{ text }}]", "{{ 'A b'.lower() }}{{ 'a B' | upper }}{{ 'hello world' | title }}{{ 'hELLO' | capitalize }}",
    "{{ ' a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xxaxx'.lstrip('x') }}|{{ 'a,b,,c'.split(',') | join('-') }}|{{ ' a  b '.split() }}",
    "{{ messages | map(attribute='role') | join(',') }}", "{{ (messages | selectattr('role', 'equalto', 'user') | list) | length }}",
    "{{ (messages | rejectattr('role', 'equalto', 'user') | list) | length }}", "{{ x | default('d') }}{{ '' | default('e', true) }}{{ '' | default('f') }}",
    "{{ 'a' in 'cat' }}{{ 'b' not in ['a'] }}{{ 'k' in {'k': 1} }}", "{{ 1 == 1.0 }}{{ true == 1 }}{{ 'a' == 1 }}{{ [1] == [1] }}{{ none == none }}",
    "{{ 1 < 2 and not 3 > 4 or false }}", "{{ 'a' and 'b' }}{{ '' or 'c' }}", "{{ none is none }}{{ 1 is number }}{{ 'a' is string }}{{ {} is mapping }}{{ [] is iterable }}",
    "{{ 'a' if false }}{{ 'a' if false else 'b' if true else 'c' }}", "{{ messages[0].role }}{{ messages[0]['nothing'] }}{{ messages[0].nothing is defined }}",
    "{{ 'it\\'s' }} {{ \"q\\\"\" }} {{ 'tab\\tline\\n' }}", "{{ ('a', 'b') | list }}{{ (1) }}", "{{ '5' | int + 1 }}", "{{ ['x', 'y'] | first }}{{ ['x', 'y'] | last }}",
    "{{ messages | length > 1 }}", "{{ 'a-b'.replace('-', '+') }}", "{{ {'a': 'b'}.get('a') }}{{ {'a': 'b'}.get('c', 'd') }}", "}} %} #}", "{ { x } }", "{{ '{{' }}",
    "{{ -1 }}{{ +2 }}{{ - 3 + 1 }}", "{% for m in messages %}{{ loop.index }}{{ loop.revindex }}{{ loop.first }}{{ loop.previtem is defined }}{% endfor %}",
    "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\n", "{{ 'x' | string | length }}", "{{ messages[-1].content | trim | reverse }}", "{{ 'a\n\tb' | tojson }}", "{% generation %}a{% endgeneration %}",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_pieces_of_the_language(piece):
    if "generation" in piece:  # transformers' own tag
        assert compress.chat_prompt(piece, [USER], TOKENS) == "a"
        return
    assert_same(piece, CHATS["turns"])


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ 'a' ", ["line 1", "}}"]),
        ("\n\n{% if x %}", ["endif"]),
        ("{% macro f() %}{% endmacro %}", ["if, for, set", "macro"]),
        ("{% include 'x' %}", ["include"]),
        ("{{ x | nonsense }}", ["nonsense", "trim"]),
        ("{{ f() }}", ["raise_exception", "\"f\""]),
        ("{{ messages.foo.bar }}", ["bar", "foo", "undefined"]),
        ("{{ 'a' + 1 }}", ["a text", "a whole number"]),
        ("\n{{ 1 // 0 }}", ["line 2", "divisor"]),
        ("{% endif %}", ["endif"]),
        ("{% for x in 3 %}{% endfor %}", ["a list"]),
        ("{{ 'abc' is wonderful }}", ["wonderful"]),
        ("{{ 'a' ? 1 }}", ["?"]),
        ("{# open", ["#}"]),
        ("{% for a, b in [1] %}{% endfor %}", ["2 values"]),
        ("{% break %}", ["loop"]),
    ],
)
def test_what_is_refused(template, words):
    with pytest.raises(compress.Error) as raised:
        compress.chat_prompt(template, [USER], TOKENS)
    assert raised.value.code == 3
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set x = 'a' * 1 %}",
        "{% set ns = namespace(x='aaaa') %}{% for i in range(9) %}{% set ns.x = ns.x | replace('a', ns.x) %}{% endfor %}",
        "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
        "{{ 1" + " + 1" * 50_000 + " }}",
        "{{ x" + ".y" * 50_000 + " }}",
        "{{ " + "not " * 50_000 + "x }}",
        "{% if x %}" * 5000,
        "{{ 1" + " if x else 1" * 50_000 + " }}",
        "{{ range(10000000000) | length }}",
        "{{ 99999999999999999999999 }}",
    ],
)
def test_hostile_templates_end(template):
    with pytest.raises(compress.Error) as raised:
        compress.chat_prompt(template, [USER], TOKENS)
    assert raised.value.code == 3
    assert len(str(raised.value)) < 2000
