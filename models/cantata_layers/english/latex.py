"""Names of LaTeX's commands, as language models write them, and how each is read."""

from __future__ import annotations

from cantata_layers.english.tokens import table, word_list

GREEK_NAMES = word_list(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega"
)

COMMANDS: dict[str, str] = {
    **{name: name for name in GREEK_NAMES},
    **{name.capitalize(): f"capital {name}" for name in GREEK_NAMES},
    "varepsilon": "epsilon",
    "varphi": "phi",
    **table(
        """
        times: times
        cdot: times
        div: divided by
        pm: plus or minus
        mp: minus or plus
        le: is at most
        leq: is at most
        ge: is at least
        geq: is at least
        ne: does not equal
        neq: does not equal
        lt: is less than
        gt: is greater than
        approx: approximately equals
        sim: is similar to
        equiv: is equivalent to
        propto: is proportional to
        infty: infinity
        sum: sum
        prod: product
        int: integral
        lim: limit
        sqrt: square root of
        partial: partial
        nabla: nabla
        to: to
        rightarrow: to
        Rightarrow: implies
        implies: implies
        iff: if and only if
        leftarrow: from
        in: in
        notin: not in
        subset: is a subset of
        cup: union
        cap: intersection
        forall: for all
        exists: there exists
        land: and
        lor: or
        neg: not
        sin: sine
        cos: cosine
        tan: tangent
        log: log
        ln: natural log
        exp: exp
        max: max
        min: min
        det: determinant
        gcd: G C D
        mod: mod
        bmod: mod
        circ: degrees
        degree: degrees
        angle: angle
        percent: percent
        """
    ),
}
"""Commands and the words that they are read as; upper-case letters are read by name."""

SILENT = frozenset(
    word_list(
        "left right big Big bigg Bigg text textbf textit mathrm mathbf mathbb mathcal mathit "
        "operatorname displaystyle limits quad qquad begin end frac dfrac tfrac boxed hat bar vec "
        "overline underline ldots cdots dots label tag nonumber hline"
    )
)
"""Commands without words of their own."""

FUNCTIONS = table(
    """
    sin: sine
    cos: cosine
    tan: tangent
    log: log
    ln: natural log
    exp: exp
    sqrt: square root
    abs: absolute value
    """
)
"""Functions that are read in full before their argument."""
