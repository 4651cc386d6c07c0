"""French words that the rules of `french` would misread."""

from __future__ import annotations

import re

from cantata_layers.g2p.letter_rules import list_words

_STEMS = "|".join(
    list_words(
        "parl veul sembl appell peuv doiv suiv viv trouv arriv serv sav écriv observ reçoiv "
        "reç rest mett exist port mont permett montr entr offr cour dis pens utilis demand "
        "perd rend cherch touch march mang chang boiv croi voi aim donn parten travaill jou "
        "pass laiss représent port lis fass cré ouvr regard tomb gagn ajout propos mèn part "
        "sort sent dorm vend attend prétend considèr espèr préfèr commenc avanc concern form "
        "vienn tienn prenn "
    )
)
SILENT_ENDING = re.compile(f"^(re|dé)?({_STEMS})ent$")
"""Verbs whose -ent is not said; it is in other words."""
SPELT = {
    "hier": "hière",
    "vingt": "vin",
    "sept": "sète",
    "huit": "huite",
    "mer": "mère",
    "super": "supère",
    "cher": "chère",
    "fer": "fère",
    "ver": "vère",
    "enfer": "enfère",
    "hiver": "hivère",
    "est": "ai",
    "et": "é",
    "es": "ai",
    "monsieur": "messieu",
    "femme": "fame",
    "femmes": "fame",
    "ai": "é",
    "tous": "tou",
    "fils": "fisse",
    "os": "o",
    "eu": "u",
    "pays": "péi",
    "temps": "tan",
    "vient": "viin",
    "tient": "tiin",
    "devient": "deviin",
    "second": "segon",
    "zone": "zaune",
    "plus": "plu",
    "très": "trè",
    "album": "albome",
    "bus": "busse",
    "processus": "processusse",
    "ville": "vile",
    "villes": "vile",
    "village": "vilage",
    "villages": "vilage",
    "mille": "mile",
    "cet": "cète",
    "sud": "sude",
    "but": "bute",
    "mars": "marse",
    "dix": "disse",
    "six": "sisse",
    "respect": "respè",
    "aspect": "aspè",
    "travers": "travère",
    "divers": "divère",
    "envers": "anvère",
    "univers": "univère",
    "vers": "vère",
    "donc": "donque",
    "club": "clube",
    "parc": "parque",
    "sens": "sansse",
    "internet": "internète",
    "net": "nète",
    "virus": "virusse",
    "gentil": "genti",
    "outil": "outi",
    "outils": "outi",
    "famille": "famiye",
    "deuxième": "deuzième",
    "longtemps": "lontan",
    "août": "oute",
    "feuille": "feuye",
    "coeur": "cœur",
    "hélas": "hélasse",
}
"""Words as they would be spelt if they were regular."""
ASPIRATED = re.compile(
    "h(aut|éros$|uit|ors|ont|aine|aï|asard|alte|anche|arc|aricot|ausse|ero|ibou|ockey|olland|ongr"
    "|onte|otte|urle|ut|all|amp|and|ang|ard|ât|er[sc]e|iér)"
)
"""Words with an h that nothing is joined to."""
