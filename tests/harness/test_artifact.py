"""Reading a harness folder: what is taken, what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolve.errors import HarnessError
from evolve.harness.artifact import Harness, read_folder, read_harness
from evolve.records import Layer

TOML = 'schema_version = 1\nenvironment = "toy"\n'
NOTE = '[[system]]\nid = "contract.a"\ntext = "Be quick."\nevidence = "e"\n'
SKILL = '+++\nid = "skill.a"\ntitle = "A"\nwhen = "always"\nevidence = "e"\n+++\nDo it.\n'


def read(**changed: str) -> Harness:
    """Read a harness; file names are given with `__` for `/` and `_` for `.`."""
    files = {"harness.toml": TOML} | {name.replace("__", "/").replace("_", "."): text for name, text in changed.items()}
    return read_harness({path: text.encode() for path, text in files.items()})


def refusal(**changed: str) -> str:
    with pytest.raises(HarnessError) as caught:
        read(**changed)
    return str(caught.value)


def test_a_whole_harness_reads() -> None:
    """Notes, skills and rule sources are there, units in their layers, and empty rule files are no rules."""
    harness = read(contract_toml=NOTE, skills__a_md=SKILL, action_py="x = 1\n", trajectory_py="\n")
    assert list(harness.text_units()) == [("contract.a", Layer.CONTRACT), ("skill.a", Layer.SKILL)]
    assert (harness.skills[0].body, harness.rule_sources) == ("Do it.", {"action.py": "x = 1\n"})
    assert harness.settings.limits.block_cap == 3


def test_the_digest_is_that_of_all_files() -> None:
    """A changed comment is another harness."""
    assert read(action_py="x = 1\n").digest == read(action_py="x = 1\n").digest
    assert read(action_py="x = 1\n").digest != read(action_py="x = 1  # why\n").digest


def test_switches_of_layers_units_and_the_run_add_up() -> None:
    """A unit is on where its layer, its own switch and the run allow it."""
    harness = read(harness_toml=TOML + '[layers]\nskill = false\n[units]\n"contract.b" = false\n')
    assert harness.is_on("contract.a", Layer.CONTRACT)
    assert not harness.is_on("contract.b", Layer.CONTRACT)
    assert not harness.is_on("skill.a", Layer.SKILL)
    assert not harness.is_on("contract.a", Layer.CONTRACT, frozenset({"contract.a"}))
    assert not harness.is_on("contract.a", Layer.CONTRACT, frozenset({"contract"}))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"harness_toml": "schema_version = 2\n"}, "harness.toml: schema_version"),
        ({"harness_toml": 'schema_version = 1\nname = "toy"\n'}, "harness.toml: environment"),
        ({"harness_toml": TOML + "[layers]\nmagic = true\n"}, "harness.toml: layers.magic"),
        ({"harness_toml": TOML + "[limits]\nblock_cap = 99\n"}, "harness.toml: limits.block_cap"),
        ({"harness_toml": "schema_version ="}, "harness.toml is not valid TOML"),
        ({"contract_toml": NOTE.replace("Be quick.", "x" * 401)}, "contract.toml: system.0.text"),
        ({"contract_toml": NOTE.replace("contract.a", "Contract A")}, "unit id 'Contract A'"),
        ({"contract_toml": NOTE.replace("contract.a", "skill.a")}, "must look like contract.some-name"),
        ({"contract_toml": NOTE + NOTE}, "unit id 'contract.a' is used twice"),
        ({"skills__a_md": "Do it.\n"}, "skills/a.md must begin with TOML front matter"),
        ({"skills__a_md": SKILL.replace("Do it.", "do " * 121)}, "the body has 121 words"),
        ({"skills__a_md": SKILL.replace("Do it.", "")}, "the body has 0 words"),
        ({"skills__a_md": SKILL, "skills__b_md": SKILL}, "'skill.a' is used twice"),
        ({"setup_py": "x = 1\n"}, "setup.py does not belong in a harness folder"),
        ({"skills__more__a_md": SKILL}, "does not belong"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(changed: dict[str, str], words: str) -> None:
    """Each refusal names the file, and the place in it."""
    assert words in refusal(**changed)


def test_a_folder_without_settings_is_no_harness() -> None:
    """The message says what the smallest harness is."""
    with pytest.raises(HarnessError, match=r"harness\.toml is missing; the smallest harness"):
        read_harness({})


def test_text_that_is_not_utf8_is_refused() -> None:
    """The byte is named."""
    with pytest.raises(HarnessError, match=r"action\.py is not UTF-8 \(byte 0\)"):
        read_harness({"harness.toml": TOML.encode(), "action.py": b"\xff"})


def test_windows_line_ends_of_a_skill_are_read() -> None:
    """A skill that an editor saved with carriage returns is the same skill."""
    assert read(skills__a_md=SKILL.replace("\n", "\r\n")).skills == read(skills__a_md=SKILL).skills


def test_a_folder_is_read_without_links_byte_code_and_hidden_files(tmp_path: Path) -> None:
    """Only plain files count; what is no folder is said so."""
    (tmp_path / "harness.toml").write_text(TOML)
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "a.md").write_text(SKILL)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "action.pyc").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "action.py").symlink_to("/etc/passwd")
    assert sorted(read_folder(tmp_path)) == ["harness.toml", "skills/a.md"]
    with pytest.raises(HarnessError, match="is not a folder"):
        read_folder(tmp_path / "absent")
