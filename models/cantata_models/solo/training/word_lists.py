"""Hand-written words and sentence frames of the training text.

All of it is in spoken form: lower-case words of the lexicon and the marks , . ? !
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    "anna james maria peter sarah david emma michael olivia robert sophie daniel laura thomas "
    "helen kevin julia martin nina oscar alice george karen henry lucy simon grace victor ruth "
    "edward claire philip diana walter irene hugo martha felix rosa leonard amy brian carol frank "
    "susan steven nancy paul linda mark barbara kenneth elizabeth william patricia john jennifer"
)

LAST_NAMES = _words(
    "miller johnson garcia brown davis wilson anderson taylor moore jackson white harris clark "
    "lewis walker young allen king wright scott green baker adams nelson carter mitchell roberts "
    "turner phillips campbell parker evans edwards collins stewart morris rogers reed cook morgan "
    "bell murphy bailey cooper richardson cox howard ward peterson gray watson brooks kelly price"
)

PLACES = _words(
    "london paris berlin boston chicago denver dublin seattle vienna toronto madrid rome tokyo "
    "sydney houston dallas atlanta glasgow oxford cambridge lisbon athens moscow prague warsaw "
    "brussels geneva milan barcelona amsterdam montreal portland phoenix orlando nashville"
)

MONTHS = _words(
    "january february march april may june july august september october november december"
)

WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")

ONES = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)

TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")

ORDINALS = _words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth"
)

UNITS = _words(
    "miles kilometers meters minutes hours days weeks months years dollars euros pounds percent "
    "degrees people pages grams liters seconds inches feet tons cents students bottles boxes"
)

LETTERS = _words("b c d e f g h i j k l m n o p q r s t u v w x y z")

JOINTS = (
    "and",
    "but",
    "because",
    "so",
    "and then",
    "while",
    "which means that",
    "although",
    "",
    "",
)
"""Between the parts of a long sentence."""

NOUNS = _words(
    "door window table chair kitchen garden house car train bus ticket letter book phone computer "
    "river mountain road bridge city village school teacher student doctor nurse hospital market "
    "shop bread butter cheese milk coffee tea water apple orange banana dinner breakfast lunch "
    "morning evening night summer winter spring weather rain snow wind storm sun moon star sky "
    "dog cat horse bird fish cow sheep tree flower leaf grass stone sand beach ocean island ship "
    "boat plane airport station hotel room bed pillow blanket lamp mirror clock watch key lock "
    "box bag shirt coat shoe hat dress ring money bank office meeting report project plan idea "
    "question answer problem story picture song music film game team player ball field race prize "
    "friend brother sister mother father daughter son uncle neighbor child baby family party "
    "birthday holiday journey map camera engine wheel fire smoke light shadow voice word name "
    "number paper pencil message signal machine screen button program file system server battery "
    "cable box kettle spoon fork knife plate bottle glass cup soup salad rice chicken potato onion "
    "tomato pepper salt sugar cake chocolate lemon cherry museum library church castle tower wall "
    "roof floor stairs corner street square park forest lake valley desert hill cave path farm"
)

ADJECTIVES = _words(
    "red blue green yellow black white brown small large big tiny huge long short tall wide narrow "
    "deep high low old new young fresh clean dirty warm cold hot cool wet dry bright dark quiet "
    "loud soft hard smooth rough sharp heavy light strong weak fast slow easy difficult simple "
    "strange common rare cheap expensive rich poor happy sad angry calm brave shy kind honest "
    "careful lazy busy free full empty open closed broken useful famous ancient modern wooden "
    "golden silver plastic public private local foreign perfect terrible wonderful beautiful "
    "dangerous important possible ready sweet bitter sour thick thin round flat gentle clever"
)

VERBS_PAST = _words(
    "opened closed moved carried found lost bought sold cleaned painted fixed broke washed watched "
    "missed followed reached crossed left entered visited remembered forgot described wanted "
    "needed liked loved noticed touched pushed pulled lifted dropped threw caught held kept hid "
    "showed checked changed covered filled finished started used borrowed returned mentioned "
    "ordered prepared photographed measured counted drew built burned collected delivered"
)

VERBS_BASE = _words(
    "open close move carry find lose buy sell clean paint fix break wash watch miss follow reach "
    "cross leave enter visit remember forget describe want need like love notice touch push pull "
    "lift drop throw catch hold keep hide show check change cover fill finish start use borrow "
    "return mention order prepare measure count draw build burn collect deliver explain choose"
)

ADVERBS = _words(
    "quickly slowly carefully quietly suddenly finally usually often never always sometimes rarely "
    "probably certainly perhaps again already still soon later yesterday today tomorrow tonight "
    "early together alone outside upstairs everywhere twice once gently easily badly almost"
)

PREPOSITIONS = _words(
    "in on under behind near beside above below inside outside across around through past "
    "toward against without before after between beyond along"
)

PHRASES = (
    "hello",
    "good morning",
    "good evening, everyone",
    "thank you very much",
    "you're welcome",
    "see you later",
    "have a nice day",
    "excuse me",
    "i'm sorry",
    "no problem",
    "of course",
    "just a moment, please",
    "welcome back",
    "please try again",
    "that's all right",
    "well done",
    "i don't know",
    "are you sure",
    "what's the matter",
    "how are you today",
    "where are we going",
    "yes",
    "no",
    "maybe",
    "goodbye",
    "congratulations",
    "happy birthday",
    "good luck",
    "take care",
    "let's go",
    "come in",
    "wait a minute",
    "not at all",
    "never mind",
    "i see",
    "it depends",
    "the line is busy",
    "your call is important to us",
    "please leave a message",
)

# Slots in capitals are filled by training/text.py.
FRAMES = (
    "the ADJ NOUN VPAST the NOUN PREP the NOUN .",
    "SUBJ VPAST a ADJ NOUN and VPAST the NOUN .",
    "SUBJ VPAST the NOUN ADV .",
    "there is a ADJ NOUN PREP the NOUN .",
    "there are NUM ADJ RARE PREP the NOUN .",
    "NAME VPAST the NOUN in PLACE .",
    "NAME and NAME VPAST the ADJ NOUN ADV .",
    "could you VBASE the NOUN , please ?",
    "did NAME VBASE the ADJ NOUN ?",
    "where did SUBJ VBASE the NOUN ?",
    "why is the NOUN so ADJ ?",
    "how many RARE did you VBASE ADV ?",
    "do you want to VBASE the NOUN or the NOUN ?",
    "when will the NOUN VBASE the NOUN ?",
    "what is the name of the ADJ NOUN ?",
    "is it ADJ or ADJ ?",
    "please VBASE the NOUN ADV .",
    "don't VBASE the ADJ NOUN !",
    "what a ADJ NOUN !",
    "if SUBJ VBASE the NOUN , we can VBASE the NOUN ADV .",
    "when the NOUN VPAST the NOUN , the ADJ NOUN was already ADJ .",
    "SUBJ said that the NOUN was ADJ , but the NOUN was ADJ .",
    "the NOUN of the NOUN is ADJ , ADJ , and ADJ .",
    "i have never VPAST such a ADJ NOUN in my life .",
    "we should VBASE the RARE before the NOUN VPAST .",
    "the RARE and the RARE were PREP the NOUN .",
    "a RARE RARE is not a ADJ NOUN .",
    "my NOUN is called RARE .",
    "RARE , RARE , and RARE .",
    "RARE .",
    "RARE ?",
    "RARE RARE .",
    "the word is RARE .",
    "it costs NUM UNIT .",
    "it is NUM UNIT from PLACE to PLACE .",
    "the NOUN opens at CLOCK on WEEKDAY .",
    "my birthday is on the ORD of MONTH .",
    "it happened on MONTH ORD , YEAR .",
    "the train to PLACE leaves at CLOCK .",
    "the meeting on WEEKDAY lasted NUM UNIT .",
    "call me at DIGITS .",
    "the answer is NUM point DIGIT DIGIT .",
    "about NUM percent of the NOUN was ADJ .",
    "the population of PLACE was NUM in YEAR .",
    "chapter DIGIT , page NUM .",
    "this is FIRST LAST from PLACE .",
    "doctor LAST will see you at CLOCK .",
    "mister LAST and missus LAST VPAST the NOUN .",
    "FIRST , have you met FIRST LAST ?",
    "SUBJ gave the NOUN to FIRST LAST , who VPAST it ADV .",
    "the next stop is LAST street .",
    "NUM plus NUM is NUM .",
    "the LETTERS NOUN is ADJ .",
    "LETTERS and LETTERS .",
    "he works for the LETTERS in PLACE .",
    "visit RARE dot com slash NOUN .",
    "write to FIRST dot LAST at RARE dot org .",
    "it was NUM degrees in PLACE , and the NOUN was ADJ .",
    "NUM dollars and NUM cents .",
    "PHRASE .",
    "PHRASE , FIRST .",
)
