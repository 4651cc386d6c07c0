"""Rules for postal addresses: states and provinces after a town, post-office boxes."""

from __future__ import annotations

import re

from cantata_layers.english.tokens import Expansion, rule, say, table, word_set

_STATES = table(
    """
    AL: alabama
    AK: alaska
    AZ: arizona
    AR: arkansas
    CA: california
    CO: colorado
    CT: connecticut
    DE: delaware
    FL: florida
    GA: georgia
    HI: hawaii
    ID: idaho
    IL: illinois
    IN: indiana
    IA: iowa
    KS: kansas
    KY: kentucky
    LA: louisiana
    ME: maine
    MD: maryland
    MA: massachusetts
    MI: michigan
    MN: minnesota
    MS: mississippi
    MO: missouri
    MT: montana
    NE: nebraska
    NV: nevada
    NH: new hampshire
    NJ: new jersey
    NM: new mexico
    NY: new york
    NC: north carolina
    ND: north dakota
    OH: ohio
    OK: oklahoma
    OR: oregon
    PA: pennsylvania
    PR: puerto rico
    RI: rhode island
    SC: south carolina
    SD: south dakota
    TN: tennessee
    TX: texas
    UT: utah
    VT: vermont
    VA: virginia
    WA: washington
    WV: west virginia
    WI: wisconsin
    WY: wyoming
    AB: alberta
    BC: british columbia
    MB: manitoba
    NB: new brunswick
    NS: nova scotia
    ON: ontario
    QC: quebec
    SK: saskatchewan
    """
)
_OFTEN_OTHERWISE = word_set("OK HI OH ME IN OR ID MD MA MS PA LA ON PR AB CO DE AL")
"""Codes that after a name and a comma are as often a word, a degree or a name."""
_THEIR_TOWNS = word_set(
    """
    Tulsa Norman Oklahoma_City Edmond Lawton Broken_Arrow Stillwater Enid Honolulu Hilo Kailua
    Kona Lahaina Waikiki Columbus Cleveland Cincinnati Toledo Akron Dayton Canton Youngstown
    Dublin Portland Bangor Augusta Lewiston Bar_Harbor Brunswick Kennebunkport Indianapolis
    Gary Fort_Wayne Evansville South_Bend Bloomington Carmel Lafayette Terre_Haute Muncie
    Salem Eugene Bend Medford Corvallis Beaverton Hillsboro Gresham Ashland Boise Idaho_Falls
    Nampa Meridian Pocatello Moscow Baltimore Annapolis Bethesda Rockville Silver_Spring
    Frederick Columbia Towson Gaithersburg College_Park Boston Cambridge Worcester Springfield
    Lowell Quincy Somerville Amherst Plymouth Newton Brookline Jackson Biloxi Gulfport
    Hattiesburg Tupelo Oxford Philadelphia Pittsburgh Harrisburg Scranton Erie Allentown
    Lancaster Bethlehem State_College York Reading Hershey Gettysburg New_Orleans Baton_Rouge
    Shreveport Metairie Monroe Toronto Ottawa Hamilton London Mississauga Kingston Waterloo
    San_Juan Ponce Calgary Edmonton Denver Boulder Aspen Fort_Collins Colorado_Springs Pueblo
    Vail Aurora Golden Wilmington Dover Newark Birmingham Montgomery Mobile Huntsville
    Tuscaloosa Auburn
    """
)
"""Towns in those states, with underscores for spaces."""
_TOWN = r"(?:[A-Z][A-Za-z.'-]{1,20}\s){0,2}[A-Z][A-Za-z.'-]{1,20}"
_TOWN_BEFORE = re.compile(rf"(?P<town>{_TOWN})(?P<comma>,?)\s$", re.ASCII)
_STREET_BEFORE = re.compile(
    r"\b\d{1,6}\s(?:[NSEW]{1,2}\.?\s)?[A-Z0-9][\w.]*\s[^\n!?]{0,60}$", re.ASCII
)
_POSTCODE = re.compile(r",?\s(?:\d{5}(?:-\d{4})?|[A-Z]\d[A-Z]\s?\d[A-Z]\d)(?!\w)", re.ASCII)
_ENDS_ADDRESS = re.compile(r"\s*(?:[.,;:!?)\n]|$)|\s(?:[a-z]|USA\b|U\.S\.|United|and\b)", re.ASCII)
_ROOM = 80


def _state(match: re.Match[str]) -> Expansion:
    left = match.string[max(0, match.start() - _ROOM) : match.start()]
    town = _TOWN_BEFORE.search(left)
    if town is None:
        return None
    if _POSTCODE.match(match.string, match.end()):
        return say(match, _STATES[match["code"]])
    if not town["comma"] or not _ENDS_ADDRESS.match(match.string, match.end()):
        return None
    names = town["town"].split()
    known = {"_".join(names[-count:]) for count in range(1, len(names) + 1)} & _THEIR_TOWNS
    if match["code"] in _OFTEN_OTHERWISE and not known and not _STREET_BEFORE.search(left):
        return None
    return say(match, _STATES[match["code"]])


def _box(match: re.Match[str]) -> Expansion:
    return say(match, ["P", "O", "box"])


RULES = (
    rule(rf"(?<=[\s,])(?P<code>{'|'.join(_STATES)})(?![\w'-]|\.\w)", _state),
    rule(r"(?<!\w)(?:P\.?\s?O\.?\s?[Bb]ox|P\.?O\.?B\.?)(?=\s\#?\d)", _box),
)
