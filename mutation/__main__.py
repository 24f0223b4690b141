"""Try mutants: `python -m mutation --help`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from mutation.mutants import draw_mutants, list_mutants
from mutation.processes import load_libraries
from mutation.report import Score, is_explained, read_explanations, write_report
from mutation.subjects import ROOT, SUBJECTS
from mutation.traces import Trace, choose_tests, trace_tests
from mutation.trials import Verdicts, try_mutant

FOLDER = ROOT / "build" / "mutation"


def read_arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--subject", action="append", choices=names, help="only these")
    parser.add_argument("--module", default="", help="only modules with this in their path")
    parser.add_argument("--tests", default="", help="only files of tests with this in their path")
    parser.add_argument("--sample", type=int, default=30, help="mutants of each module; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for each mutant")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where verdicts are kept")
    return parser.parse_args()


def score_module(module: str, traces: list[Trace], options: argparse.Namespace) -> Score:
    """Try mutants of a module, unless that was done already."""
    mutants, explanations = list_mutants(module), read_explanations()
    verdicts = Verdicts(options.folder / "verdicts.jsonl")
    score = Score(module, len(mutants))
    for mutant in draw_mutants(mutants, options.sample or None, options.seed):
        if is_explained(mutant, explanations):
            score.explained += 1
            continue
        verdict = verdicts.find(mutant)
        if verdict is None or (options.again and not verdict.caught):
            tests = choose_tests(traces, module, mutant.line, options.seconds)
            verdict = try_mutant(mutant, tests)
            verdicts.add(verdict)
            if not verdict.caught:
                print(f"  {mutant.key}: {verdict.how} ({verdict.tests})", flush=True)
        if verdict.caught:
            score.caught += 1
        else:
            score.survivors.append((mutant, verdict))
    return score


def main() -> None:
    """Try mutants of all subjects, and write the scores."""
    options = read_arguments()
    load_libraries()
    scores: dict[str, list[Score]] = {}
    for subject in SUBJECTS:
        modules = [module for module in subject.list_modules() if options.module in module]
        if not modules or (options.subject and subject.name not in options.subject):
            continue
        print(f"{subject.name}: which tests reach which lines", flush=True)
        traces = trace_tests(subject, options.folder, options.tests)
        scores[subject.name] = []
        for module in modules:
            begin = time.monotonic()
            scores[subject.name].append(score_module(module, traces, options))
            print(f"{scores[subject.name][-1]} {time.monotonic() - begin:.0f} s", flush=True)
    report = write_report(scores)
    (options.folder / "report.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
