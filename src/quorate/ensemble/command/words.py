"""What is said of a command that fails on public rows, and of one that was written for a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

_LONGEST = 240  # characters of what a command printed
_FEWEST = 60  # of a line that is not shown whole; less of it would tell nothing
_LONGEST_COMMAND = 160
_READ_BYTES = 65_536  # of the end of what it printed
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours
_POINTERS = re.compile(r"[\s^~]*")  # a line that points at a part of the one above it
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_EXPANDED = re.compile(r"\$\{?\w+\}?|(?:(?<=\s)|^)~(?=/)")  # for which a shell would put something else
_JOINING = re.compile(r"\|\|?|&&?|;|>>?|<<?|`|\$\(")  # of commands, or of a command and a file
_NAME_OF_A_FILE = re.compile(r"[^\s=]*\.[A-Za-z]\w{0,7}")
#: How the names of scripts end: an argument that ends so has to be a file.
SCRIPTS = (".r", ".py", ".sh", ".jl", ".pl", ".rb", ".js", ".m", ".lua", ".jar", ".php")


def last_words(path: Path) -> str:
    """Return the last lines of a file that fit a message, on one line; "…" stands where something was left out.

    Lines are whole. One that is too long is shown from its beginning, since the cause stands there; no word is cut
    that is not longer than the message itself.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return ""
    text = _ESCAPES.sub("", content[-_READ_BYTES:].decode("utf-8", "replace"))
    return shortened(text.splitlines(), cut=len(content) > _READ_BYTES)


def shortened(lines: Sequence[str], *, cut: bool = False) -> str:
    """Join the last of some lines.

    `lines`: what was printed. `cut`: whether the first of them is the end of one, and more were before it.

    Examples
    --------
    >>> shortened(["Traceback:", "  File x", "    ~~~^^", "KeyError: 'age'"])
    "Traceback: / File x / KeyError: 'age'"
    >>> shortened(["one", "two " * 58, "three"])[:20]
    '… / two two two two '
    >>> shortened(["Error: " + "long " * 60, "Execution halted"])[-70:]
    'long long long long long long long long long long … / Execution halted'
    """
    if cut and len(lines) == 1:  # one line that is longer than all that was read: from the first whole word
        lines = [lines[0].partition(" ")[2] or lines[0]]
    elif cut:
        lines = lines[1:]
    plain = [" ".join("".join(sign if sign.isprintable() else " " for sign in line).split()) for line in lines]
    plain = [line for line in plain if not _POINTERS.fullmatch(line)]
    shown: list[str] = []
    left = _LONGEST
    for line in reversed(plain):
        if len(line) > left:
            if left >= _FEWEST:
                shown.append(_beginning(line, left))
            break
        shown.append(line)
        left -= len(line) + len(" / ")
    if shown and (cut or len(shown) < len(plain)):
        shown.append("…")
    return " / ".join(reversed(shown))


def _beginning(line: str, most: int) -> str:
    """Cut a line after a word."""
    head = line[:most]
    if line[most] != " " and " " in head:
        head = head.rpartition(" ")[0]
    return f"{head.rstrip()} …"


def of_a_shell(text: str) -> str:
    r"""Say what of a text a shell would read, since none does; nothing where it is quoted, or there is nothing.

    Examples
    --------
    >>> of_a_shell("awk -f nb.awk | sort").partition(":")[0]
    "no shell reads its words, so '|' is a word of the program's"
    >>> of_a_shell("Rscript $HOME/teach.R").partition(":")[0]
    "no shell reads its words, so '$HOME' stays as it is"
    >>> of_a_shell("awk -F '|' -f nb.awk"), of_a_shell('sh -c "a; b > $1"'), of_a_shell("teach --sep=\\;")
    ('', '', '')
    """
    plain = _QUOTED.sub("_", text)
    if found := _JOINING.search(plain):
        sign = found[0]
        return (
            f"no shell reads its words, so {sign!r} is a word of the program's: write what a shell is to do into a "
            f"script (sh teach.sh), or {sign!r} in quotes where the program is to have it"
        )
    if found := _EXPANDED.search(plain):
        return (
            f"no shell reads its words, so {found[0]!r} stays as it is: write what it stands for, or put it in quotes "
            "where the program is to have it"
        )
    return ""


def absent(command: Sequence[str], folder: Path) -> list[str]:
    """Return the words of a command that are written as files are, and are none.

    Examples
    --------
    >>> absent(["awk", "-f", "nowhere.awk", "0.5", "--out=a.txt", "a line of code for it.py"], Path("/"))
    ['nowhere.awk']
    """
    named = (word for word in command[1:] if not word.startswith("-") and _NAME_OF_A_FILE.fullmatch(word))
    return [word for word in named if not is_file(folder / word)]


def nearest(word: str, folder: Path) -> str:
    """Say that there is no such file, and which one may be meant."""
    path = folder / word
    endings = (*SCRIPTS, path.suffix.lower())
    near = get_close_matches(path.name, [each.name for each in path.parent.glob("*") if each.suffix.lower() in endings])
    meant = f"did you mean {str(Path(word).with_name(near[0]))!r}?" if near else "correct its path"
    return f"there is no such file in {folder}; {meant}"


def failing(command: Sequence[str], folder: Path, said: str, remedy: str, *, given: str) -> str:
    """Say how a command fails on public rows, and what to do.

    `command`: its words. `folder`: what its relative paths start from. `said`: what went wrong. `remedy`: what to do;
    nothing where the command is to be mended. `given`: what is added to its words.

    Examples
    --------
    >>> failing(["nb"], Path("/"), "it wrote no file of votes", "", given="the file TRAIN")
    'the command nb fails on public rows: it wrote no file of votes. Mend it; it is called with the file TRAIN'
    """
    spelled = " ".join(shlex.join(command).split())
    if len(spelled) > _LONGEST_COMMAND:
        spelled = _beginning(spelled, _LONGEST_COMMAND)
    told = [f"the command {spelled} fails on public rows: {said.rstrip('.')}"]
    signs = [word for word in command if _JOINING.fullmatch(word)]
    if signs:
        told.append(f"No shell reads its words, and {signs[0]!r} is one of them")
    missing = absent(command, folder)
    if missing:
        told.append(f"It names {missing[0]!r}, and {nearest(missing[0], folder)}")
    told.append(remedy or f"Mend it; it is called with {given}")
    return " ".join(f"{each}{'' if each.endswith('?') else '.'}" for each in told).removesuffix(".")


def is_file(path: Path) -> bool:
    """Tell whether there is such a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # no path at all, such as a program that is given as a word
        return False
