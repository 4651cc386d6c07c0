"""Hand-written pronunciations: words missing or wrong in the lexicon, and letter names."""

from __future__ import annotations

_Phones = tuple[str, ...]


def _table(text: str) -> dict[str, _Phones]:
    entries = (line.split() for line in text.strip().split("\n"))
    return {word: tuple(phones) for word, *phones in entries}


LETTERS = _table(
    """
    A EY
    B B IY
    C S IY
    D D IY
    E IY
    F EH F
    G JH IY
    H EY CH
    I AY
    J JH EY
    K K EY
    L EH L
    M EH M
    N EH N
    O OW
    P P IY
    Q K Y UW
    R AA R
    S EH S
    T T IY
    U Y UW
    V V IY
    W D AH B AH L Y UW
    X EH K S
    Y W AY
    Z Z IY
    """
)

FIXES = _table(
    """
    was W AH Z
    wasn't W AH Z AH N T
    thursday TH ER Z D IY
    sunday S AH N D IY
    miz M IH Z
    mx M IH K S
    messers M EH S ER Z
    ios AY OW EH S
    emacs IY M AE K S
    hectoliter HH EH K T AH L IY T ER
    hectoliters HH EH K T AH L IY T ER Z
    kiloohm K IH L OW OW M
    kiloohms K IH L OW OW M Z
    megaohm M EH G AH OW M
    megaohms M EH G AH OW M Z
    macos M AE K OW EH S
    gui G UW IY
    wi W AY
    cantata K AH N T AA T AH
    aaa T R IH P AH L EY
    kibibyte K IH B IY B AY T
    mebibyte M EH B IY B AY T
    gibibyte G IH B IY B AY T
    kilohertz K IH L AH HH ER T S
    gigahertz G IH G AH HH ER T S
    paisa P AY S AH
    paise P AY S AH
    mille M IH L
    covid K OW V IH D
    emoji IH M OW JH IY
    codec K OW D EH K
    jpeg JH EY P EH G
    json JH EY S AH N
    yaml Y AE M AH L
    gif G IH F
    kubernetes K UW B ER N EH T IY Z
    pytorch P AY T AO R CH
    nguyen W IH N
    yolo Y OW L OW
    fomo F OW M OW
    houses HH AW Z IH Z
    gps JH IY P IY EH S
    fyi EH F W AY AY
    usr Y UW Z ER
    cuda K UW D AH
    kernel K ER N AH L
    saas S AE S
    oled OW L EH D
    postgres P OW S T G R EH S
    utf Y UW T IY EH F
    iso AY S OW
    linux L IH N AH K S
    nginx EH N JH AH N EH K S
    linkedin L IH NG K T IH N
    tiktok T IH K T AA K
    github G IH T HH AH B
    megapascal M EH G AH P AE S K AE L
    gigapascal G IH G AH P AE S K AE L
    hectopascal HH EH K T OW P AE S K AE L
    millibar M IH L AH B AA R
    yuan Y UW AA N
    zloty Z L AO T IY
    naira N AY R AH
    lira L IH R AH
    doc D AA K
    xi S AY
    chi K AY
    """
)
