"""`vulcan export`."""

import pytest

from tests.helpers.command_line import SMALL


@pytest.mark.parametrize("suffix", [".drn", ".prism"])
def test_export(run, tmp_path, suffix):
    path = tmp_path / f"bandit{suffix}"
    answer = run("export", "bandit", path, "--horizon", "3")
    assert answer.code == 0
    assert 'ask for      multi(R{"reward"}max=? [C<=3], P<=0.1 [F<=3 "failed"])' in answer.out
    assert f"{path.stat().st_size:,} bytes" in answer.out
    assert "C<=3" in path.read_text()


def test_document(run, tmp_path):
    document = run("export", SMALL[0], "bandit.drn", *SMALL[1:], "--json").document
    assert document["states"] > 10
    assert (tmp_path / document["path"]).is_file()


def test_refused(run, tmp_path):
    answer = run("export", *SMALL[:1], "bandit.txt", *SMALL[1:])
    assert (answer.code, answer.out) == (2, "")
    assert "models are written as .drn, .prism, .pm, .nm, not as '.txt'" in answer.err
    answer = run("export", *SMALL[:1], "nowhere/bandit.drn", *SMALL[1:])
    assert answer.code == 2
    assert "nowhere" in answer.err


def test_horizon_is_short_for_a_setting(run):
    for text in (("--horizon", "2"), ("--horizon=2",), ("--set", "horizon=2")):
        assert "Bandit(horizon=2)" in run("check", "bandit", *text).out
    assert (
        "--set gives horizon twice" in run("check", "bandit", "--horizon", "2", "--horizon=3").err
    )
    assert run("check", "bandit", "--horizon").code == 2
    assert run("show", "plan.vulcan", "--horizon", "2").code == 2
