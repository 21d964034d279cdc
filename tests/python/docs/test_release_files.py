"""Files of a release agree: its version, versions of Python, requirements, long description."""

import re

import pytest
from project import ROOT, read

pytestmark = pytest.mark.skipif(
    not (ROOT / ".github").is_dir(), reason="the files of releases are not in a source distribution"
)

PROJECT = "pyproject.toml"


def version():
    return re.search(r'^version = "([^"]+)"', read(PROJECT), re.M).group(1)


def test_one_version():
    for name, pattern in [
        ("CITATION.cff", r"^version: (\S+)$"),
        (".ci/conda/recipe.yaml", r'^  version: "([^"]+)"$'),
        ("CHANGELOG.md", r"^## (\S+)"),
    ]:
        assert re.search(pattern, read(name), re.M).group(1) == version(), name


def test_one_list_of_pythons():
    project = read(PROJECT)
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert re.search(r'requires-python = ">=([\d.]+)"', project).group(1) == named[0]
    built = re.search(r'^build = "([^"]+)"$', project, re.M).group(1)
    newest = named[-1].replace(".", "")
    wanted = [f"cp{name.replace('.', '')}-*" for name in named]
    assert built.split() == [*wanted, f"cp{newest}t-*"]  # also without Python's lock
    matrix = re.search(r"^ +python: \[([^]]+)\]", read(".github/workflows/tests.yml"), re.M).group(
        1
    )
    assert re.findall(r'"([^"]+)"', matrix) == named


def test_the_long_description_is_one_that_an_index_can_show():
    name = re.search(r'^readme = "([^"]+)"', read(PROJECT), re.M).group(1)
    text = read(name)
    assert "![" not in text
    assert "<img" not in text
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", text))


def test_the_recipe_has_the_requirements_of_the_project_but_the_wheel_of_lapack():
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", read(PROJECT), re.M | re.S).group(1)
    wanted = {re.sub(r"[>=].*", "", one): one for one in re.findall(r'^  "([^"]+)"', listed, re.M)}
    del wanted["scipy-openblas32"]
    host, _, run = read(".ci/conda/recipe.yaml").partition("  host:\n")[2].partition("  run:\n")
    requires = re.search(r"^requires = \[(.+)\]", read(PROJECT), re.M).group(1)
    for name, bound in re.findall(r'"([a-z0-9-]+)(>=[^"]+)"', requires):
        assert (f"- {name} {bound}\n" in host) == (name != "scipy-openblas32")
    given = dict(line.strip("- ").split(" ") for line in run.split("\n\n")[0].splitlines())
    assert given.pop("python") == ">=3.10"
    assert {f"{name}{bound}" for name, bound in given.items()} == set(wanted.values())


def test_the_oldest_versions_are_tested():
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", read(PROJECT), re.M | re.S).group(1)
    listed += re.search(r"^test = \[\n(.*?)^\]", read(PROJECT), re.M | re.S).group(1)
    bounds = dict(re.findall(r'^  "([a-z-]+)>=([\d.]+)"', listed, re.M))
    lines = [line for line in read(".ci/oldest").splitlines() if not line.startswith("#")]
    constraints = dict(re.fullmatch(r"([a-z-]+)==([\d.]+)\.\*", line).groups() for line in lines)
    assert {name: bounds[name] for name in constraints} == constraints
    assert {"numpy", "scipy", "scikit-learn", "threadpoolctl"} <= set(constraints)
    assert "--constraint .ci/oldest" in read(".github/workflows/tests.yml")
