#!/usr/bin/env python3
"""Check a Vulcan policy without Vulcan: one file, Python's standard library, nothing else.

    python vulcan_check.py plan.vulcan --bound "0.002*x" --constraint "fuel <= 5"

From what the file records of the model, reward R, probability of failure F, costs and events are
recomputed in fractions, over (decision, hidden state) if it has these. The exit code is the answer:

    0  safe         complete or bounded, and F <= Δ(R) + TOLERANCE, with all limits given as options
    1  not safe     incomplete without bounds beyond its frontier, or F > Δ(R) + TOLERANCE
    2  bad file     it can't be read, is damaged, or is no policy
    3  can't say    no bound that can be evaluated, and is concave and nondecreasing, or too close
    4  within its own bound    like 0, but the author of the file chose the bound, or a constraint
"""

import argparse
import ast
import decimal
import hashlib
import io
import math
import operator
import re
import struct
from fractions import Fraction
from itertools import pairwise
from typing import Any

TOLERANCE = Fraction(1e-12)  # the float 64, exactly; of sums of probabilities as well
END, FAILED, UNPLANNED = -1, -2, -3
ARRAYS = ("action", "first_outcome", "label", "probability", "reward", "child")
KINDS = "iqiddidd"  # of their numbers and of those beyond the frontier, as `struct` calls them
MIXTURE, CLAIM, NOTHING = ("weights", "members"), ("claim", "risk", "reward"), "nothing planned"
ADDED = {1: (), 2: (), 3: ("beyond",), 4: ("charges",), 5: ("charges", "unfolded")}  # versions
ABOUT: dict[str, Any] = {"model": (str,), "fingerprint": (str,), "solver": (str,)}
ABOUT |= {"horizon": (int,), "discount": (int, float), "risk_bound": (str, type(None))}
ABOUT |= {"initial_action": (bool, type(None)), "constraints": (list,)}
LIMIT = re.compile(r"(?!risk <)(risk\()?[^\W\d]\w*([ .:-]\w+)*(?(1)\)) <= .+", re.DOTALL)
LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
ANSWERS = ("safe", "not safe", "bad file", "can't say", "within its own bound")
CLAIMS = {"any continuation": ", whatever follows", "default action": ", and by what it claims"}
SAFE, NOT_SAFE, BAD_FILE, CANNOT_SAY, OWN_BOUND = range(5)
Interval = tuple[Fraction, Fraction]
DOWN, UP = (decimal.Context(60, f"ROUND_{k}", Emin=-999, Emax=999) for k in ("FLOOR", "CEILING"))
DEFINED = {"expm1": "exp(u)-1", "log1p": "log(1+u)", "sqrt": "u**0.5", "tanh": "2/(1+exp(-2*u))-1"}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
FUNCTIONS = {"exp": ("exp(u)", "exp(u)"), "expm1": ("exp(u)", "exp(u)"), "log": ("1/u", "-1/(u*u)")}
FUNCTIONS |= {"sqrt": ("0.5*u**(-0.5)", "-0.25*u**(-1.5)"), "log1p": ("1/(1+u)", "-1/(1+u)**2")}
FUNCTIONS |= {"tanh": ("1-tanh(u)**2", "-2*tanh(u)*(1-tanh(u)**2)")}  # both derivatives
FUNCTIONS |= {"atan": ("1/(1+u*u)", "-2*u/((1+u*u)*(1+u*u))")}
RULES = {"+": ("du+dv", "ddu+ddv"), "-": ("du-dv", "ddu-ddv")}
RULES |= {"*": ("du*v+u*dv", "ddu*v+2*du*dv+u*ddv")}  # derivatives in x of u and v, and of u * v
RULES |= {"/": ("(du*v-u*dv)/(v*v)", "(ddu-2*dv*(du*v-u*dv)/(v*v)-u*ddv/v)/v")}
RULES |= {"**": ("v*u**(v-1)*du", "v*(v-1)*u**(v-2)*du*du+v*u**(v-1)*ddu")}  # v being constant
RULES |= {k: (f"({f})*du", f"({g})*du*du+({f})*ddu") for k, (f, g) in FUNCTIONS.items()}
NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
TOKEN = re.compile(rf"{NUMBER}|[A-Za-z][A-Za-z0-9]*|\*\*|[-+*/(),]")
POINT = rf"\( *([+-]?{NUMBER}) *, *([+-]?{NUMBER}) *\)"
NAMES = {"x", "pi", "e", "min", "max", *FUNCTIONS, "u", "du", "ddu", "v", "dv", "ddv", "share"}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
NO_BOUND = "the risk bound is not in the format of bounds"
SHAPE = "the risk bound is not proved to be concave and nondecreasing at the reward"


class NoAnswerError(Exception):
    """Why nothing can be said: a text and an exit code."""


def require(condition: bool, text: str, code: int = BAD_FILE) -> None:
    """Give up unless a condition holds."""
    if not condition:
        raise NoAnswerError(text, code)


def decode(stream: io.BytesIO, depth: int = 0) -> Any:
    """Return the next value of MessagePack, with all that is in it."""

    def take(count: int) -> bytes:
        require(len(data := stream.read(count)) == count, "the content ends too soon")
        return data

    require(depth < 8, "the content is nested too deeply")
    code = take(1)[0]  # it says which kind, of which length
    if code < 0x80 or code >= 0xE0:
        return code if code < 0x80 else code - 0x100
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code]
    if code == 0xCB:
        return struct.unpack(">d", take(8))[0]
    if 0xCC <= code <= 0xD3:
        return int.from_bytes(take(1 << (code & 3)), "big", signed=code >= 0xD0)
    is_text = 0xA0 <= code < 0xC0 or 0xD9 <= code <= 0xDB
    count = code & (31 if is_text else 15)
    if code >= 0xC0:
        require(code in LENGTHS, f"the content has a value of the unknown kind {code:#x}")
        count = int.from_bytes(take(LENGTHS[code]), "big")
    if is_text or code in (0xC4, 0xC5, 0xC6):
        return take(count).decode() if is_text else take(count)
    if 0x90 <= code < 0xA0 or code in (0xDC, 0xDD):
        return [decode(stream, depth + 1) for _ in range(count)]
    pairs = [(decode(stream, depth + 1), decode(stream, depth + 1)) for _ in range(count)]
    fits = all(isinstance(key, str) for key, _ in pairs) and len(dict(pairs)) == count
    require(fits, "a key of a map is no text, or there twice")
    return dict(pairs)


def fields(value: Any, names: tuple[str, ...], what: str) -> list[Any]:
    """Return the values of a map that has these keys and no others."""
    require(isinstance(value, dict) and set(value) == set(names), f"{what} has other fields")
    return [value[name] for name in names]


def read_member(content: Any, version: int = 1) -> tuple[dict[str, Any], list[Any]]:
    """Return the description and the arrays of a deterministic policy, in the right sizes."""
    names = ("about", "labels", "arrays", *ADDED[version])
    about, labels, arrays, *more = fields(content, names, "a policy")
    require(isinstance(about, dict), "it has no description")
    about = {"initial_action": None, "constraints": []} | about
    for name, kinds in ABOUT.items():
        require(name in about and type(about[name]) in kinds, f"its {name} is missing or wrong")
    require(1 <= about["horizon"] <= 10**6, "its horizon is not from 1 to a million")
    require(0 <= about["discount"] <= 1, "its discount is not from 0 to 1")
    require(all(LIMIT.fullmatch(str(k)) for k in about["constraints"]), "its constraints are wrong")
    require(type(labels) is list and all(type(k) is str for k in labels), "its labels are no texts")
    claim, *bounds = fields(more[0], CLAIM, "beyond") if version == 3 else ("", b"", b"")
    charges, about["unfolded"] = more[0] if version > 3 else {}, version == 5 and more[1]
    require(type(charges) is dict and "risk ahead" not in charges, "its charges are wrong")
    about["charges"], columns, kinds = sorted(charges), [], KINDS + "d" * len(charges)
    raws = [*fields(arrays, ARRAYS, "the arrays"), *bounds, *map(charges.get, about["charges"])]
    for raw, kind in zip(raws, kinds, strict=True):
        count, rest = divmod(len(raw), struct.calcsize(kind)) if type(raw) is bytes else (0, 1)
        require(rest == 0, "an array is cut off")
        columns.append(struct.unpack(f"<{count}{kind}", raw))
    action, first, label, _, _, child, risk, least, *charged = columns
    require(len(set(map(len, (*columns[2:6], *charged)))) == 1, "its arrays differ in length")
    shared = len(first) == len(action) + 1 and first[0] == 0 and first[-1] == len(label)
    require(shared and all(map(operator.lt, first, first[1:])), "first_outcome is no partition")
    require(all(0 <= k < len(labels) for k in (*action, *label)), "a label is missing")
    for name, column in zip(about["charges"], charged, strict=True):
        fits = all(c in (0, 1) if "(" in name else abs(c) <= 1e100 for c in column)
        require(fits and LIMIT.match(f"{name} <= 0") is not None, f"charges for {name} are wrong")
    rows = [row for row, after in enumerate(child) if after == UNPLANNED]
    fits = claim in list(CLAIMS) and len(risk) == len(least) == len(rows) > 0
    fits = fits and all(0 <= u <= 1 for u in risk) and all(abs(low) <= 1e100 for low in least)
    require(fits or version != 3, "the bounds beyond its frontier are wrong")
    later = {k: (Fraction(least[j]), Fraction(risk[j]), 0) for j, k in enumerate(rows) if claim}
    return about, [*columns[:6], claim or NOTHING * bool(rows), later, charged]


def evaluate_member(about: dict[str, Any], columns: list[Any]) -> Any:
    """Return reward, risk, frontier, charges, largest risk ahead, and most decisions in a row."""
    action, first, label, probability, reward, child, _, later, charges = columns
    initial, discount = about["initial_action"], Fraction(about["discount"])
    fails, leaves = ([c == end for c in child] for end in (FAILED, UNPLANNED))
    once = [False] * 3 + ["(" in name for name in about["charges"]]  # events
    paid = list(zip(once, (reward, fails, leaves, *charges), strict=True))
    values: dict[int, Any] = dict.fromkeys((END, FAILED, UNPLANNED), [0] * (len(paid) + 2))
    for node in reversed(range(len(action))):  # children before their parents
        span, factor = slice(first[node], first[node + 1]), discount
        require(len(set(label[span])) == len(label[span]), f"node {node}: labels are not unique")
        require(all(0 < p <= 1 for p in probability[span]), f"node {node}: not a probability")
        total = math.fsum(probability[span])
        require(abs(total - 1) <= TOLERANCE, f"node {node}: probabilities sum to {total!r}")
        require(all(abs(r) <= 1e100 for r in reward[span]), f"node {node}: not a reward")
        require(all(c in values for c in child[span]), f"node {node}: no later node, and no end")
        worst, depth = (max(values[c][k] for c in child[span]) for k in (-2, -1))
        if node == 0:
            longer = depth + 1 - about["horizon"]
            require(longer <= (initial is not False), "it acts beyond its horizon")
            known = initial is not None or longer > 0 or discount == 1
            require(known, "it is too old to say if the first decision is discounted", CANNOT_SAY)
            factor = Fraction(1) if initial or longer > 0 else discount
        sums = [Fraction(0)] * len(paid)
        for row in range(first[node], first[node + 1]):
            chance, after = Fraction(probability[row]), later.get(row, values[child[row]])
            for k, (ends, column) in enumerate(paid):
                onward = 0 if ends and column[row] else after[k] if k else factor * after[0]
                sums[k] += chance * (Fraction(column[row]) + onward)
        values[node] = [*sums, max(worst, sums[1]), depth + 1]
    return values.get(0, values[END])


def evaluate_policy(path: str) -> tuple[dict[str, Any], list[Fraction], str]:
    """Return the origin, with "totals" that may be limited; reward, risk, frontier; and a claim."""
    with open(path, "rb") as file:
        data = file.read()
    require(len(data) > 51 and data[:8] == b"VULCAN\x1a\n", "this is no Vulcan policy")
    version, length = struct.unpack("<IQ", data[8:20])
    require(version in ADDED, f"the file has format {version}; this program reads 1 to 5")
    require(len(data) == 52 + length, f"the file has {len(data)} bytes instead of {52 + length}")
    require(hashlib.sha256(data[:-32]).digest() == data[-32:], "the file is damaged (checksum)")
    content = decode(stream := io.BytesIO(data[20:-32]))
    require(not stream.read(1), "something follows the content")
    mixed = version == 2 or (version > 3 and type(content) is dict and "members" in content)
    weights, members = fields(content, MIXTURE, "a mixture") if mixed else ([1], [content])
    fits = type(weights) is type(members) is list and len(weights) == len(members) > 0
    fits = fits and all(type(weight) in (int, float) and weight > 0 for weight in weights)
    require(fits and abs(math.fsum(weights) - 1) <= TOLERANCE, "its weights or members are wrong")
    (about, _), *_ = read = [read_member(member, version) for member in members]
    for name in ("fingerprint", "horizon", "discount", "charges"):
        require(all(other[name] == about[name] for other, _ in read), f"members differ in {name}")
    exact = [Fraction(weight) for weight in weights]
    exact[exact.index(max(exact))] += 1 - sum(exact)
    values = [evaluate_member(*member) for member in read]
    for k, (own, _) in enumerate(read):
        if own["unfolded"]:  # the first decision is then to draw the hidden state
            other, pairs = read_member(own["unfolded"], version)
            told, values[k] = values[k][:-2], evaluate_member(own | {"initial_action": True}, pairs)
            far = map(lambda a, b: abs(a - b) > 1e-6 * max(1, abs(b)), told, values[k])
            fits = other["charges"] == own["charges"] and not any(far)
            require(fits, "its hidden states tell another risk or reward than its observations")
    *columns, worst, _ = zip(*values, strict=True)
    sums = [sum(map(operator.mul, exact, column), Fraction(0)) for column in columns]
    claim = max(columns[6] for _, columns in read)
    about["totals"] = dict(zip(["risk", *about["charges"]], [sums[1], *sums[3:]], strict=True))
    about["totals"] |= {} if claim or version == 5 else {"risk ahead": max(worst)}
    return about, sums[:3], claim


def parse(text: str) -> Any:
    """Return the expression that a text is by the grammar of the format, and refuse other texts."""
    tokens, compact = TOKEN.findall(text), text.replace(" ", "")
    known = all(token in NAMES or not token[0].isalpha() for token in tokens)
    known = known and "".join(tokens) == compact and ",)" not in compact
    require(known, f"{NO_BOUND}: numbers, x, pi, e, + - * / ** and functions", CANNOT_SAY)
    return build(ast.parse(" ".join(tokens), mode="eval").body)


def build(node: ast.expr, depth: int = 0) -> Any:
    """Return an expression as tuples: `2 * exp(x)` is ("*", Fraction(2), ("exp", "x"))."""
    require(depth <= 100, "the risk bound has too many operations inside each other", CANNOT_SAY)
    match node:
        case ast.Constant(value=int() | float() as number) if abs(float(number)) < math.inf:
            return Fraction(float(number))
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            built = build(operand, depth + 1)
            return ("-", Fraction(0), built) if isinstance(sign, ast.USub) else built
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in SIGNS:
            return SIGNS[type(sign)], build(left, depth + 1), build(right, depth + 1)
        case ast.Call(func=ast.Name(id=name), args=[_, *more] as given, keywords=[]):
            if name in ("min", "max") or (name in FUNCTIONS and not more):
                return name, *(build(argument, depth + 1) for argument in given)
    raise NoAnswerError(NO_BOUND, CANNOT_SAY)


def operate(name: str, u: Interval, v: Interval = (Fraction(0),) * 2) -> Interval:
    """Return what an operation makes of intervals, or a function of one; functions rise."""
    if name in DEFINED:
        return enclose(parse(DEFINED[name]), {"u": u})
    if name == "atan":  # atan u = 2 atan(u / (1 + sqrt(1 + u^2))), and its series where u is small
        for _ in range(20):
            u = enclose(parse("u / (1 + (1 + u * u) ** 0.5)"), {"u": u})
        known = {"u": u, "share": (Fraction(0), Fraction(1))}
        return enclose(parse("2 ** 20 * (u - u ** 3 / 3 + share * u ** 5 / 5)"), known)
    if name in OPERATIONS:
        divides = name == "/" and v[0] <= 0 <= v[1]
        require(not divides, "the risk bound divides by 0, or nearly so", CANNOT_SAY)
        ends = [OPERATIONS[name](a, b) for a in u for b in v]
        return min(ends), max(ends)
    if name == "**" and v[0] == v[1] == 0:
        return (Fraction(1),) * 2
    if name == "**" and (v[0] != v[1] or v[0].denominator != 1 or not 0 < v[0] <= 100):
        nothing = u[0] == u[1] == 0 < v[0]  # 0 to a positive power
        return u if nothing else enclose(parse("exp(v * log(u))"), {"u": u, "v": v})
    bottom, top = [(decimal.Decimal(k.numerator), decimal.Decimal(k.denominator)) for k in u]
    low, high = DOWN.divide(*bottom), UP.divide(*top)
    if name == "**":
        ends = [Fraction(end) ** int(v[0]) for end in (low, high, min(max(low, 0 * low), high))]
        return min(ends), max(ends)
    require(name == "exp" or low > 0, "the risk bound has no value there", CANNOT_SAY)
    low, high = (DOWN.exp(low), UP.exp(high)) if name == "exp" else (DOWN.ln(low), UP.ln(high))
    return Fraction(low.next_minus(DOWN)), Fraction(high.next_plus(UP))  # true values are between


def enclose(node: Any, names: dict[str, Interval]) -> Interval:
    """Return an interval that contains the value of an expression."""
    if isinstance(node, Fraction):
        return node, node
    if isinstance(node, str):
        require(node in names, f"{NO_BOUND}: {node!a} is no number", CANNOT_SAY)
        return names[node]
    parts = [enclose(part, names) for part in node[1:]]
    if node[0] in ("min", "max"):
        choose = min if node[0] == "min" else max
        return choose(low for low, _ in parts), choose(high for _, high in parts)
    return operate(node[0], *parts)


def has_x(node: Any) -> bool:
    """Whether an expression depends on the reward."""
    return node == "x" or (isinstance(node, tuple) and any(map(has_x, node[1:])))


def is_concave(node: Any, names: dict[str, Interval]) -> bool:
    """Whether an expression's form, or slope >= 0 >= bend, proves it concave and nondecreasing."""
    match node:
        case _ if node == "x" or not has_x(node):
            return True
        case ("min" | "+" | "log" | "log1p" | "sqrt", *parts):
            if all(is_concave(part, names) for part in parts):
                return True
        case ("-", part, c) if not has_x(c):
            return is_concave(part, names)
        case ("*", c, part) if not has_x(c) and enclose(c, names)[0] >= 0:
            return is_concave(part, names)
        case ("*" | "/", part, c) if not has_x(c) and enclose(c, names)[0] >= 0:
            return is_concave(part, names)
    _, slope, bend = differentiate(node, names)
    return slope[0] >= 0 >= bend[1]


def differentiate(node: Any, names: dict[str, Interval]) -> tuple[Interval, ...]:
    """Return value, slope and bend of an expression at the reward."""
    if node == "x" or not has_x(node):
        return enclose(node, names), (Fraction(node == "x"),) * 2, (Fraction(0),) * 2
    operation, *operands = node
    if operation == "**" and has_x(operands[1]):
        return differentiate(("exp", ("*", operands[1], ("log", operands[0]))), names)
    require(operation in RULES, SHAPE, CANNOT_SAY)  # it has corners
    parts = [differentiate(operand, names) for operand in operands]
    known = dict(zip(("u", "du", "ddu", "v", "dv", "ddv"), [*parts[0], *parts[-1]], strict=True))
    return enclose(node, names), *(enclose(parse(text), known) for text in RULES[operation])


def enclose_bound(text: str, x: Fraction) -> Interval:
    """Return an interval that contains Δ(x), where Δ must be concave and nondecreasing."""
    require(len(text) <= 100_000, NO_BOUND, CANNOT_SAY)
    if not text.startswith("piecewise"):
        names = {"x": (x, x), "pi": (Fraction(math.pi),) * 2, "e": (Fraction(math.e),) * 2}
        require(is_concave(parse(text), names), SHAPE, CANNOT_SAY)
        return enclose(parse(text), names)
    listed = re.fullmatch(rf"piecewise\( *{POINT}(?: *, *{POINT})+ *\) *", text)
    require(listed is not None, f"{NO_BOUND}: piecewise((x0, y0), (x1, y1), ...)", CANNOT_SAY)
    points = [(Fraction(float(a)), Fraction(float(b))) for a, b in re.findall(POINT, text)]
    rises = all(x0 < x1 and y0 <= y1 for (x0, y0), (x1, y1) in pairwise(points))
    require(rises, "the points of the risk bound must go to the right, and not down", CANNOT_SAY)
    for (x0, y0), (x1, y1), (x2, y2) in zip(points, points[1:], points[2:], strict=False):
        below = y0 + (y2 - y0) / (x2 - x0) * (x1 - x0) - y1  # the line through those beside it
        require(below <= TOLERANCE * max(Fraction(1), abs(y1)), SHAPE, CANNOT_SAY)
    lines = [y0 + (y1 - y0) / (x1 - x0) * (x - x0) for (x0, y0), (x1, y1) in pairwise(points)]
    return (min(*lines, points[-1][1]),) * 2  # it is concave


def judge(path: str, bound: str | None, found: dict[str, Any], given: Any = ()) -> tuple[str, int]:
    """Return a reason and an exit code, and enter what was found on the way."""
    about, (reward, risk, frontier), claim = evaluate_policy(path)
    text = about["risk_bound"] if bound is None else bound
    found |= {"model": ascii(about["model"]), "discount": repr(about["discount"])}
    found |= {"bound": ascii(text), "reward": reward, "risk": risk, "frontier": frontier}
    require(claim != NOTHING, "nothing is planned after some outcomes", NOT_SAFE)
    require(text is not None, "there is no bound; try --bound", CANNOT_SAY)
    limits = [(f"risk <= {text}", "--bound" if bound else "the bound in the file itself")]
    source = "--constraint" if given else "the constraint in the file itself"
    limits += [(limit, source) for limit in given or about["constraints"]]
    answers: list[Any] = []
    for limit, source in limits:
        name, text = (part.strip(" ") for part in limit.partition("<=")[::2])
        try:
            value = about["totals"].get(name)
            require(value is not None, f"the file has no charges for {name!a}", CANNOT_SAY)
            found[ascii(limit) if answers else "risk"] = value
            low, high = enclose_bound(text, reward)
            found |= {} if answers else {"allowed": low, "slack": low - value}
            close = low < value - TOLERANCE <= high
            require(not close, f"the allowed {name} is too close", CANNOT_SAY)
            fits = "acceptable" if value <= low + TOLERANCE else "not acceptable"
            code = NOT_SAFE if "not" in fits else SAFE if source[0] == "-" else OWN_BOUND
            reason = f"the {name} is {fits} for the reward by {source}{CLAIMS.get(claim, '')}"
            answers.append((reason, code))
        except NoAnswerError as error:
            answers.append((f"{name}: " * bool(answers) + error.args[0], error.args[1]))
    worst = min((code for _, code in answers), key=(NOT_SAFE, CANNOT_SAY, OWN_BOUND, SAFE).index)
    return "; ".join(reason for reason, code in answers if code == worst), worst


def main(arguments: list[str] | None = None) -> int:
    """Check a file, print the answer and what was found, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check a Vulcan policy without Vulcan.")
    parser.add_argument("file", help="the policy, such as plan.vulcan")
    parser.add_argument("--bound", help="the risk bound; without it no policy is called safe")
    parser.add_argument("--constraint", action="append", help='such as "fuel <= 5"; repeatable')
    options, found = parser.parse_args(arguments), dict[str, Any]()
    try:
        reason, code = judge(options.file, options.bound, found, options.constraint)
    except NoAnswerError as error:
        reason, code = error.args
    except (OSError, UnicodeDecodeError) as error:
        reason, code = str(error), BAD_FILE
    except Exception as error:  # the bound has no value of any use
        reason, code = f"the risk bound can't be evaluated: {error!r}", CANNOT_SAY
    print(f"{ANSWERS[code]}: {reason}".encode("ascii", "backslashreplace").decode())
    for name, value in found.items():
        print(f"  {name:<8}  {value if isinstance(value, str) else f'{float(value):.15g}'}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
