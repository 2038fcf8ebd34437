"""Arrow files, and folders of tables as Hugging Face datasets and others write them."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Source
from nearsim_db.records import ReadDocument


def table(*ids: int) -> pyarrow.Table:
    return pyarrow.table(
        {"id": list(ids), "text": [f"text {one}" for one in ids], "label": [one % 2 for one in ids]}
    )


def write_stream(path: Path, rows: pyarrow.Table) -> None:
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)


def save_dataset(folder: Path, *parts: pyarrow.Table) -> None:
    """Write a folder as `Dataset.save_to_disk` does; the state names the files in their order."""
    folder.mkdir(parents=True)
    names = [f"data-{at:05d}-of-{len(parts):05d}.arrow" for at in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        write_stream(folder / name, part)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")


def ids(path: Path) -> list[str]:
    return [read.document.external_id for read in Source([path]) if isinstance(read, ReadDocument)]


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_an_arrow_file_is_read_as_stream_or_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.arrow"
    if kind == "stream":
        write_stream(path, table(1, 2, 3))
    else:
        with pyarrow.ipc.new_file(path, table(1).schema) as writer:
            writer.write_table(table(1, 2, 3))
    source = Source([path])
    reads = list(source)
    assert source.bytes_read == source.total_bytes
    assert [read.line for read in reads] == [1, 2, 3]
    assert isinstance(reads[2], ReadDocument)
    document = reads[2].document
    assert (document.external_id, document.body, document.attributes) == ("3", "text 3", {"label": 1})


def test_a_saved_dataset_is_read_in_its_order(tmp_path: Path) -> None:
    save_dataset(tmp_path / "one", table(1, 2, 3), table(4))
    assert ids(tmp_path / "one") == ["1", "2", "3", "4"]
    assert list(Source([tmp_path / "one"]))[-1].file.endswith("data-00001-of-00002.arrow")


def test_a_saved_dataset_of_splits_is_read_in_their_order(tmp_path: Path) -> None:
    save_dataset(tmp_path / "all" / "train", table(1, 2))
    save_dataset(tmp_path / "all" / "test", table(3))
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert ids(tmp_path / "all") == ["1", "2", "3"]


def test_rows_without_ids_are_numbered_in_their_split(tmp_path: Path) -> None:
    without, numbered = table(1, 2).drop_columns("id"), Fields(ids="whole")
    save_dataset(tmp_path / "all" / "train", without, without)
    save_dataset(tmp_path / "all" / "test", without)
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    (tmp_path / "hub" / "data").mkdir(parents=True)
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001", "more"):
        pyarrow.parquet.write_table(without, tmp_path / "hub" / "data" / f"{name}.parquet")
    for folder, splits in (
        ("all", {"train": 4, "test": 2}),
        ("hub", {"data/more.parquet": 2, "data/test": 2, "data/train": 4}),
    ):
        read = [one for one in Source([tmp_path / folder], numbered) if isinstance(one, ReadDocument)]
        assert [one.document.external_id for one in read] == [
            f"{tmp_path / folder / split}:{row}"
            for split, rows in splits.items()
            for row in range(1, rows + 1)
        ]
        assert all(one.is_numbered and one.line in (1, 2) for one in read)
    with pytest.raises(InputError, match="no column 'id'"):
        list(Source([tmp_path / "hub"]))


def test_a_folder_of_parquet_files_names_what_it_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for at in (1, 2):
        pyarrow.parquet.write_table(table(at), tmp_path / "data" / f"part-{at}.parquet")
    (tmp_path / "README.md").write_text("# A dataset")
    source = Source([tmp_path])
    reads = list(source)
    assert source.other_files == (tmp_path / "README.md",)
    assert [read.document.external_id for read in reads if isinstance(read, ReadDocument)] == ["1", "2"]
    assert source.bytes_read == source.total_bytes


@pytest.mark.parametrize(
    "state",
    [
        '{"_data_files": [{"filename": "../a.arrow"}]}',
        '{"_data_files": [{"filename": "gone.arrow"}]}',
        "{",
        "{}",
    ],
)
def test_a_wrong_state_is_an_error(tmp_path: Path, state: str) -> None:
    save_dataset(tmp_path / "one", table(1))
    (tmp_path / "one" / "state.json").write_text(state)
    with pytest.raises(InputError, match=r"a\.arrow|gone|state"):
        Source([tmp_path / "one"])


@pytest.mark.parametrize("content", [b"", b"ARROW1\0\0", b"not arrow at all"])
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.arrow"):
        list(Source([path]))


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_a_column_name_that_is_not_utf8_is_an_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.arrow"
    rows = table(1, 2).rename_columns(["id", "text", "named"])
    if kind == "stream":
        write_stream(path, rows)
    else:
        with pyarrow.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows)
    path.write_bytes(path.read_bytes().replace(b"named", b"n\xff\xfeed"))

    with pytest.raises(InputError, match=r"name of a column in .* is not UTF-8 \(b'n\\xff\\xfeed'\); rename"):
        list(Source([path]))
