#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: scripts/check-docs.sh calls it.

    check-docs.py names XML      every public name that Doxygen saw has a comment
    check-docs.py links [HTML]   links between pages, and to sources, lead somewhere; with a folder, those of the site
    check-docs.py code [--write] code on a page is a piece of a source that is built; --write brings the pages up to date
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import textwrap
import urllib.parse
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked(*patterns):
    """Files of the tree, new ones included."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
                           capture_output=True, text=True, check=True).stdout
    return sorted(path for path in (ROOT / name for name in names.split("\0") if name) if path.is_file())


def relative(path):
    return path.relative_to(ROOT)


# ---- public names ---------------------------------------------------------------------------------------------------

# A struct's comment speaks of its data and types; what these functions do is fixed by convention.
CONVENTIONAL = re.compile(r"operator|identity$|name$|data$|size$")
# The contract of a backend (core/include/polyscan/backend.hpp) says what these do, wherever they are.
CONTRACT = ("available", "supports", "scan", "synchronize", "allocate", "copy_to_device", "copy_to_host", "for_each", "scratch",
            "radix_sort", "histogram", "reduce")


def described(element):
    return any("".join(element.find(tag).itertext()).strip() for tag in ("briefdescription", "detaileddescription")
               if element.find(tag) is not None)


def owner(name):
    """Specialisations and overloads share the comment of the first."""
    return re.sub(r"<.*>", "", name).strip()


def public_names(folder):
    """Yields (name, place, described) of namespaces' members, classes and their functions, and concepts."""
    for path in sorted(folder.glob("*.xml")):
        compound = xml.parse(path).getroot().find("compounddef")
        if compound is None or compound.get("prot") == "private" or compound.get("kind") not in ("namespace", "class", "struct", "concept", "union"):
            continue
        scope = compound.findtext("compoundname")
        if compound.get("kind") != "namespace":
            yield owner(scope), compound.find("location"), described(compound)
        for member in compound.iter("memberdef"):
            if member.get("prot") in ("private", "protected"):
                continue
            name = member.findtext("name")
            in_class = compound.get("kind") != "namespace"
            if in_class and (member.get("kind") != "function" or CONVENTIONAL.match(name)):
                continue
            if in_class and name in CONTRACT:
                continue
            # Constructors, destructors, deduction guides, and what overrides a documented function.
            if name.lstrip("~") == owner(scope).split("::")[-1] or "->" in (member.findtext("argsstring") or ""):
                continue
            if member.find("reimplements") is not None:
                continue
            yield f"{owner(scope)}::{owner(name)}", member.find("location"), described(member)


def check_names(folder):
    good, bad = set(), {}
    for name, place, is_described in public_names(pathlib.Path(folder)):
        if is_described:
            good.add(name)
        else:
            bad.setdefault(name, place)
    problems = []
    for name in sorted(set(bad) - good):
        place = bad[name]
        file = pathlib.Path(place.get("file"))
        problems.append(f"{relative(file) if file.is_absolute() else file}:{place.get('line')}: {name} has no comment")
    if not good:
        problems.append(f"{folder} has no names: has Doxygen run?")
    return problems, f"{len(good)} public names are documented"


# ---- links ----------------------------------------------------------------------------------------------------------

FENCE = re.compile(r"(?ms)^( *)(`{3,}|:{3,})([^\n]*)\n(.*?)^\1\2 *$")
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")


def slug(heading):
    """The anchor that both repository viewers and MyST give a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def anchors(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    found = {slug(heading) for heading in re.findall(r"(?m)^#{1,6} +(.+?) *$", text)}
    return found | set(re.findall(r"(?m)^\(([\w-]+)\)=$", text))


def check_links(site=None):
    problems, count = [], 0
    for page in tracked("*.md"):
        for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            name, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists():
                problems.append(f"{relative(page)}: {target}: there is no such file")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                problems.append(f"{relative(page)}: {target}: there is no such heading")
    if site:
        more, links = check_site(pathlib.Path(site))
        problems += more
        return problems, f"{count} links between pages, {links} in the site"
    return problems, f"{count} links between pages"


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        self.links += [attrs[key] for key in ("href", "src") if attrs.get(key)]


def check_site(folder):
    pages = {path.resolve(): Links(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    problems, count = [], 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            count += 1
            name, _, anchor = urllib.parse.unquote(link).partition("#")
            file = (path.parent / name.partition("?")[0]).resolve() if name else path
            if file.is_dir():
                file /= "index.html"
            if not file.exists():
                problems.append(f"{path.relative_to(folder.resolve())}: {link}: there is no such file")
            elif anchor and file in pages and anchor not in pages[file].ids:
                problems.append(f"{path.relative_to(folder.resolve())}: {link}: there is no such place")
    if not pages:
        problems.append(f"{folder} has no pages")
    return problems, count


# ---- code -----------------------------------------------------------------------------------------------------------

# A page shows code under a comment that names the source, and the marker around the piece:  <!-- code: file.cpp [marker] -->
QUOTE = re.compile(r"(?ms)^( *)<!-- code: (\S+)(?: (\[[^\]\n]+\]))? -->\n *```cpp\n(.*?)^ *```$")
CODE = re.compile(r"(?m)^ *```(?:cpp|c\+\+|cuda)$")


def piece(source, marker):
    """What stands between the marker's two lines; without one, all that follows the comments at the head."""
    text = source.read_text(encoding="utf-8")
    if marker:
        parts = re.split(rf"(?m)^ *// {re.escape(marker)}\n", text)
        if len(parts) != 3:
            raise ValueError(f"'// {marker}' must be a line in it twice")
        text = parts[1]
    else:
        text = re.sub(r"\A(?://[^\n]*\n|\s*\n)*", "", text)
    return textwrap.dedent(text).strip("\n") + "\n"


def check_code(write=None):
    problems, count = [], 0
    for page in tracked("*.md"):
        text = page.read_text(encoding="utf-8")

        def quoted(match):
            nonlocal count
            count += 1
            indent, name, marker, body = match.groups()
            try:
                now = textwrap.indent(piece((page.parent / name).resolve(), marker), indent)
            except (OSError, ValueError) as error:
                problems.append(f"{relative(page)}: {name}: {error}")
                return match[0]
            if body != now and not write:
                problems.append(f"{relative(page)}: {name} {marker or ''} has changed: scripts/check-docs.py code --write")
            head = match[0].split("\n", 1)[0]
            return f"{head}\n{indent}```cpp\n{now}{indent}```"

        fresh = QUOTE.sub(quoted, text)
        if write and fresh != text:
            page.write_text(fresh, encoding="utf-8")
        if CODE.search(QUOTE.sub("", text)):
            problems.append(f"{relative(page)}: a piece of code without a source: <!-- code: FILE [marker] -->")
    more, examples = check_header_examples()
    return problems + more, f"{count} pieces of code are those of sources that are built, {examples} lines of headers are run"


def check_header_examples():
    """The worked example of a verb's header: its lines, with what their comments promise, are in the program that runs them."""
    program = ROOT / "docs" / "snippets" / "header_examples.cpp"
    run = {" ".join(line.split()) for line in program.read_text(encoding="utf-8").splitlines()}
    problems, count = [], 0
    for header in tracked("core/include/polyscan/*.hpp"):
        text = header.read_text(encoding="utf-8").split("#pragma once")[0]
        for example in re.findall(r"(?:///     [^\n]*\n)+", text):
            if "polyscan::openmp::backend cpu;" not in example and "cpu, keys, values" not in example:
                continue
            for line in example.replace("///", "").splitlines():
                count += 1
                if " ".join(line.split()) not in run:
                    problems.append(f"{relative(header)}: this is not in {relative(program)}: {line.strip()}")
    return problems, count


def main():
    checks = {"names": check_names, "links": check_links, "code": check_code}
    if len(sys.argv) < 2 or sys.argv[1] not in checks:
        print(__doc__, file=sys.stderr)
        return 2
    problems, good = checks[sys.argv[1]](*sys.argv[2:])
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"documentation, {sys.argv[1]}: {f'{len(problems)} problems' if problems else good}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
