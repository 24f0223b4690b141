"""From a string to a model."""

import sys

import pytest

from tests.helpers.model_files import write
from vulcan.domains import DOMAINS, Bandit
from vulcan.errors import OptionError
from vulcan.formats import registry
from vulcan.formats.registry import open_model, read_settings

PLAIN = """
class {name}:
    horizon = 3
    def __init__(self, size=1, fast=False): self.size, self.fast = size, fast
    def initial_state(self): return 0
    def actions(self, state): return []
    def outcomes(self, state, action): return []
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A directory to be in; whatever is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_built_in_names():
    for name in DOMAINS:
        assert open_model(name).model.horizon > 0
    assert open_model("bandit", ["horizon=4"]).model == Bandit(horizon=4)


def test_modules_and_files(folder):
    write(folder / "port.py", PLAIN.format(name="Port"))
    write(folder / "fleet" / "ships.py", PLAIN.format(name="Ship"))
    assert open_model("port:Port", ["size=2"]).model.size == 2
    assert open_model("port.py:Port").model.size == 1
    assert open_model("fleet.ships:Ship").model.size == 1
    assert open_model(f"{folder}/fleet/ships.py:Ship", ["fast=True"]).model.fast is True


def test_a_file_finds_its_neighbours_and_replaces_nothing(folder):
    write(folder / "far" / "tides.py", "HIGH = 7\n")
    text = f"from tides import HIGH\n{PLAIN.format(name='Port')}    high = HIGH\n"
    write(folder / "far" / "json.py", text)
    before = sys.modules["json"]
    assert open_model("far/json.py:Port").model.high == 7
    assert sys.modules["json"] is before


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("os:system", ["command=touch called"]),
        ("shutil:rmtree", ["path=kept"]),
        ("os:mkdir", ["path=called"]),
        ("pathlib:Path", []),
        ("subprocess:Popen", ["args=('touch', 'called')"]),
        ("pathlib:Path.cwd", []),
    ],
)
def test_what_is_no_model_is_not_called(folder, text, settings):
    (folder / "kept").mkdir()
    with pytest.raises(OptionError, match=r"is not a model: it has no|is a |has no 'Path.cwd'"):
        open_model(text, settings)
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_installed_modules_come_first(folder):
    write(folder / "colorsys.py", "raise AssertionError('run')\n")
    write(folder / "far" / "colorsys.py", "raise AssertionError('run')\n")
    write(folder / "port.py", "import colorsys\n" + PLAIN.format(name="Port"))
    write(folder / "far" / "boat.py", "import colorsys\n" + PLAIN.format(name="Boat"))
    before = list(sys.path)
    assert open_model("bandit", ["horizon=2"]).model.horizon == 2
    assert sys.path == before
    assert open_model("port:Port").model.size == 1
    assert open_model("far/boat.py:Boat").model.size == 1
    assert sys.path == [*before, str(folder), str(folder / "far")]
    with pytest.raises(OptionError, match="colorsys has no 'Port'"):
        open_model("colorsys:Port")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("a=3", 3),
        ("a=-0.5", -0.5),
        ("a=True", True),
        ("a = (1, 2) ", (1, 2)),
        ("a={'x': None}", {"x": None}),
        ("a='text'", "text"),
        ("a=plain text", "plain text"),
        ("a=b=c", "b=c"),
        ("a=", ""),
        ("a=__import__('os')", "__import__('os')"),
        ("a=" + "(" * 500, "(" * 500),
    ],
)
def test_values_are_literals_or_texts(setting, value):
    assert read_settings([setting]) == {"a": value}


@pytest.mark.parametrize("setting", ["horizon", "=3", "2x=3", "a b=3", ""])
def test_settings_have_a_name(setting):
    with pytest.raises(OptionError, match="name=value"):
        open_model("bandit", [setting])


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("bandit", ["horizon=3", "horizon=4"], "gives horizon twice"),
        ("bandit", ["merges=false"], "merges is True or False, not 'false'"),
        ("bandit", ["size=3"], "its parameters are horizon=9, merges=True, machines=.{29}…"),
        ("port:Port", ["siez=3"], "no parameter 'siez'; did you mean 'size'"),
        (
            "port:Need",
            [],
            "Need needs --set depth=... --set tide=...\nits parameters are depth, tid",
        ),
        ("port:Bare", ["size=3"], "Bare has no parameter 'size'\nit has no parameters"),
        ("port:Broken", ["size=3"], r"Broken\(size=3\) can't be created: ValueError: too small \("),
        ("port:Refusing", [], "refused by the model"),
        ("port:Harbour", [], "port has no 'Harbour'; it has port:Port"),
        ("port:LIMIT", [], "port:LIMIT is a int, not the class of a model"),
        ("port:Stranger", [], "port:Stranger is not a model: it has no initial_state, actions, ou"),
        ("port.py", [], "port.py needs a class name; it has port.py:Port"),
        ("port.py:", [], "port.py needs a class name"),
        ("empty.py:Port", [], "it has no class with initial_state, actions, outcomes"),
        ("absent.py:Port", [], "there is no file absent.py"),
        ("absent:Port", [], "there is no module 'absent'"),
        ("absent.deep:Port", [], "there is no module 'absent'"),
        ("port.deep:Port", [], r"port\.deep"),
        (":Port", [], "there is no model ':Port'"),
        ("wrong:Port", [], r"wrong can't be imported: SyntaxError: .*wrong.py, line 2"),
        ("hungry:Port", [], "hungry can't be imported: ModuleNotFoundError: .*'nowhere'.*line 2"),
        ("leaving.py:Port", [], r"leaving.py can't be imported: SystemExit: 3 \(.*line 1\)"),
    ],
)
def test_what_cannot_be_found_or_made_says_why(folder, text, settings, message):
    more = """
LIMIT = 3
class Need(Port):
    def __init__(self, depth, tide, *rest, size=1): pass
class Bare(Port):
    def __init__(self): pass
class Stranger: pass
class Broken(Port):
    def __init__(self, size): raise ValueError("too small")
class Refusing(Port):
    def __init__(self):
        from vulcan.errors import VulcanError
        raise VulcanError("refused by the model")
"""
    write(folder / "port.py", PLAIN.format(name="Port") + more)
    write(folder / "empty.py", "")
    write(folder / "wrong.py", "x = 1\ny = = 2\n")
    write(folder / "hungry.py", "\nimport nowhere\n")
    write(folder / "leaving.py", "raise SystemExit(3)\n")
    with pytest.raises(Exception, match=message) as caught:
        open_model(text, settings)
    assert type(caught.value).__module__ == "vulcan.errors"


def test_a_class_that_takes_anything_is_given_anything(folder):
    own = "class Any(Port):\n    def __init__(self, **rest): self.rest = rest\n"
    write(folder / "port.py", PLAIN.format(name="Port") + own)
    assert open_model("port:Any", ["size=3"]).model.rest == {"size": 3}


def test_an_installed_distribution_adds_a_format(folder):
    write(
        folder / "boats.py",
        """
from vulcan.domains import Bandit
FORMS = {"boat:N": "a bandit"}
def find_maker(text):
    return text, lambda: Bandit(int(text.removeprefix("boat:"))), None
""",
    )
    write(folder / "boats-1.0.dist-info" / "METADATA", "Name: boats\nVersion: 1.0\n")
    write(folder / "boats-1.0.dist-info" / "entry_points.txt", "[vulcan.formats]\nboat = boats\n")
    sys.path.append(str(folder))
    assert open_model("boat:4").model == Bandit(4)


@pytest.mark.parametrize("text", ["rddl:Navigation_MDP_ippc2011/1", "courier.rddl"])
def test_a_format_that_is_not_installed_says_what_to_install(monkeypatch, text):
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    with pytest.raises(OptionError, match=r"needs vulcan-planner-rddl: pip install vulcan-pl"):
        open_model(text)
