# SPDX-License-Identifier: Apache-2.0
"""Sphinx extension: the API reference. In a page, a block ```{api} polyscan/scan.hpp``` becomes what Doxygen's XML knows of
that header: the comment at its head, then every public name with its declaration and its comment."""

import functools
import pathlib
import re
import textwrap
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?m)^```\{api\} *(\S+) *\n```$")
NAMESPACES = ("polyscan", "polyscan::policies", "polyscan::grid", "polyscan::block", "polyscan::reference", "polyscan::openmp",
              "polyscan::cuda", "polyscan::kokkos")


def head_comment(path):
    """The `///` lines at the head of a header, as Markdown. Indented lines are code, or a table of calls."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        if not line.startswith("///"):
            break
        lines.append(line[3:].removeprefix(" "))
    return markdown(lines)


def markdown(lines):
    """Code that is indented by four becomes a fenced block, so that it needs no empty lines around it."""
    out, code = [], []

    def flush():
        if not code:
            return
        text = textwrap.dedent("\n".join(code)).splitlines()
        language = "cpp" if ";" in "".join(text) else "text"
        out.extend(["", f"```{language}", *text, "```", ""])
        code.clear()

    in_list = False
    for line in lines:
        if line.startswith("    ") and not in_list:
            code.append(line)
            continue
        flush()
        in_list = bool(re.match(r" *[-\d]+[.]? ", line)) or (in_list and line.startswith(" "))
        # A list begins a block of its own.
        if re.match(r" +(-|\d+\.) ", line) and out and out[-1].strip() and not re.match(r" ", out[-1]):
            out.append("")
        out.append(re.sub(r"^ (?=- )", "", line) if in_list else line)
    flush()
    return "\n".join(out)


def comment_above(element):
    """The `///` lines above a declaration. Doxygen's own text of them has lost its lines, hence its code."""
    place = element.find("location")
    if place is None or not place.get("line"):
        return []
    lines = source_lines(place.get("file"))
    at = int(place.get("line")) - 2
    # Between the comment and the line with the name: template, requires, the result's type.
    while at >= 0 and lines[at].strip() and not re.search(r"[;}]\s*$|^\s*//", lines[at]) and not lines[at].strip().startswith("///"):
        at -= 1
    comment = []
    while at >= 0 and lines[at].strip().startswith("///"):
        comment.insert(0, lines[at].strip()[3:].removeprefix(" "))
        at -= 1
    return comment


@functools.cache
def source_lines(file):
    return (ROOT / file).read_text(encoding="utf-8").splitlines()


def words(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def description(element):
    """Markdown of a comment: that above a declaration, or the one that Doxygen found beside it."""
    above = comment_above(element)
    if above:
        return markdown(above)
    return " ".join(t for t in (words(element.find("briefdescription")), words(element.find("detaileddescription"))) if t)


def plain(element):
    """A type or a value as it is written here: `const T& x`, `view<T>`."""
    text = re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""
    return re.sub(r" (&&?|\*)", r"\1", re.sub(r"< (.*?) >", r"<\1>", text))


def template(element):
    parameters = element.find("templateparamlist")
    if parameters is None:
        return ""
    texts = []
    for parameter in parameters.iter("param"):
        name = plain(parameter.find("declname"))
        default = plain(parameter.find("defval"))
        texts.append(plain(parameter.find("type")) + (f" {name}" if name else "") + (f" = {default}" if default else ""))
    requires = plain(element.find("requiresclause"))
    separator = ", " if sum(map(len, texts)) < 80 else ",\n          "
    return f"template <{separator.join(texts)}>\n" + (f"    requires {requires}\n" if requires else "")


def declaration(member):
    kind, name = member.get("kind"), member.findtext("name")
    kept = plain(member.find("type"))
    if kind == "function":
        parameters = []
        for parameter in member.findall("param"):
            default = plain(parameter.find("defval"))
            one = f"{plain(parameter.find('type'))} {plain(parameter.find('declname'))}".strip() + (f" = {default}" if default else "")
            parameters.append(one)
        start = f"{kept + ' ' if kept else ''}{name}("
        text = start + ", ".join(parameters) + ")"
        if len(text) > 100:
            text = start + "\n    " + ",\n    ".join(parameters) + ")"
        tail = " const" if member.get("const") == "yes" else ""
        static = "static " if member.get("static") == "yes" else ""
        return template(member) + static + text + tail + ";"
    if kind == "typedef":
        return template(member) + f"using {name} = {kept};"
    if kind == "enum":
        values = [value.findtext("name") for value in member.findall("enumvalue")]
        return f"enum class {name} {{ {', '.join(values)} }};"
    if kind == "define":
        return f"#define {name}"
    start = plain(member.find("initializer"))
    return template(member) + f"{kept} {name}{' ' + start if start else ''};"


def values_of(enum):
    said = [(value.findtext("name"), words(value.find("briefdescription")) or words(value.find("detaileddescription")))
            for value in enum.findall("enumvalue")]
    lines = [f"- `{name}`: {text}" for name, text in said if text]
    return "\n".join(lines)


class Api:
    def __init__(self, folder):
        self.compounds = {}
        for path in sorted(folder.glob("*.xml")):
            compound = xml.parse(path).getroot().find("compounddef")
            if compound is not None:
                self.compounds[compound.get("id")] = compound

    def header(self, file):
        """Markdown for one header."""
        entries = {}
        for compound in self.compounds.values():
            kind, name = compound.get("kind"), compound.findtext("compoundname")
            scope, _, short = re.sub(r"<.*>", "", name).rpartition("::")
            if kind in ("class", "struct", "concept") and scope in NAMESPACES and self.is_in(compound, file) and "<" not in name:
                entries.setdefault((scope, short), []).append((self.line(compound), compound))
            if kind == "namespace" and name in NAMESPACES or kind == "file" and self.is_in(compound, file):
                for member in compound.iter("memberdef"):
                    own = member.findtext("name")
                    if not self.is_in(member, file) or "<" in own or "->" in (member.findtext("argsstring") or ""):
                        continue
                    if kind == "file" and member.get("kind") != "define":
                        continue
                    entries.setdefault((name if kind == "namespace" else "", own), []).append((self.line(member), member))
        parts = []
        for (scope, name), found in sorted(entries.items(), key=lambda entry: min(line for line, _ in entry[1])):
            found.sort(key=lambda pair: pair[0])
            shown = "::".join([*scope.split("::")[1:], name]) if scope else name
            parts.append(f"### {shown}\n\n" + "\n\n".join(self.entry(element) for _, element in found))
        return "\n\n".join(parts)

    @staticmethod
    def is_in(element, file):
        place = element.find("location")
        return place is not None and place.get("file", "").endswith("/include/" + file)

    @staticmethod
    def line(element):
        return int(element.find("location").get("line", 0))

    def entry(self, element):
        if element.tag == "memberdef":
            return f"```cpp\n{declaration(element)}\n```\n\n{description(element)}\n\n{values_of(element)}"
        name = element.findtext("compoundname").split("::")[-1]
        if element.get("kind") == "concept":
            return f"```cpp\n{template(element)}concept {name};\n```\n\n{description(element)}"
        members = [m for m in element.iter("memberdef") if m.get("prot") == "public" and m.get("kind") != "friend"]
        listed = []
        for member in members:
            comment = " ".join(words(member.find(tag)) for tag in ("briefdescription", "detaileddescription")).strip()
            if comment:
                listed += [f"    // {line}" for line in textwrap.wrap(comment, 92)]
            listed.append(textwrap.indent(declaration(member), "    "))
        body = " {\n" + "\n".join(listed) + "\n}" if listed else " {}"
        return f"```cpp\n{template(element)}{element.get('kind')} {name}{body};\n```\n\n{description(element)}"


def setup(app):
    app.add_config_value("api_xml", "", "html")
    found = {}

    def expand(app, name, source):
        def block(match):
            if "api" not in found:
                found["api"] = Api(pathlib.Path(app.config.api_xml))
            file = match[1]
            paths = [path for folder in ("core", "backends/openmp", "backends/cuda", "backends/kokkos")
                     if (path := pathlib.Path(app.srcdir) / folder / "include" / file).exists()]
            if not paths:
                raise ValueError(f"{name}: there is no header {file}")
            return head_comment(paths[0]) + "\n\n" + found["api"].header(file)

        source[0] = BLOCK.sub(block, source[0])
        if name == app.config.root_doc:
            # Pages that are not written yet are left out of the list.
            source[0] = re.sub(r"(?m)^(?:\.\./)?[\w/]+$", lambda m: m[0] if (pathlib.Path(app.srcdir) / "docs" / f"{m[0]}.md").exists()
                               else "", source[0])

    def stale(app, env, added, changed, removed):
        # They depend on the headers.
        return [name for name in env.found_docs if name.startswith("docs/reference/") or name == app.config.root_doc]

    app.connect("source-read", expand)
    app.connect("env-get-outdated", stale)
    return {"parallel_read_safe": True, "version": "1"}
