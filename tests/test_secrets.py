import json

from evolve.secrets import REMOVED, find_secrets, may_hold_secret, remove_secrets, scrub, secret_values

SHAPES = [
    "sk-" + "a1B2" * 8,
    "sk-ant-api03-" + "x9" * 20,
    *(f"gh{kind}_" + "Z" * 36 for kind in "pousr"),
    "github_pat_" + "1A" * 20,
    "hf_" + "q" * 34,
    "glpat-" + "x9" * 10,
    "gsk_" + "Q" * 52,
    "npm_" + "z" * 36,
    "pypi-" + "Ag" * 30,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpM",
    "AKIA" + "ABCD1234" * 2,
    "ASIA" + "ABCD1234" * 2,
    "AIza" + "k" * 35,
    "xoxb-1234567890-abcdef",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


def test_each_common_shape_of_key_is_found_inside_a_sentence():
    """A key is found whole wherever it stands in a text."""
    for key in SHAPES:
        assert find_secrets(f"use {key} here") == [key]


def test_a_quick_look_passes_over_no_shape():
    """A line is looked through closely wherever it may hold a key, and not where nothing in it looks like one."""
    for key in SHAPES:
        assert may_hold_secret(json.dumps({"said": f"use {key} here"}).encode()), key
    assert may_hold_secret(b'{"said":"a plain-looking one"}', ["plain-looking"])
    assert not may_hold_secret(b'{"task_id":"fetch_x-ray","said":"A KEY, Joy and a xenon lamp"}', ["plain-looking"])


def test_ordinary_text_is_left_alone():
    """Digests, ids, paths and short words with the same prefixes are no secrets."""
    text = "task-sk-12 sk-learn " + "0f" * 32 + " hf_model ghp_x a/b/AKIA.txt desk-drawer-number-twenty-one-is-open"
    assert find_secrets(text) == []
    assert remove_secrets(text) == text


def test_values_of_variables_named_like_credentials_count():
    """The caller's credentials are found by value; short values and other variables are not."""
    values = secret_values({"OPENAI_API_KEY": "plain-looking", "A_TOKEN": "no", "HOME": "/home/someone"})
    assert values == ("plain-looking",)
    assert remove_secrets("key plain-looking.", values) == f"key {REMOVED}."


def test_scrub_reaches_every_string_of_a_json_value():
    """Nested values and keys are cleaned and the shape of the value stays."""
    key = SHAPES[0]
    assert scrub({"a": [key, 1, None], key: {"b": f"x {key}"}}) == {
        "a": [REMOVED, 1, None],
        REMOVED: {"b": f"x {REMOVED}"},
    }
