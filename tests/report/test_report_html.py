"""The report as one HTML file."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from evolve.errors import StoreError
from evolve.records import Decision
from evolve.report.html import diff_lines, page_of, stage_marks, write_html
from evolve.report.plots import score_plot, task_plot, token_plot

HOSTILE = '</code></pre><script>alert("x")</script><img src=//evil onerror=alert(1)> $\\frac{$'


class Page(HTMLParser):
    """Collects the tags of a page with their attributes, and its ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]


@pytest.fixture(scope="module")
def page(report):
    return page_of(report)


def hostile(report):
    """Return the report with hostile text wherever a model, a proposer or an environment can write."""
    first, second = report.iterations
    known = second.candidate
    evil = {
        "hypothesis": HOSTILE,
        "diff": f"+{HOSTILE}",
        "tasks": tuple(_with(task, task_id=f"{HOSTILE}-{place}") for place, task in enumerate(known.tasks)),
        "stages": tuple(_with(stage, reasons=(HOSTILE,), numbers={HOSTILE: HOSTILE}) for stage in known.stages),
    }
    patterns = tuple(_with(pattern, title=HOSTILE, excerpt=HOSTILE) for pattern in first.patterns)
    iterations = (_with(first, patterns=patterns), _with(second, candidate=_with(known, **evil)))
    return _with(report, iterations=iterations, model=_with(report.model, model_id=HOSTILE))


def _with(record, **changes):
    return record.model_copy(update=changes)


def test_the_page_loads_nothing_and_runs_nothing(page):
    """There is no script, no outside address in any attribute that loads, and a policy that forbids both."""
    parsed = Page(page)
    assert not {"script", "link", "iframe", "img", "object", "base", "form"} & {tag for tag, _ in parsed.tags}
    loading = [a[name] for _, a in parsed.tags for name in ("src", "href", "xlink:href", "action") if name in a]
    assert all(target.startswith("#") for target in loading)
    assert "url(http" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_text_of_models_and_proposers_is_escaped_everywhere(report):
    """A hostile hypothesis, patch, task id, reason and excerpt add no tag and no attribute to the page."""
    parsed = Page(page_of(hostile(report)))
    assert not {"script", "img"} & {tag for tag, _ in parsed.tags}
    assert not [a for _, a in parsed.tags if any(name.startswith("on") for name in a)]


def test_equal_reports_give_equal_files(report, page, tmp_path):
    """Ids in plots and all else are derived from the report, not from the clock or from chance."""
    write_html(report, tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text("utf-8") == page


def test_no_id_occurs_twice(page):
    """Plots that share the page keep their ids apart."""
    ids = Page(page).ids
    assert len(ids) == len(set(ids))


def test_every_plot_has_a_name_a_description_and_axes_with_units(page):
    """Each inline SVG is well formed, is an image to a screen reader, and says what it shows."""
    drawn = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawn) == 5
    for svg in drawn:
        root = ElementTree.fromstring(svg)
        names = root.attrib["aria-labelledby"].split()
        told = {each.attrib["id"]: each.text for each in root if each.tag.endswith(("title", "desc"))}
        assert root.attrib["role"] == "img"
        assert all(told[name] for name in names)
    for words in (
        "training tasks solved (%)",
        "failed training episodes",
        "mean score (0 to 1)",
        "tasks solved (%), bars",
        "tokens, prompt and completion together",
    ):
        assert words in page


def test_the_cost_of_a_test_is_told_in_tokens_and_in_requests(report, page):
    """The plot and the facts of a candidate say how many tokens were asked and how many reused; requests stand by."""
    accepted = next(c for c in report.candidates if c.decision is Decision.ACCEPT)
    seen = accepted.divergence
    assert 0 < seen.tokens_asked < seen.tokens
    told = f"candidate {accepted.number}: {seen.tokens_asked} asked, {seen.tokens - seen.tokens_asked} reused"
    assert told in token_plot(report).svg
    assert f"{accepted.requests_asked} asked, {accepted.requests_reused} reused" in page


def test_plots_take_their_colours_from_the_page(report):
    """No colour of light mode is left in a plot, so that dark mode reaches it."""
    colours = set(re.findall(r"#[0-9a-f]{6}\b", score_plot(report).svg))
    assert colours <= {"#ffffff"}


def test_the_patch_is_shown_line_by_line(page):
    """Added lines of the accepted patch are marked as such."""
    assert '<span class="added">+from evolve.rules import' in page
    assert '<span class="hunk">@@ -0,0 ' in page
    kinds = [line.kind for line in diff_lines("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z")]
    assert kinds == ["file", "file", "hunk", "removed", "added", "same"]


def test_the_strip_shows_all_stages_also_those_not_reached(report):
    """A candidate that the screen rejects shows five stages with an outcome and three without."""
    rejected = next(c for c in report.candidates if c.decision is Decision.REJECT)
    outcomes = [mark.outcome for mark in stage_marks(rejected)]
    assert outcomes == ["pass"] * 4 + ["reject"] + ["not reached"] * 3
    assert task_plot(rejected) is None


def test_recorded_and_unprotected_are_said_where_a_person_looks(report):
    """Both words stand in the header, before the first number of the result."""
    model = report.model.model_copy(update={"is_recorded": True})
    bare = report.isolation.model_copy(update={"is_unprotected": True, "tiers": ("rlimits",)})
    told = page_of(report.model_copy(update={"model": model, "isolation": bare}))
    top = told[told.index("<header>") : told.index('id="result"', told.index("<header>"))]
    assert "Completions were read from a recording of small" in top
    assert "UNPROTECTED" in top


def test_a_run_without_an_episode_has_a_page(empty_report):
    """The page of a run that was killed at once says what is missing and draws nothing."""
    told = page_of(empty_report)
    assert "has not finished its first look" in told
    assert "<svg" not in told


def test_a_file_that_cannot_be_written_is_a_plain_error(report, tmp_path):
    """The message names the file."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match=r"taken/report\.html"):
        write_html(report, tmp_path / "taken" / "report.html")


def test_importing_the_report_does_not_load_matplotlib():
    """Only drawing a plot pays for the plotting library."""
    code = "import sys, evolve.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
