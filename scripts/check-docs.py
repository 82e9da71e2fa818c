#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: scripts/check-docs.sh calls it.

    check-docs.py names XML      every public name that Doxygen saw has a comment
    check-docs.py links [HTML]   links between pages, and to sources, lead somewhere; with a folder, those of the site
    check-docs.py code           code on a page is part of a source that is built, or pulled from one by markers that exist
"""

import html.parser
import pathlib
import re
import subprocess
import sys
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

CODE = ("cpp", "c++", "cuda")


def plain(text):
    """Without indentation and trailing blanks: what a page quotes may be indented less."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def check_code():
    problems, quoted, pulled = [], 0, 0
    sources = {path: plain(path.read_text(encoding="utf-8", errors="replace"))
               for path in tracked("docs/**/*.cpp", "docs/**/*.cu", "examples/**/*.cpp", "examples/**/*.hpp", "tests/**/*.cpp", "tests/*.cpp")}
    for page in tracked("*.md"):
        for _, _, info, body in FENCE.findall(page.read_text(encoding="utf-8")):
            directive = re.match(r"\{literalinclude\}\s*(\S+)", info)
            if directive:
                pulled += 1
                problems += [f"{relative(page)}: {directive[1]}: {what}" for what in broken_include(page, directive[1], body)]
            elif info.strip() in CODE:
                quoted += 1
                if not any(plain(body) in text for text in sources.values()):
                    problems.append(f"{relative(page)}: this is in no source that is built: {body.strip().splitlines()[0]}")
    more, examples = check_header_examples()
    return problems + more, f"{pulled} pieces of code pulled from sources that are built, {quoted} quoted, {examples} lines of headers"


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


def broken_include(page, name, options):
    file = (page.parent / name).resolve()
    if not file.is_file():
        return ["there is no such file"]
    text = file.read_text(encoding="utf-8")
    option = {key: value.strip("\"'") for key, value in re.findall(r"(?m)^ *:([\w-]+): *(.+?) *$", options)}
    start = option.get("start-after", option.get("start-at"))
    end = option.get("end-before", option.get("end-at"))
    wrong = [f"'{marker}' is not in it" for marker in (start, end) if marker and marker not in text]
    if start and start == end and text.count(start) != 2:
        wrong.append(f"'{start}' must be in it twice")
    return wrong


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
