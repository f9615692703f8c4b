"""The report on a terminal."""

from evolve.report.text import text


def with_model(report, **changes):
    return report.model_copy(update={"model": report.model.model_copy(update=changes)})


def test_iterations_stand_in_an_aligned_table_with_all_four_classes(report):
    """Heading and rows have their columns at the same places."""
    lines = text(report).splitlines()
    at = lines.index("Iterations")
    head, first = lines[at + 1], lines[at + 2]
    for name, count in (("action", "8"), ("contract", "0"), ("trajectory", "4"), ("reasoning", "0")):
        end = head.index(name) + len(name)
        assert first[:end].endswith(f" {count}")


def test_verdicts_and_heldout_results_are_told(report):
    """Both candidates, their decisions and the look can be read off."""
    told = text(report)
    assert "household-001-01  rejected" in told
    assert "household-001-02  accepted" in told
    assert "8 better, 0 worse, 12 the same" in told
    assert "4/12 (33%)" in told


def test_recorded_completions_are_announced_at_the_top(report):
    """The word stands in the second line, before any number."""
    told = text(with_model(report, is_recorded=True, kind="recorded"))
    assert told.splitlines()[1].startswith("RECORDED: ")
    assert "RECORDED" not in text(report)


def test_rules_without_protection_are_announced_at_the_top(report):
    """A run whose rule code had resource limits alone says UNPROTECTED before any number."""
    bare = report.isolation.model_copy(update={"tiers": ("rlimits",), "is_unprotected": True})
    assert text(report.model_copy(update={"isolation": bare})).splitlines()[1].startswith("UNPROTECTED: ")


def test_a_tier_that_nobody_tested_is_announced_at_the_top(report):
    """A run under the profile for macOS says so."""
    mac = report.isolation.model_copy(update={"tiers": ("seatbelt",)})
    assert text(report.model_copy(update={"isolation": mac})).splitlines()[1].startswith("NOT TESTED: ")


def test_control_characters_of_a_proposer_do_not_reach_the_terminal(report):
    """An escape sequence in a hypothesis is text without its escape."""
    first = report.iterations[0]
    evil = first.candidate.model_copy(update={"hypothesis": "clears \x1b[2J the screen\n\x07"})
    told = text(report.model_copy(update={"iterations": (first.model_copy(update={"candidate": evil}),)}))
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "clears  [2J the screen" in told


def test_a_run_without_an_episode_has_a_text(empty_report):
    """Sections without content are left out."""
    told = text(empty_report)
    assert told.startswith("Run household-001 on household\n")
    assert "Held-out looks" not in told
