"""The SQL blocks of the store: each has a unique name, a purpose and a caller."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import nearsim_db
from nearsim_db.store.driver.statements import blocks, parse_blocks

PACKAGE = Path(nearsim_db.__file__).parent
FILES = sorted((PACKAGE / "store").glob("*/*.sql"))
FUNCTIONS = PACKAGE.parent / "migrations" / "schema" / "functions"
NAMES = [name for file in FILES for name, _ in parse_blocks(file.read_text("utf-8"))]
BLOCKS = blocks()
REPLACED_BLOCKS = blocks("citus/replaced")
REPLACED_FUNCTIONS = sorted(file.stem for file in (PACKAGE / "store" / "citus" / "functions").glob("*.sql"))
# The SQL of one server when that for Citus was last compared with it. Where one has changed, change the other to agree
# with it, or leave it where the change makes no difference there, and record what the failed test shows.
COMPARED = {
    "count_traces": "00c2c764b761",
    "delete_bands": "1bc5612d34cf",
    "detach_leaf": "8be266f909b2",
    "find_full_buckets": "05a9f770c4da",
    "find_links": "b32c370ba577",
    "find_missing_bands": "21894a1e27cf",
    "look_up_anchors": "46089acc5fc4",
    "look_up_candidates": "09eb953fe660",
    "look_up_members": "97aa816ac7ae",
    "measure_bands": "7be5a53be946",
    "read_anchors": "ca643b4cefe9",
    "read_large_buckets": "73c31dd547c9",
    "read_shared_buckets": "131ad257f72e",
    "bucket_members": "e7c73b8010fc",
    "candidates": "83f411d157fc",
    "compare_sketches": "193930aff1b9",
}


def test_files_contain_only_blocks_and_at_most_400_lines() -> None:
    for file in FILES:
        text = file.read_text("utf-8")
        assert text.startswith("-- name: "), file.name
        assert len(text.splitlines()) <= 400, file.name


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(NAMES).items() if times > 1] == []


def test_every_block_has_a_purpose_and_a_statement() -> None:
    for name, text in BLOCKS.items():
        assert re.fullmatch(r"(-- \S.*\n)+[^-\s](.|\n)*", text), name


def test_every_block_is_used() -> None:
    code = "\n".join(file.read_text("utf-8") for file in PACKAGE.rglob("*.py"))
    assert [name for name in BLOCKS if f'"{name}"' not in code] == []
    sql = "\n".join(file.read_text("utf-8") for file in (PACKAGE / "store").rglob("*.sql"))
    assert [name for name in NAMES if name not in BLOCKS and sql.count(f"{{{name}}}") < 2] == []


def test_statements_for_citus_replace_others_with_the_same_parameters() -> None:
    for name, text in REPLACED_BLOCKS.items():
        assert re.fullmatch(r"(-- \S.*\n)+[^-\s](.|\n)*", text), name
        assert _parameters(text) == _parameters(BLOCKS[name]), name


def test_rows_of_a_generation_are_read_under_an_alias() -> None:
    """They are a subquery where generations share a table; before PostgreSQL 16 it needs one."""
    rows = r"(?:(?:live|new|other|whole|part)_)?(?:signature|band|(?:similar_)?pair|(?:cluster_)?member)"
    for name, text in [*BLOCKS.items(), *REPLACED_BLOCKS.items()]:
        assert re.findall(rf"\{{{rows}\}}(?! AS \w).*", text) == [], name


def test_what_citus_replaces_has_not_changed_since_it_was_compared() -> None:
    originals = {name: BLOCKS[name] for name in REPLACED_BLOCKS}
    originals |= {name: (FUNCTIONS / f"{name}.sql").read_text("utf-8") for name in REPLACED_FUNCTIONS}
    assert {name: _digest(text) for name, text in originals.items()} == COMPARED


def _digest(text: str) -> str:
    code = " ".join(re.sub(r"--[^\n]*", "", text).split())
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def _parameters(text: str) -> set[str]:
    return set(re.findall(r"%\((\w+)\)s", text))


def test_the_candidate_relation_is_one_text() -> None:
    """Of a build, of a worker and of SQL: they differ in the members that are linked, and by a bound of the worker."""
    limits = r"NULLIF\(%\(bucket_limit\)s, 0\)|\$1"
    found = {
        name: re.sub(limits, "most", " ".join(re.sub(r"\{band\}|%1\$s", "rows", text).split()))
        for name, text in (*BLOCKS.items(), ("candidates", (FUNCTIONS / "candidates.sql").read_text("utf-8")))
    }
    members = "JOIN rows AS other ON other.bucket_hash = bucket.bucket_hash CROSS JOIN LATERAL ("
    anchors = "SELECT doc_id FROM rows AS band WHERE bucket_hash = other.bucket_hash{} ORDER BY doc_id LIMIT most{} )"
    for name in ("find_links", "candidates"):
        assert members in found[name] and anchors.format(" AND doc_id < other.doc_id", "") in found[name], (
            name
        )
    assert anchors.format("", " + 1") in found["look_up_candidates"]
