"""One row, and two rows: sentences that people read count what they name, with the noun in its number."""

import re
from pathlib import Path

import swapcal as sc
from swapcal.engine.late_look import Lateness
from swapcal.jobs.late_notes import late_sentences
from swapcal.jobs.late_outcomes import LateOutcomes
from swapcal.words.late_words import expired, standing_back

NOUNS = "outcomes|rows|groups|cases|forecasts|alarms|keys|files|classes|models"
BARE = re.compile(
    rf"(?<!all )(?<!first )(?<!of )\{{[^{{}}]*(?::,|count\([^{{}}]*\))\}} (?:more |later |fresh )?(?:{NOUNS})\b"
)
"""A number and a plural beside it, where nothing asks whether it is 1; `N of M groups` has the verb to tell."""


def test_no_sentence_counts_a_plural_by_itself() -> None:
    assert BARE.search('f"{n:,} rows were left"')
    assert BARE.search('f"{count(n)} more rows"')
    package = Path(sc.__file__).parent
    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for folder in ("cli", "jobs", "report", "service", "words")
        for path in (package / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if BARE.search(line)
    ]
    assert found == [], "use swapcal.words.numbers.counted"


def test_one_is_one() -> None:
    late = Lateness(1, 1, 1, 1.0, True, 0, 1, 0.0, 0.0, None, (expired(1), standing_back(0, 1, 0.1)))
    told = late_sentences(LateOutcomes(delay="1"), late, None)
    assert told[0] == "1 outcome was learned after later rows, after 1 later row on average, and 1 is out at the end."
    assert not [each for each in told if re.search(rf"\b1 (?:{NOUNS})", each)]
    two = late_sentences(LateOutcomes(delay="1"), Lateness(2, 2, 0, 2.0, False, None, 0, 0.0, 0.0, None, ()), None)
    assert two == (
        "2 outcomes were learned after later rows, after 2 later rows on average, and 2 are out at the end.",
    )
