"""Small trees."""

from reproduction.figures.trees import plot_cleanup


def test_what_follows_an_outcome_that_was_never_sampled_is_not_drawn():
    def count(visits):
        nodes = [["", 3, False], ["l1", 3, False], ["l2", visits, False]]
        nodes += [[name, 1, False] for name in ("l1l1", "l1l2", "l2l1", "l2l2")]
        picture = {"nodes": nodes, "actions": [["", "left", True], ["l1", "left", True]]}
        return len(plot_cleanup([picture] * 4).lines)

    assert count(0) < count(1)
