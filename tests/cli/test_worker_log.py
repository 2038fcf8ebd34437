"""What a worker logs of its work, and the doctor on a database without documents."""

import json

from tests.builders.command_line import STORM, CommandLine
from tests.builders.workers import application

INSERT = (
    "INSERT INTO nearsim.document (collection_id, external_id, body) SELECT collection_id, %(id)s, %(body)s "
    "FROM nearsim.collection"
)


def test_batches_at_verbose_and_a_summary_by_default(filled: CommandLine, database_url: str) -> None:
    def work(*options: str) -> list[dict[str, object]]:
        with application(database_url) as writing:
            writing.execute(INSERT, {"id": f"late{options}", "body": STORM})
        return [
            json.loads(line)
            for line in filled.succeed("worker", "--once", "--json", *options).err.splitlines()
        ]

    plain, verbose = work(), work("--verbose")
    assert [one["event"] for one in plain] == ["start", "summary", "stop"]
    (summary,) = [one for one in verbose if one["event"] == "summary"]
    batches = [one for one in verbose if one["event"] == "batch"]
    assert batches and {one["level"] for one in batches} == {"debug"}
    assert {one["collection"] for one in batches} == {"default"}
    counted = {str(one["stage"]) for one in batches}
    assert summary["documents"].keys() == counted  # type: ignore[attr-defined]
    assert work("--quiet") == []
    (start, *_) = work("--collection", "default")
    assert str(start["message"]).endswith("starts on collection default")


def test_doctor_has_no_warning_before_the_first_document(nearsim: CommandLine) -> None:
    for prepared in ([], ["profile", "create", "mine", "-q"]):
        if prepared:
            nearsim.succeed(*prepared)
        checks = {one["check"]: one for one in nearsim.succeed("doctor", "--json").document()["checks"]}
        assert checks["workers"]["verdict"] == "ok", checks["workers"]
