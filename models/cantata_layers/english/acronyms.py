"""Decides how a run of capitals is read: as letters, or as a word.

The lexicon is no judge: it lists "ct" as a court and "ups" as a plural. So two or three capitals
are a word only if they are one of the short words below or an acronym that is said as a word.
From four letters on, what the lexicon lists is a word.
"""

from __future__ import annotations

import functools

from cantata_layers.english.fixes import FIXES, LETTERS
from cantata_layers.english.lexicon import load_lexicon
from cantata_layers.english.tokens import word_set

SPELLED = word_set(
    "AC AD AI AKA ALS AMA AR ATM BC BCE BMI CD CE CET CLI CST CSV CV DIY DJ DM DNS EDT EST ETA EU "
    "FAQ FYI GI GM GMT GOP HQ HR ID IDE IOU IP IQ IRA IT LA LED LOL MIT MST OS PC PDT PE PM POS "
    "PR PST PTA QA ROI RSS RV SAT SD SMS SOS SSH SUV TA TB TV UI UK UN US USB UTC UV UX VC VIP VR "
    "WHO XP"
)
"""Read letter by letter although a word has the same spelling."""

WORDS_TOO = word_set("AD ID IT LA LED TA UN US WHO SAT")
"""Those of them that are ordinary words when the surrounding text is in capitals."""

SAID = word_set(
    "AAA ACAS AIDS ASCII ASEAN AUKUS AWOL BAFTA BERT BIOS BRICS CAD CAM CAPEX CAPTCHA CERN COBOL "
    "COBRA ZIP COVID CRUD CUDA DACA DARPA DAX DEFRA DIN DOS DRAM EPOS ERISA FEMA FICA FIDO FIFA "
    "FLOTUS FOBT FOMO GAAP GAN GATT GIF GUI HALO HEPA HIPAA HUD ICANN IKEA INTERPOL ISIS JPEG "
    "JSON LAN LASER LIBOR LIDAR LISP LORA MAGA MASH MERCOSUR MERS MIDI MOOC NAFTA NASA NASCAR "
    "NASDAQ NATO NERF NIMBY NOAA NORAD OFCOM OFGEM OFSTED OLED OPEC OPEX OSHA PAC PERL PETA PIN "
    "POTUS PRAM QUANGO RADAR RAG RAID RAM REIT RICO ROM SARS SCADA SCOTUS SCSI SCUBA SIDS SIM "
    "SLAM SONAR SPAM SRAM SWAT TANF TARP TASER TED TOEFL TWAIN UEFA UNESCO UNICEF UNIX UNRWA VAT "
    "VESA VLAN WAN WASP WIC WIMP WYSIWYG YAML YOLO"
)
"""Acronyms that are said as words."""

_SHORT_WORDS = word_set(
    "abe add age ago ah aid aim air all am amy an and ann any ape apt arc are ark arm art as ash "
    "ask at ate ava awe axe aye bad bag ban bar bat bay be bed bee beg ben bet bib bid big bin "
    "bit bob bow box boy bud bug bum bun bus but buy by bye cab can cap car cop cow cry cub cue "
    "cup cut dad dam dan day den dew did die dig dim dip do dog don dot dry due dug dye ear eat "
    "egg ego elf end era eva eve eye fab fan far fat fax fed fee few fig fin fit fix flu fly foe "
    "fog for fox fry fun fur gag gap gas gay gel gem get gig go god got gum gun gus gut guy gym "
    "ha had ham has hat hay he hen her hey hi him hip his hit ho hog hop hot how hug hut ian ice "
    "icy if ill in ink inn is it its ivy jam jar jaw jay jet jim job joe jog jon joy jug kai kay "
    "ken key kid kim kin kit lab lad lap law lay led lee leg leo let lid lie lip lit liz log lot "
    "lou low lyn mad man map mat max may me meg men met mia mix mob mom mop mud mug mum my nan "
    "nap nat ned net new nil no nod non nor not now nun nut oak odd of off oh oil ok old on one "
    "opt or our out ow owe owl own pad pal pam pan par pat paw pay pea peg pen per pet pie pig "
    "pit pop pot pro pub put ran rat raw ray red rex rib rid rip rob rod ron rot row roy rub rug "
    "run sad sam saw say sea see set sew sex she shy sin sip sir sit six ski sky sly so son sow "
    "spy sub sue sum sun tap tar tax tea ted ten the tie tim tin tip to toe tom ton too top toy "
    "try tub tug two up us use val van vet via vic vow war was wax way we web wed wes wet who why "
    "wig win won wow ye yes yet you zoe zoo"
)


@functools.cache
def is_word(text: str) -> bool:
    """Whether a run of capitals is an ordinary word or a name, as in "I said NO"."""
    lower = text.lower()
    if text in SPELLED or text in SAID:
        return False
    if len(text) < 4:
        return lower in _SHORT_WORDS
    return (lower in FIXES or lower in load_lexicon()) and not _is_listed_as_letters(lower)


def _is_listed_as_letters(lower: str) -> bool:
    """Whether the lexicon's pronunciation is the names of the letters, as of "fbi"."""
    phones = FIXES.get(lower) or load_lexicon().get(lower)
    names = tuple(phone for char in lower.upper() for phone in LETTERS.get(char, ()))
    return phones == names
