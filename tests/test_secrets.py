from evolve.secrets import REMOVED, find_secrets, remove_secrets, scrub, secret_values

SHAPES = [
    "sk-" + "a1B2" * 8,
    "sk-ant-api03-" + "x9" * 20,
    "ghp_" + "Z" * 36,
    "github_pat_" + "1A" * 20,
    "hf_" + "q" * 34,
    "AKIA" + "ABCD1234" * 2,
    "AIza" + "k" * 35,
    "xoxb-1234567890-abcdef",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


def test_each_common_shape_of_key_is_found_inside_a_sentence():
    """A key is found whole wherever it stands in a text."""
    for key in SHAPES:
        assert find_secrets(f"use {key} here") == [key]


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
