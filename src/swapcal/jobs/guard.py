"""Which file is which: no file of a command stands for two things, and only what swapcal has made is replaced."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from swapcal.errors import InvalidInput

__all__ = ["PARTS", "apart", "check_page", "lock_of", "parts_of", "regular"]

PARTS = ".parts"
_PAGE = b"<!doctype html>"
_HEAD = 1 << 17
"""Bytes of a page in which swapcal's name stands."""

File = str | os.PathLike[str] | int
"""A path, or the number of an open file."""


def apart(files: Mapping[str, File | None]) -> None:
    """Refuse files of one command that are the same file, by whatever names, links included; touches nothing.

    Parameters
    ----------
    files : mapping
        From what a message calls the file to its path, to the number of an open file, or to None. What a run makes
        beside "the output" and "the state" counts too.

    Examples
    --------
    >>> apart({"the input": "scores.csv", "the state": "./scores.csv"})
    Traceback (most recent call last):
        ...
    swapcal.errors.InvalidInput: the input and the state are the same file, ./scores.csv; give each a file of its own
    """
    named = {role: file for role, file in files.items() if file is not None}
    out, state = files.get("the output"), files.get("the state")
    folder = None
    if out is not None and not isinstance(out, int):
        folder = _identity(parts_of(Path(out)))
        named["the folder for parts of the output"] = parts_of(Path(out))
    if state is not None and not isinstance(state, int):
        named["the lock of the state"] = lock_of(Path(state))
    seen: dict[tuple[object, ...], str] = {}
    for role, file in named.items():
        who = _identity(file)
        if who is None:
            continue
        if who in seen:
            raise InvalidInput(
                f"{seen[who]} and {role} are the same file, {_name(file, named)}; give each a file of its own"
            )
        if folder is not None and not isinstance(file, int) and _identity(Path(file).absolute().parent) == folder:
            raise InvalidInput(
                f"{role} {os.fspath(file)} lies in the folder that is used for parts of the output; move it, or give "
                "another --out"
            )
        seen[who] = role


def regular(file: File) -> bool:
    """Whether it is a file that can be looked at twice, which pipes and devices cannot."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)
    except (OSError, ValueError):
        return False


def parts_of(out: Path) -> Path:
    """The folder beside an output that holds what is not merged yet."""
    return out.with_name(out.name + PARTS)


def lock_of(state: Path) -> Path:
    """The file beside a state that says who uses it; beside what a link points to, as that is what gets replaced."""
    target = Path(os.path.realpath(state))
    return target.with_name(target.name + ".lock")


def check_page(path: str | os.PathLike[str] | None) -> None:
    """Refuse to put a page in the place of a file that is no page of swapcal."""
    if path is None or not os.path.lexists(path):
        return
    if os.path.isdir(path):
        raise InvalidInput(f"the page cannot be written to {os.fspath(path)}: it is a folder; give a file name")
    if not regular(path):
        if not os.path.exists(path):
            raise InvalidInput(f"the page {os.fspath(path)} is a link to nothing; remove it, or give another name")
        return  # a pipe or a device takes the page and loses nothing
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head and not (head.lstrip()[: len(_PAGE)].lower() == _PAGE and b"swapcal" in head):
        raise InvalidInput(
            f"{os.fspath(path)} is there already and is no page of swapcal, so it is left as it is; give the page "
            "another name"
        )


def _identity(file: File) -> tuple[object, ...] | None:
    """The same for two names of one file, also of one that is not there yet; None for pipes and devices."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        if isinstance(file, int):
            return None
        target = os.path.realpath(file)
        folder, name = os.path.split(target)
        try:
            home = os.stat(folder)
        except (OSError, ValueError):
            return folder, name
        # Some systems take Out.csv and out.csv for the same file.
        return home.st_dev, home.st_ino, name.casefold()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return None
    return found.st_dev, found.st_ino


def _name(file: File, named: Mapping[str, File]) -> str:
    if isinstance(file, int):
        return next((os.fspath(each) for each in named.values() if not isinstance(each, int)), "standard input")
    return os.fspath(file)
