"""Files from outside cannot run programs, wait for ever, read other files or take gigabytes."""

import gzip
import io
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from threading import Thread

import h5py
import numpy as np
import pytest
from PIL import Image

import driftline
from driftline.corruptions.cropping import decode_image
from driftline.data import file_errors
from driftline.data.formats import images, json_lines, table_file, wild_time
from driftline.data.yearbook import yearbook
from driftline.errors import UserError
from driftline.io import bounded_files

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size and has no pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_pictures_are_opened_in_one_place_only():
    source = Path(driftline.__file__).parent
    found = [
        path
        for path in source.rglob("*.py")
        if re.search(r"\bImage\.open\(|\bimage\.open\(", path.read_text(encoding="utf-8"))
    ]
    assert [path.relative_to(source).as_posix() for path in found] == ["data/formats/images.py"]


@pytest.mark.parametrize("read", [lambda file: images.read_image(file, 8), decode_image])
def test_a_program_a_pipe_and_a_huge_picture_are_no_pictures(tmp_path, read):
    (tmp_path / "program.png").write_bytes(EPS)
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "large.png").write_bytes(png_of(13_000, 13_000))
    Thread(target=(tmp_path / "pipe.png").write_bytes, args=(EPS,), daemon=True).start()  # waits for a reader
    for name, reason in (("program", "neither of PNG"), ("pipe", "a pipe or a device"), ("large", "pixels")):
        with pytest.raises(UserError, match=f"{name}.png: expected a picture, but found: .*{reason}"):
            read(tmp_path / f"{name}.png")
    assert (tmp_path / "pipe.png").read_bytes() == EPS, "nothing read the pipe before"


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM"])
def test_pictures_of_all_usual_formats_are_read(kind):
    content = io.BytesIO()
    Image.new("RGB", (9, 8), (250, 0, 0)).save(content, kind)
    assert abs(decode_image(content.getvalue()).astype(int) - (250, 0, 0)).max() < 10


def test_a_gzipped_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "bomb.jsonl.gz"
    file.write_bytes(gzip.compress(b"{}" + b" " * 3_000_000 + b"\n{}\n"))
    assert len(list(json_lines.iter_records(file))) == 2
    monkeypatch.setattr(bounded_files, "ALWAYS_ALLOWED_BYTES", 1000)
    with pytest.raises(UserError, match=r"bomb.*once unpacked"), file_errors(file, "records"):
        list(json_lines.iter_records(file))


def test_a_gzipped_table_that_unpacks_to_too_much_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    file = tmp_path / "bomb.csv.gz"
    file.write_bytes(gzip.compress(b"t,y\n" + b"1,2\n" * 100_000))
    assert len(table_file.read_file(file)) == 100_000
    monkeypatch.setattr(bounded_files, "ALWAYS_ALLOWED_BYTES", 1000)
    monkeypatch.setattr(table_file.pd, "read_csv", lambda *_, **__: pytest.fail("rows would fill the memory"))
    with pytest.raises(UserError, match=r"bomb.*once unpacked"):
        table_file.read_file(file)


def test_an_npz_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros(3_000_000, np.uint8))
    assert bounded_files.read_npz(tmp_path / "bomb.npz")["x"].shape == (3_000_000,)
    monkeypatch.setattr(bounded_files, "ALWAYS_ALLOWED_BYTES", 1000)
    with pytest.raises(ValueError, match="once unpacked"):
        bounded_files.read_npz(tmp_path / "bomb.npz")


def test_items_of_no_bytes_and_unusual_packing_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        header = b"{'descr': '<U0', 'fortran_order': False, 'shape': (4000000000,), }"
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(ValueError, match="once unpacked"):
        bounded_files.read_npz(tmp_path / "many.npz")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"b")
    with pytest.raises(ValueError, match="unusual"):
        bounded_files.open_zip(tmp_path / "odd.zip")


def write_hdf5(path: Path, year: str, add) -> None:
    with h5py.File(path, "w") as file:
        for part in ("train", "test"):
            group = file.create_group(f"{year}/{part}")
            group["labels"] = np.zeros(1, np.int64)
            add(group)


def external_link(group):
    group["images"] = h5py.ExternalLink("other.h5", "/images")


def soft_link(group):
    group["images"] = h5py.SoftLink("/elsewhere")


def external_storage(group):
    group.create_dataset("images", (1, 32, 32), np.uint8, external=[("secret.bin", 0, 1024)])


def virtual(group):
    layout = h5py.VirtualLayout((1, 32, 32), np.uint8)
    layout[:] = h5py.VirtualSource("other.h5", "images", (1, 32, 32))
    group.create_virtual_dataset("images", layout)


def unwritten(group):
    group.create_dataset("images", (10**7, 32, 32), np.uint8, chunks=(1, 32, 32))


def large_chunk(group):
    group.create_dataset("images", (1, 32, 32), np.uint8, chunks=(300_000, 32, 32), maxshape=(None, 32, 32))


@pytest.mark.parametrize(
    ("add", "reason"),
    [
        (external_link, "link to elsewhere"),
        (soft_link, "link to elsewhere"),
        (external_storage, "data lie in another file"),
        (virtual, "data lie in another file"),
        (unwritten, "once unpacked"),
        (large_chunk, "once unpacked"),
    ],
)
def test_an_hdf5_file_must_hold_its_data_itself(tmp_path, add, reason):
    (tmp_path / "secret.bin").write_bytes(bytes(1024))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["images"] = np.zeros((1, 32, 32), np.uint8)
    write_hdf5(tmp_path / "yearbook.hdf5", "2000", add)
    with pytest.raises(UserError, match=f"yearbook.hdf5: .*{reason}"):
        yearbook([tmp_path])


def test_texts_of_wild_time_are_checked_likewise(tmp_path):
    write_hdf5(tmp_path / "arxiv.hdf5", "2010", lambda group: group.update({"text": h5py.ExternalLink("o.h5", "/t")}))
    with pytest.raises(UserError, match="link to elsewhere"):
        wild_time.read_texts(tmp_path / "arxiv.hdf5", range(2010, 2011), "title", 172)
