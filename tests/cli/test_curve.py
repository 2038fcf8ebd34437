"""nearsim curve: constructions and profiles, as characters, pictures and JSON."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scipy.integrate import quad

from nearsim_db.similarity.amplification import parse
from tests.builders.command_line import CommandLine

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def plain(tmp_path: Path) -> CommandLine:
    """`nearsim` where there is no database."""
    return CommandLine(
        {"NEARSIM_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing", "NEARSIM_HOME": str(tmp_path)}
    )


def test_json_has_points_areas_and_characteristic_values(plain: CommandLine) -> None:
    found = plain.succeed(
        "curve", "20x5", "or(4, and(4, or(4, and(4))))", "--threshold", 0.6, "--json"
    ).document()
    assert (found["metric"], found["threshold"]) == ("jaccard", 0.6)
    for one, text in zip(found["curves"], ("or(20, and(5))", "or(4, and(4, or(4, and(4))))"), strict=True):
        construction = parse(text)
        assert one["amplification"] == text and one["functions"] == construction.functions
        assert [at for at, _ in one["points"]] == [step / 100 for step in range(101)]
        assert all(value == construction.probability(at) for at, value in one["points"])
        assert one["probability_at_threshold"] == construction.probability(0.6)
        below, above = quad(construction.probability, 0, 0.6)[0], quad(construction.probability, 0.6, 1)[0]
        assert one["false_positive_area"] == pytest.approx(below, abs=1e-7)
        assert one["false_negative_area"] == pytest.approx(0.4 - above, abs=1e-7)
        assert construction.probability(one["fixed_point"]) == pytest.approx(one["fixed_point"])
        rises = [
            construction.probability((at + 1) / 1000) - construction.probability(at / 1000)
            for at in range(1000)
        ]
        assert one["steepest_point"] == pytest.approx(rises.index(max(rises)) / 1000, abs=2e-3)
    assert found["curves"][0]["approximate_steepest_point"] == pytest.approx((1 / 20) ** (1 / 5))
    assert found["curves"][1]["approximate_steepest_point"] is None
    alone = plain.succeed("curve", "20x5", "--json").document()
    assert alone["threshold"] is None and alone["curves"][0]["false_negative_area"] is None


@pytest.mark.slow("draws images")
@pytest.mark.parametrize("threshold", [["--threshold", "0.6"], []])
def test_curves_as_image_files(plain: CommandLine, tmp_path: Path, threshold: list[str]) -> None:
    drawing, image = tmp_path / "curves.svg", tmp_path / "curves.PNG"
    for path in (drawing, image):
        plain.succeed("curve", "or(4, and(4))", "25x2", *threshold, "--output", path)
    assert image.read_bytes().startswith(PNG)
    root = ElementTree.parse(drawing).getroot()
    texts = {"".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"or(4, and(4))", "25x2: or(25, and(2))", "similarity"} <= texts
    assert ("threshold 0.6" in texts) == bool(threshold)
    first = drawing.read_bytes()
    plain.succeed("curve", "or(4, and(4))", "25x2", *threshold, "--output", drawing)
    assert drawing.read_bytes() == first


@pytest.mark.slow("plots")
def test_curves_of_a_recipe_and_a_preset(plain: CommandLine, tmp_path: Path) -> None:
    recipe = tmp_path / "strict.toml"
    recipe.write_text('match = {threshold = 0.9, amplification = "or(12, and(10))"}')
    found = plain.succeed("curve", "--recipe", recipe, "--json").document()
    assert found["threshold"] == 0.9
    (one,) = found["curves"]
    assert (one["name"], one["amplification"]) == ("strict", "or(12, and(10))")
    found = plain.succeed(
        "curve", "32x4", "--preset", "default", "--set", "match.threshold=0.8", "--json"
    ).document()
    assert [one["name"] for one in found["curves"]] == ["32x4", "default"] and found["threshold"] == 0.8


def test_curve_over_distance_falls(plain: CommandLine) -> None:
    rules = ["sketch.family=projection", "match.threshold=2", "match.amplification=or(20, and(5))"]
    options = [part for rule in rules for part in ("--set", rule)]
    found = plain.succeed("curve", *options, "--json").document()
    assert (found["metric"], found["threshold"]) == ("euclidean", 2)
    (one,) = found["curves"]
    values = [value for _, value in one["points"]]
    assert values == sorted(values, reverse=True) and values[0] == 1 and one["points"][-1][0] == 10
    # Trapezoids over the points shown: near ones that are missed, far ones that are met.
    step = one["points"][1][0]
    near = [1 - value for at, value in one["points"] if at <= 2]
    far = [value for at, value in one["points"] if at >= 2]
    for size, heights in (("false_negative_area", near), ("false_positive_area", far)):
        trapezoids = step * (sum(heights) - (heights[0] + heights[-1]) / 2)
        assert one[size] == pytest.approx(trapezoids, rel=0.01, abs=1e-4)
    assert one["approximate_steepest_point"] is None
    plain.fail("curve", "4x4", *options, exit_code=2)


def test_sensitivity_of_cosines_is_by_angle(plain: CommandLine) -> None:
    given = ("--preset", "cs246-cosine", "--near", "60", "--far", "120", "--json")
    (one,) = plain.succeed("curve", *given).document()["curves"]
    construction = parse(one["amplification"])
    assert one["sensitivity"]["near_probability"] == pytest.approx(construction.probability(1 - 60 / 180))
    assert one["sensitivity"]["far_probability"] == pytest.approx(construction.probability(1 - 120 / 180))
    plain.fail("curve", "--preset", "cs246-cosine", "--near", "60", "--far", "181", exit_code=2)


def test_design_has_its_sensitivity(plain: CommandLine) -> None:
    wanted = ("--near", "0.2", "--far", "0.8", "--near-probability", "0.99", "--far-probability", "0.01")
    (one,) = plain.succeed("curve", *wanted, "--json").document()["curves"]
    for end, distance in (("near", 0.2), ("far", 0.8)):
        expected = 1 - (1 - (1 - distance) ** one["rows"]) ** one["bands"]
        assert one["sensitivity"][f"{end}_probability"] == pytest.approx(expected)
    assert one["sensitivity"]["near_probability"] >= 0.99 and one["sensitivity"]["far_probability"] <= 0.01


@pytest.mark.slow("fifty curves")
def test_fifty_curves_have_marks_and_lines_of_their_own(plain: CommandLine, tmp_path: Path) -> None:
    names = [f"{bands}x4" for bands in range(1, 51)]
    shown = plain.succeed("curve", *names, "--threshold", 0.6, "--output", tmp_path / "many.svg").out
    marks = [line[0] for line in shown.splitlines() if line.endswith(" functions")]
    assert len(set(marks)) == 50
    drawn = (tmp_path / "many.svg").read_text()
    assert all(f">{name}" in drawn for name in names)


def test_image_without_matplotlib_is_refused(
    plain: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "nearsim-db[report]" in plain.fail("curve", "4x4", "--output", tmp_path / "curves.svg")
    assert not list(tmp_path.iterdir())
    plain.succeed("curve", "4x4")


def test_curve_of_a_profile(nearsim: CommandLine) -> None:
    rule = "match.amplification=and(2, or(16, and(4)))"
    nearsim.succeed("profile", "create", "both", "--collection", "news", "--set", rule, "--quiet")
    found = nearsim.succeed("curve", "--profile", "both", "--collection", "news", "--json").document()
    (one,) = found["curves"]
    assert (found["threshold"], one["name"]) == (0.7, "both")
    assert one["amplification"] == "and(2, or(16, and(4)))"
    shown = nearsim.succeed("profile", "show", "both", "--collection", "news", "--json").document()
    assert shown["amplification"] == one["amplification"]
    assert shown["expected_recall"] == round(one["probability_at_threshold"], 6)


def test_the_axis_of_winnow_is_the_length_of_a_run(plain: CommandLine) -> None:
    found = plain.succeed("curve", "--preset", "embedded-stories", "--json").document()
    [one] = found["curves"]
    points = dict(one["points"])
    assert (found["metric"], found["threshold"], min(points), max(points)) == ("containment", 20, 4, 36)
    assert (points[4.0], points[20.0], points[36.0], one["fixed_point"]) == (0, 1, 1, None)
    assert list(points.values()) == sorted(points.values())
    out = plain.succeed("curve", "--preset", "embedded-stories").out
    assert "windows of 16 shingles of 5 words\n" in out
    assert "is not a distance" in plain.fail(
        "curve", "--preset", "embedded-stories", "--near", 0.1, "--far", 0.5, exit_code=2
    )


@pytest.mark.parametrize(("preset", "near", "far"), [("cs246-cosine", 20, 60), ("cs246-euclidean", 1, 4)])
def test_a_design_is_in_the_metric_of_the_recipe(
    plain: CommandLine, preset: str, near: float, far: float
) -> None:
    distances = ("--preset", preset, "--near", near, "--far", far)
    wanted = ("--near-probability", "0.95", "--far-probability", "0.05", "--json")
    _, design = plain.succeed("curve", *distances, *wanted).document()["curves"]
    assert design["sensitivity"]["near_probability"] >= 0.95
    assert design["sensitivity"]["far_probability"] <= 0.05
    if preset == "cs246-cosine":  # a hyperplane separates vectors at an angle with probability angle / 180
        expected = 1 - (1 - (1 - near / 180) ** design["rows"]) ** design["bands"]
        assert design["sensitivity"]["near_probability"] == pytest.approx(expected)
