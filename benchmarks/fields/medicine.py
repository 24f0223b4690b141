"""Fields of medicine."""

from __future__ import annotations

from math import comb

from benchmarks.fields.field import Field, combine
from vulcan import Outcome


class Dosing:
    """Twenty-five doses of an antibiotic, absorbed unevenly; too much of it harms the kidneys."""

    horizon = 20

    def initial_state(self):
        return 0, 0  # concentration, harm

    def actions(self, state):
        return range(25)

    def outcomes(self, state, dose):
        concentration, harm = state
        outcomes = []
        for absorbed, chance in (
            (4, 0.05),
            (6, 0.1),
            (8, 0.2),
            (9, 0.3),
            (10, 0.2),
            (11, 0.1),
            (12, 0.05),
        ):
            level = (concentration * (6 + harm) // 10) + dose * absorbed // 8
            toxic = min(1.0, 0.0004 * max(0, level - 22) ** 2)
            dies = 0.05 * toxic * (1 + harm) + (1.0 - 0.05 * (1 + harm)) * float(level > 40)
            dies = min(1.0, dies)
            reward = min(level, 20) / 20 - 0.3 * harm
            outcomes.append(Outcome.failure(chance * dies, label=f"dies, absorbs {absorbed}"))
            for worse in range(3):
                share = (1 - 0.5 * toxic, 0.4 * toxic, 0.1 * toxic)[worse]
                after = (min(level, 40), min(2, harm + worse))
                outcomes.append(Outcome(chance * (1 - dies) * share, reward, after))
        return outcomes


class Screening:
    """When to test for cancer between 40 and 80, by the person's risk and the last test."""

    horizon = 40

    def initial_state(self):
        return 40, 2, 0  # age, risk class, years since the last test

    def actions(self, state):
        return ["no test", "quick test", "thorough test"]

    def outcomes(self, state, test):
        age, risk, since = state
        grown = 0.0003 * (1 + risk) * (1 + since) * 1.06 ** (age - 40)
        found = {"no test": 0.0, "quick test": 0.7, "thorough test": 0.95}[test]
        harm = {"no test": 0.0, "quick test": 0.02, "thorough test": 0.15}[test]
        dies = min(0.5, 0.3 * grown * (1 - found))
        treated = grown * found * 0.9
        waited = min(7, since + 1) if test == "no test" else 0
        stays = 1 - dies - treated
        changes = {max(0, risk - 1): 0.05, risk: 0.85, min(7, risk + 1): 0.1}
        worth = 1 - harm
        outcomes = [
            Outcome(stays * chance, worth, (age + 1, after, waited), f"risk {after}")
            for after, chance in changes.items()
        ]
        rest = stays * (1 - sum(changes.values()))  # at the ends of the scale
        outcomes.append(Outcome(max(0.0, rest), worth, (age + 1, risk, waited), "no change"))
        outcomes.append(Outcome(treated, worth - 0.5, (age + 1, 7, 0), "treated"))
        return [*outcomes, Outcome.failure(dies)]


class Vaccination:
    """A village with an infection: every dose costs, and the hospital has five beds."""

    horizon = 10
    beds = 5

    def initial_state(self):
        return 14, 1  # susceptible, infected

    def actions(self, state):
        return range(min(4, state[0]) + 1)

    def outcomes(self, state, doses):
        susceptible, infected = state[0] - doses, state[1]
        catch = 1 - (1 - 0.05) ** infected
        outcomes, falls = [], 0.0
        for new in range(susceptible + 1):
            chance = comb(susceptible, new) * catch**new * (1 - catch) ** (susceptible - new)
            cost = -0.2 * doses - 0.1 * new
            for recovered in range(infected + 1):
                share = comb(infected, recovered) * 0.5**infected
                ill = infected - recovered + new
                if ill > self.beds:
                    falls += chance * share
                else:
                    outcomes.append(Outcome(chance * share, cost, (susceptible - new, ill)))
        return [*outcomes, Outcome.failure(falls, -5)]


class DrugTrial:
    """Three drugs of unknown benefit and known danger, for five patients, one after the other."""

    horizon = 5
    dangers = (0.001, 0.01, 0.03)

    def initial_state(self):
        return ((0, 0),) * 3  # patients cured and not cured, by each

    def actions(self, tried):
        return ["first", "second", "third"]

    def outcomes(self, tried, drug):
        number = self.actions(tried).index(drug)
        cured, others = tried[number]
        danger, prior = self.dangers[number], 1 + number  # the dangerous ones are promising
        chance = (cured + prior) / (cured + others + prior + 1)
        better = (*tried[:number], (cured + 1, others), *tried[number + 1 :])
        same = (*tried[:number], (cured, others + 1), *tried[number + 1 :])
        return [
            Outcome((1 - danger) * chance, 1, better, "cured"),
            Outcome((1 - danger) * (1 - chance), 0, same, "not cured"),
            Outcome.failure(danger),
        ]


class BloodBank:
    """Blood keeps for two days: too little of it kills, too much of it is thrown away."""

    horizon = 30
    most = 9

    def initial_state(self):
        return 4, 0  # fresh, a day old

    def actions(self, stock):
        return range(self.most + 1)

    def outcomes(self, stock, ordered):
        fresh, old = stock
        chances, falls, reward = {}, 0.0, -0.1 * ordered
        for demand in range(9):
            chance = comb(8, demand) * 0.4**demand * 0.6 ** (8 - demand)
            unmet = max(0, demand - fresh - old)
            falls += chance * (1 - 0.98**unmet)
            after = (ordered, max(0, fresh - max(0, demand - old)))
            reward += chance * (0.5 * (demand - unmet) - 0.2 * max(0, old - demand))
            chances[after] = chances.get(after, 0.0) + chance * 0.98**unmet
        return combine(chances, falls, reward)


FIELDS = [
    Field("dosing", Dosing(), "0.0005", "25 actions with up to 28 outcomes"),
    Field("screening", Screening(), "0.015", "the step in the state; outcomes with labels"),
    Field("vaccination", Vaccination(), "0.01 + 0.005*x", "costs; many outcomes of the same state"),
    Field("drug trial", DrugTrial(), "0.01*x", "five steps, counts as states"),
    Field("blood bank", BloodBank(), "0.015", "ten actions, failures that inaction causes"),
]
