"""Figures of exploration missions: what they show against a direct enumeration, and their files."""

import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon
from matplotlib.text import Text
from PIL import Image

import vulcan
from tests.rule_policies import (
    BOUND,
    MISSION,
    WALL,
    cross_wall,
    enumerate_histories,
    find_journey,
    go_east,
    plan_by_rule,
)
from vulcan import OptionError, plotting
from vulcan.domains.exploration import Exploration, Field, Map, Obstacle, Vehicle
from vulcan.plotting.labels import Box
from vulcan.plotting.risk_reward import MOST_POINTS, merge_points
from vulcan.plotting.terrain import Window, choose_levels, choose_window, predict_field
from vulcan.plotting.visits import tabulate_visits


@pytest.fixture(scope="module")
def journeys():
    return plotting.follow_policy(plan_by_rule(MISSION, cross_wall), MISSION)


@pytest.fixture(scope="module")
def truth():
    return enumerate_histories(MISSION, cross_wall)


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Fail whatever would need a display, and whatever changes the user's own settings."""
    monkeypatch.delenv("DISPLAY", raising=False)
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


def draw(ax):
    """Draw for real; warnings of the drawing are errors."""
    canvas = FigureCanvasAgg(ax.get_figure(root=True))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


# Maps.


def test_the_field_is_what_the_model_expects(journeys, truth):
    for state, (rewards, _, _) in list(truth.histories.items())[::20]:
        journey = journeys.journey(find_journey(journeys, state.path, rewards))
        for moves in range(4):
            cell = journey.path[moves + 1]
            if not journey.sampled[moves]:
                continue
            cells, values = journey.samples(moves)
            (mean,) = predict_field(MISSION, cells, values, np.array([cell], float))
            past = state._replace(
                path=state.path[: moves + 1], nodes=state.nodes[: sum(journey.sampled[:moves])]
            )
            safe = [o for o in MISSION.outcomes(past, cross_wall(past)) if not o.fails]
            chance = sum(o.probability for o in safe)
            expected = sum(o.probability * o.reward for o in safe) / chance
            assert mean == pytest.approx(expected, abs=1e-9)
        cells, values = journey.samples()
        known = predict_field(MISSION, cells, values, np.array(cells, float))
        assert known == pytest.approx(values, abs=1e-6)


def test_spacing_and_origin_do_not_change_the_picture():
    obstacles = [
        Obstacle([(3 + 0.5 * x, -1 + 0.5 * y) for x, y in obstacle.vertices])
        for obstacle in WALL.obstacles
    ]
    small = replace(WALL, obstacles=obstacles, spacing=0.5, origin=(3.0, -1.0))
    field = Field(slope=(0.1, 0.1), constant=1.0 - 0.1 * 3 + 0.1, length=1.0)
    mission = Exploration(map=small, horizon=4, field=field, vehicle=Vehicle(0.00125, 0.000025))
    large = Exploration(map=WALL, horizon=4)
    pictures = []
    for drawn in (mission, large):
        journeys = plotting.follow_policy(plan_by_rule(drawn, cross_wall), drawn)
        ax = plotting.plot_mission(journeys.journey(40))
        corners = [p.get_xy() for p in ax.patches if isinstance(p, Polygon)]
        ellipses = [(p.center, p.width) for p in ax.patches if isinstance(p, Ellipse)]
        pictures.append((corners, ellipses, [text.get_text() for text in ax.texts]))
    assert pictures[0][0][0] == pytest.approx(pictures[1][0][0])
    assert pictures[0][2] == pictures[1][2]
    for one, other in zip(pictures[0][1], pictures[1][1], strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1])


def test_the_window():
    assert choose_window(Map(5, 4, (0, 0)), [(1, 1)]) == Window(0, 4, 0, 3)
    large = Map(1000, 1000, (500, 500))
    assert choose_window(large, [(520, 500)]) == Window(498, 522, 491, 510)
    assert choose_window(large, []) == Window(496, 504, 496, 504)
    corner = choose_window(Map(1000, 1000, (0, 999)), [])
    assert corner == Window(0, 8, 991, 999)
    assert corner.shape == (9, 9)


def test_levels_span_all_fields():
    levels = choose_levels([np.array([1.02, 1.5]), np.array([0.4, 1.1])])
    assert levels[0] <= 0.4 < 1.5 <= levels[-1]
    assert np.all(np.diff(levels) > 0)
    flat = choose_levels([np.full(4, 2.0)])
    assert flat[0] < 2 < flat[-1]


# Figures.


def test_one_mission(journeys, truth):
    outcome = plotting.choose_outcomes(journeys)[0]
    journey = outcome.journey
    ax = plotting.plot_mission(outcome)
    figure = ax.get_figure()
    assert len([a for a in figure.axes if a.lines]) == 3
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["path"].get_xydata().tolist() == [list(cell) for cell in journey.path]
    assert lines["risk taken"].get_xydata().tolist() == [[3, 2]]
    assert lines["start"].get_xydata().tolist() == [[0, 2]]
    progress = {a.get_ylabel(): a.lines[0].get_ydata() for a in figure.axes if a.lines}
    assert progress["reward so far"].tolist() == journey.earned.tolist()
    assert progress["risk so far"].tolist() == journey.risked.tolist()
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert [e.center for e in ellipses] == list(journey.path)
    widths = [6 * math.sqrt(0.005 + 0.0001 * step) for step in range(5)]
    assert [e.width for e in ellipses] == pytest.approx(widths)
    assert [e.height for e in ellipses] == pytest.approx(widths)
    assert len([p for p in ax.patches if isinstance(p, Polygon)]) == 2
    _, values = journey.samples()
    assert [text.get_text() for text in ax.texts] == [f"{value:.2f}" for value in values]
    title = figure.get_suptitle().split("\n")
    assert title == [repr(MISSION), outcome.words, outcome.numbers]
    assert draw(ax).std() > 1


def test_labels_of_samples_lie_over_neither_each_other_nor_the_edge(journeys):
    for outcome in plotting.choose_outcomes(journeys)[::3]:
        ax = plotting.plot_mission(outcome)
        draw(ax)
        extents = [Text.get_window_extent(label) for label in ax.texts]
        boxes = [Box(e.x0, e.y0, e.x1, e.y1) for e in extents]
        pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
        assert all(a.overlap(b) == 0 for a, b in pairs)


def test_ellipses_turn_with_the_covariance():
    tilted = Vehicle(((0.02, 0.01), (0.01, 0.02)), 0.0)
    mission = Exploration(map=Map(5, 5, (2, 2)), horizon=1, vehicle=tilted)
    journeys = plotting.follow_policy(plan_by_rule(mission, lambda state: "N"), mission)
    ax = plotting.plot_mission(journeys.journey(0))
    ellipse = next(patch for patch in ax.patches if isinstance(patch, Ellipse))
    long, short = max(ellipse.width, ellipse.height), min(ellipse.width, ellipse.height)
    assert long == pytest.approx(6 * math.sqrt(0.03))
    assert short == pytest.approx(6 * math.sqrt(0.01))
    angle = ellipse.angle + (0 if ellipse.width > ellipse.height else 90)
    assert angle % 180 == pytest.approx(45)


def test_outcomes_side_by_side(journeys):
    outcomes = plotting.choose_outcomes(journeys)
    ax = plotting.plot_outcomes(journeys)
    figure = ax.get_figure()
    panels = [a for a in figure.axes if a.get_title(loc="left")]
    assert len(panels) == 6
    for letter, panel, outcome in zip("abcdef", panels, outcomes, strict=True):
        title = panel.get_title(loc="left").replace("\n", " ").replace("\u00a0", " ")
        assert title == f"({letter}) {outcome.words} {outcome.numbers}"
        path = next(line for line in panel.lines if line.get_label() == "path")
        assert path.get_xydata().tolist() == [list(cell) for cell in outcome.journey.path]
        assert panel.get_xlim() == panels[0].get_xlim()
    draw(ax)
    boxes = []
    for panel in panels:
        extent = panel.get_tightbbox(for_layout_only=False)
        boxes.append(Box(extent.x0, extent.y0, extent.x1, extent.y1))
    pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
    assert all(a.overlap(b) == 0 for a, b in pairs)
    heading = figure._suptitle.get_window_extent()
    assert all(box.high <= heading.y0 for box in boxes)


def test_axes_that_are_given_are_drawn_into(journeys):
    figure = Figure(figsize=(12, 9))
    grid = figure.subplots(2, 3)
    outcomes = plotting.choose_outcomes(journeys, 2)
    assert plotting.plot_outcomes(journeys, outcomes, grid[0, :2]) is grid[0, 0]
    assert plotting.plot_visits(journeys, grid[0, 2]) is grid[0, 2]
    assert plotting.plot_risk_reward(journeys, ax=grid[1, 0]) is grid[1, 0]
    assert plotting.plot_mission(outcomes[0], grid[1, 1], risk_ax=grid[1, 2]) is grid[1, 1]
    assert grid[1, 2].lines[0].get_ydata().tolist() == outcomes[0].journey.risked.tolist()
    assert [ax for ax in figure.axes if ax in grid.ravel().tolist()] == grid.ravel().tolist()
    draw(grid[0, 0])
    with pytest.raises(OptionError, match="2 outcomes need as many axes, not 3"):
        plotting.plot_outcomes(journeys, outcomes, grid[0])
    with pytest.raises(OptionError, match="from 1 to 26 outcomes can be drawn, not 0"):
        plotting.plot_outcomes(journeys, [])


def test_where_a_policy_goes(journeys, truth):
    window = choose_window(WALL, journeys.visits.cells)
    table = tabulate_visits(journeys, window)
    for y in range(6):
        for x in range(7):
            assert table[y, x] == pytest.approx(truth.visits.get((x, y), 0.0), rel=1e-12)
    ax = plotting.plot_visits(journeys)
    (image,) = ax.images
    assert image.get_array().tolist() == table.tolist()
    assert image.get_extent() == [-0.5, 6.5, -0.5, 5.5]
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts[1, 2] == "100"
    assert texts[3, 2] == f"{100 * truth.visits[3, 2]:.0f}"
    labels = [text.get_text() for text in ax.texts]
    assert f"{truth.collisions[3, 2]:.3g}" in labels
    draw(ax)


def test_risk_against_reward(journeys, truth):
    bound = vulcan.parse(BOUND)
    rewards, risks, share = merge_points(journeys)
    assert len(share) <= MOST_POINTS
    points = {}
    for rewarded, risked, probability in truth.histories.values():
        earned = sum(0.9**k * reward for k, reward in enumerate(rewarded))
        place = (round(earned, 6), round(1 - math.prod(1 - risk for risk in risked), 6))
        points[place] = points.get(place, 0) + probability
    merged = zip(rewards.round(6).tolist(), risks.round(6).tolist(), share, strict=True)
    assert {(x, y): p for x, y, p in merged} == pytest.approx(points)
    ax = plotting.plot_risk_reward(journeys, bound)
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["the policy"].get_xydata().tolist() == [[journeys.reward, journeys.risk]]
    curve = lines[f"Δ(x) = {BOUND}"].get_xydata()
    assert curve[:, 1] == pytest.approx([bound(x) for x in curve[:, 0]])
    (scatter,) = ax.collections
    assert scatter.get_offsets().tolist() == [list(p) for p in zip(rewards, risks, strict=True)]
    above = sum(
        probability for (reward, risk), probability in points.items() if risk > bound(reward)
    )
    title = ax.get_title(loc="left").split("\n")
    assert title[1] == f"{len(journeys)} safe outcomes; {100 * above:.2g} % take more than " + (
        "Δ(their reward)"
    )
    draw(ax)


def test_many_outcomes_are_counted_in_bins(journeys, monkeypatch):
    monkeypatch.setattr("vulcan.plotting.risk_reward.MOST_POINTS", 10)
    ax = plotting.plot_risk_reward(journeys)
    (mesh,) = ax.collections
    assert mesh.get_array().sum() == pytest.approx(1 - journeys.risk)
    draw(ax)


def test_a_bound_without_a_value_everywhere(journeys):
    middle = float(np.median(journeys.earned))
    root = vulcan.Concave(lambda x: math.sqrt(x - middle))
    draw(plotting.plot_risk_reward(journeys, root))


def test_names_of_models_are_not_mathematics(journeys):
    class Costly(Exploration):
        def __repr__(self):
            return "Costly($\\frac{1}$, \x1b[31m" + "x" * 200

    mission = Costly(map=WALL, horizon=2)
    found = plotting.follow_policy(plan_by_rule(mission, lambda state: "E"), mission)
    for ax in (plotting.plot_outcomes(found), plotting.plot_visits(found)):
        draw(ax)


def test_a_map_too_large_for_numbers_and_borders():
    mission = Exploration(map=Map(300, 200, (100, 100)), horizon=65, degree=1)
    found = plotting.follow_policy(plan_by_rule(mission, lambda state: "E"), mission)
    ax = plotting.plot_visits(found)
    assert [text.get_text() for text in ax.texts] == []
    assert len(ax.lines) == 1  # that of the start in the legend, and no borders
    draw(ax)


# Files.


@pytest.fixture(scope="module")
def short():
    """A mission of one move, which is drawn faster."""
    mission = Exploration(map="wide", horizon=1, degree=2)
    return plotting.follow_policy(plan_by_rule(mission, go_east), mission)


def test_figures_are_written_and_the_same_each_time(short, tmp_path):
    for name in ("a.svg", "b.svg"):
        plotting.save(plotting.plot_mission(short.journey(0)), tmp_path / name)
    assert (tmp_path / "a.svg").stat().st_size > 5000
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.svg").read_bytes()


def test_an_animation_has_a_frame_per_step(short, tmp_path):
    path = tmp_path / "mission.GIF"
    outcome = plotting.choose_outcomes(short)[0]
    plotting.animate_mission(outcome, path)
    assert path.stat().st_size < 300_000
    with Image.open(path) as animation:
        assert animation.format == "GIF"
        assert animation.n_frames == short.mission.horizon + 1
        frames = []
        for number in range(animation.n_frames):
            animation.seek(number)
            frames.append(np.asarray(animation.convert("RGB")).astype(int))
    for before, after in pairwise(frames):
        assert before.shape == after.shape
        # The map changes; what is left of it and the legend below do not.
        changed = np.abs(before - after).sum(axis=2) > 60
        assert changed.any()
        height, width = changed.shape
        assert not changed[int(0.93 * height) :].any()
        assert not changed[:, : int(0.05 * width)].any()


@pytest.mark.parametrize("name", ["mission", "mission.png", ".gif"])
def test_other_endings_of_animations_are_refused(journeys, tmp_path, name):
    with pytest.raises(OptionError, match=r"an animation is written to \.gif; not to '.*'"):
        plotting.animate_mission(journeys.journey(0), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_at_once_or_not_at_all(short, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    figure, animation = tmp_path / "a.png", tmp_path / "a.gif"
    for path in (figure, animation):
        path.write_text("before")
    ax = plotting.plot_mission(short.journey(0))
    monkeypatch.setattr("vulcan.files.os.replace", fail)
    with pytest.raises(OSError, match="No space"):
        plotting.save(ax, figure)
    with pytest.raises(OSError, match="No space"):
        plotting.animate_mission(short.journey(0), animation)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gif", "a.png"]
    assert figure.read_text() == animation.read_text() == "before"


def test_missions_are_drawn_without_the_library_that_opens_windows(tmp_path):
    code = """
import sys
import vulcan.plotting as plotting
assert "matplotlib" not in sys.modules
from tests.rule_policies import go_east, plan_by_rule
from vulcan.domains import Exploration
mission = Exploration(map="wide", horizon=1, degree=2)
journeys = plotting.follow_policy(plan_by_rule(mission, go_east), mission)
plotting.animate_mission(journeys.journey(0), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a.gif")]
    subprocess.run(command, check=True)
    assert (tmp_path / "a.gif").stat().st_size > 5000


def test_without_matplotlib_there_is_a_readable_error(journeys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for act in (
        lambda: plotting.plot_mission(journeys.journey(0)),
        lambda: plotting.plot_outcomes(journeys),
        lambda: plotting.plot_visits(journeys),
        lambda: plotting.plot_risk_reward(journeys),
        lambda: plotting.check_animation_file(tmp_path / "a.gif"),
    ):
        with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[plot\]'"):
            act()
