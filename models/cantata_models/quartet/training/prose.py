"""Sentence patterns and the words that fill them.

A pattern has names in braces; `texts` puts a phrase of that name in the place. Phrases of a name
are of one kind, so that what comes out is a sentence that somebody might say.
"""

from __future__ import annotations


def split_lines(text: str) -> tuple[str, ...]:
    """Patterns, one a line."""
    return tuple(line.strip() for line in text.strip().splitlines() if line.strip())


def split_items(text: str) -> tuple[str, ...]:
    """Phrases, with `|` between."""
    return tuple(item.strip() for item in text.replace("\n", " ").split("|") if item.strip())


PHRASES: dict[str, tuple[str, ...]] = {
    "person": split_items(
        "my sister|your brother|the neighbour|our teacher|the new doctor|her uncle|the old captain|"
        "his grandmother|the postman|a friend of mine|the woman from the library|the landlord|"
        "my aunt|the boy next door|the mechanic|the night nurse|our accountant|the head gardener|"
        "the tall policeman|somebody at work|the youngest of them|the baker's wife|an engineer|"
        "the violin player|her cousin|the judge|my colleague|the bus driver|the tenant upstairs"
    ),
    "people": split_items(
        "my parents|the children|her friends|both teams|the neighbours|our guests|the workers|"
        "three of the students|most visitors|the two brothers|the actors|the villagers|"
        "some of the passengers|the volunteers|the scientists|the farmers|nearly all of us"
    ),
    "thing": split_items(
        "the blue suitcase|your umbrella|the second drawer|a pair of scissors|the spare key|"
        "an old photograph|the garden hose|the wooden ladder|my reading glasses|the front door|"
        "a cardboard box|the telephone|the broken vase|an envelope|the wool blanket|the toolbox|"
        "the kettle|a silver spoon|the chess board|the piano|your passport|the remote control|"
        "the charger|a heavy rucksack|the birthday present|the alarm clock|an orange jacket|"
        "the fishing rod|the oil lamp|the map of the valley|a roll of tape|the bathroom mirror"
    ),
    "food": split_items(
        "fresh bread|a bowl of soup|two boiled eggs|grilled fish|mushroom risotto|apple pie|"
        "strawberry jam|goat cheese|a cup of tea|black coffee|roast potatoes|lentil stew|"
        "chocolate cake|a glass of orange juice|rice with vegetables|onion soup|honey and yoghurt|"
        "a slice of melon|pancakes|smoked salmon|walnuts|peppermint tea|pear and ginger crumble"
    ),
    "item": split_items(
        "apples|candles|flour|matches|a torch|sugar|pencils|batteries|soap|tomatoes|paper cups|"
        "garlic|olive oil|onions|string|toothpaste|carrots|a hammer|nails|thick gloves|pepper|"
        "blue ink|two lemons|a sharp knife|washing powder|dried beans|cinnamon|vinegar|oats"
    ),
    "place": split_items(
        "the station|the harbour|the museum|the old mill|the market square|the airport|the school|"
        "the top of the hill|the chemist's|the swimming pool|the town hall|the other side of town|"
        "the ferry|the bookshop|the hospital|the campsite|the stadium|the post office|the bakery|"
        "the lighthouse|the botanical garden|the second floor|the car park|the rehearsal room"
    ),
    "city": split_items(
        "Paris|Dublin|Chicago|Vienna|Lisbon|Edinburgh|Toronto|Seattle|Bristol|Melbourne|Nairobi|"
        "Kyoto|Montreal|Cardiff|Boston|Stockholm|Naples|Houston|Manchester|Oslo|Singapore|Budapest"
    ),
    "name": split_items(
        "Anna|George|Maria|Thomas|Priya|Oliver|Zoe|Hugh|Charlotte|Samuel|Fatima|Julian|Beth|Victor|"
        "Joyce|Owen|Louise|Theodore|Grace|Yusuf|Harriet|Leo|Ingrid|Walter|Naomi|Vincent|Chloe|"
        "Jonathan|Eleanor|Hiro|Margaret|Douglas|Sheila|Adrian|Ruth|Geoffrey|Imogen|Patrick"
    ),
    "surname": split_items(
        "Bennett|Okafor|Fitzgerald|Shaw|Nakamura|Whitfield|Jones|Moreau|Ashworth|Van Dyke|Singh|"
        "Gallagher|Pemberton|Rossi|Vaughan|Young|Hutchinson|Lindqvist|Thatcher|Choi|McKenzie|Price"
    ),
    "title": ("Mr.", "Mrs.", "Dr.", "Professor", "Captain", "Ms."),
    "day": split_items("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"),
    "month": split_items(
        "January|February|March|April|May|June|July|August|September|October|November|December"
    ),
    "when": split_items(
        "yesterday|this morning|last night|a week ago|in the afternoon|before breakfast|on {day}|"
        "at the end of {month}|after the meeting|during the storm|last winter|around midnight|"
        "as soon as it got dark|the day before yesterday|in {month}|a few minutes ago|once again"
    ),
    "soon": split_items(
        "tomorrow|tonight|next week|on {day}|in an hour|before {month}|after lunch|at {clock}|"
        "at the weekend|as soon as possible|in the spring|by the end of the day|sooner or later"
    ),
    "clock": split_items(
        "half past seven|a quarter to nine|noon|ten o'clock|twenty past four|8:15|6:30|11:45|"
        "five to three|midnight|9 a.m.|4 p.m."
    ),
    "did": split_items(
        "found {thing}|forgot {thing}|went to {place}|called from {place}|sold {thing}|hid {thing}|"
        "waited near {place}|asked for {food}|repaired {thing}|moved to {city}|lost {thing}|"
        "carried {thing} to {place}|left {thing} at {place}|ordered {food}|wrote a long letter|"
        "shouted across the street|fell asleep on the sofa|came home late|missed the train|"
        "borrowed {thing}|painted the fence|walked along the river|cooked {food}|laughed out loud|"
        "dropped {thing}|ran all the way to {place}|told us the whole story|closed the window"
    ),
    "do": split_items(
        "find {thing}|bring {thing}|go to {place}|try {food}|fix {thing}|wait at {place}|open it|"
        "look for {thing}|meet {person}|read it aloud|stay for dinner|explain it again|"
        "turn off the light|call {name}|move {thing}|take the early train|learn how to swim|"
        "put {thing} back|sing something|change the subject|walk to {place}|keep it quiet|help us"
    ),
    "doing": split_items(
        "looking for {thing}|waiting for {person}|walking to {place}|cooking {food}|reading|"
        "learning to drive|painting the ceiling|packing for {city}|playing the violin|sweeping|"
        "watching the rain|counting the boxes|talking to {person}|thinking about {city}|cycling"
    ),
    "how": split_items(
        "slowly|carefully|without a word|in a hurry|with both hands|very quietly|for no reason|"
        "as usual|almost by accident|with great pleasure|on purpose|one by one|gently|in silence"
    ),
    "adjective": split_items(
        "strange|quiet|wonderful|expensive|cold|useful|crowded|dangerous|delicious|difficult|"
        "generous|ridiculous|beautiful|exhausting|peculiar|smooth|dusty|valuable|awful|cheerful"
    ),
    "noun": split_items(
        "view|idea|journey|voice|surprise|mistake|garden|evening|story|question|answer|bridge|"
        "mountain|film|song|winter|choice|picture|neighbourhood|machine|discovery|measure|treasure"
    ),
    "fact": split_items(
        "the shop is closed|it rained all night|nobody answered|the road was blocked|it is free|"
        "the lights went out|we had no tickets|there is plenty of time|the milk had gone sour|"
        "the engine would not start|everyone was tired|the bridge is too narrow|it was my turn|"
        "the water was freezing|{person} {did}|{people} were late|the letter never arrived|"
        "the view is worth it|that was the last one|the price has doubled|the dog barked"
    ),
    "opening": split_items(
        "To be honest|As far as I know|In the end|Strangely enough|Of course|By the way|Besides|"
        "After all|On the other hand|For once|Generally speaking|To my surprise|Believe it or not"
    ),
    "join": split_items("and|but|so|because|although|while|even though|since|until|which is why"),
    "feeling": split_items(
        "happy|worried|relieved|curious|furious|disappointed|grateful|proud|nervous|astonished"
    ),
    "number": split_items(
        "3|7|12|15|24|40|68|99|150|365|1,200|45,000|two hundred|thirteen|seventeen|eighty-one|"
        "half a dozen|fifty|nineteen|a hundred and six|three quarters of the"
    ),
    "amount": split_items(
        "$4.50|$20|£35|€9.99|12%|3.5%|$1,250|half a million dollars|60 cents|£7.20"
    ),
    "year": split_items("1848|1912|1969|1984|1999|2007|2016|2024|1066|1750"),
    "unit": split_items("miles|kilometres|minutes|pounds|hours|metres|litres|days|pages|degrees"),
    "said": split_items(
        "said {name}|asked {name}|whispered {person}|she answered|he replied|{name} laughed|"
        "cried {person}|they shouted|I said|{title} {surname} explained|muttered the captain"
    ),
    "oh": split_items(
        "Oh|Well|Ah|Hey|Goodness|Wow|Hm|No|Yes|Look|Right|Come on|Please|Sorry|Thanks"
    ),
    "rare": ("{word}",),
}
"""Phrases by name; a phrase may contain other names."""

STATEMENTS = split_lines("""
    {Person} {did} {when}.
    {When}, {person} {did}.
    {Person} {did} {how}.
    {People} were {doing} when {fact}.
    {Fact}, {join} {fact}.
    {Person} {did}, {join} {fact}.
    {Opening}, {fact}.
    {Opening}, {person} {did} {when}.
    I would like to {do} {soon}.
    We are going to {do} {soon}, {join} {fact}.
    It is a {adjective} {noun}, {join} {fact}.
    The {noun} was more {adjective} than I had expected.
    {Person}, who {did}, was {feeling}.
    If {fact}, {person} will {do} {soon}.
    If {fact}, we can {do}; if not, we will {do}.
    There were {number} people at {place}, and {person} was {feeling}.
    {Person} paid {amount} for {thing}.
    It is {number} {unit} from {place} to {place}.
    The {noun} was built in {year}, and it is still {adjective}.
    {Title} {surname} will {do} at {clock}.
    The train to {city} leaves at {clock}.
    {Name} and {name} {did} {when}.
    {Person} {did} - or so they say.
    {Thing} is at {place}; {thing} is not.
    {Thing} (the {adjective} one) belongs to {person}.
    You should {do} before you {do}.
    Please {do} {soon}.
    Don't {do} until {fact}.
    First {do}, then {do}, and only then {do}.
    Not every {noun} is {adjective}, and not every {adjective} thing is a {noun}.
    {Person} used to {do}, back in {year}.
    She was so {feeling} that she {did}.
    He {did} because he wanted to {do}.
    I'm {doing}, but I'll {do} {soon}.
    They've never been to {city}, although they have always wanted to go.
    What I really want is {food} and a {adjective} {noun}.
    The word is {rare}, not {rare}.
    {Rare} and {rare} are both on the list.
    The village of {Rare} lies {number} {unit} north of {city}.
    {Title} {Rare} comes from {city}.
    Nobody knows why {person} {did}.
    The more you {do}, the more {feeling} you become.
    Somewhere near {place}, {person} was {doing}.
    It rained; {fact}; {fact}.
    The {adjective}, {adjective} {noun} made {people} {feeling}.
    Your order of {item} and {item} comes to {amount}.
    Thank you for waiting; {person} will {do} {soon}.
    The forecast for {city} says {number} degrees and a {adjective} wind.
    Chapter {number}: the {adjective} {noun}.
""")

YES_NO = split_lines("""
    Did {person} {do}?
    Have you ever been to {city}?
    Is {thing} still at {place}?
    Can you {do} {soon}?
    Could you {do}, please?
    Would you like {food}?
    Would {person} {do} if {fact}?
    Are {people} {feeling}?
    Are you {doing}?
    Is it true that {person} {did}?
    Do you think that {fact}?
    Does {person} know that {fact}?
    Was it really that {adjective}?
    Will {people} be at {place} {soon}?
    Shall we {do}?
    May I {do}?
    Has {person} seen {thing}?
    Were you at {place} {when}?
    Should I {do} first?
    Isn't it a {adjective} {noun}?
    Haven't we met before, perhaps in {city}?
    {Name}, are you there?
    Is that {amount} or {amount}?
    Is {rare} the right word?
    Do I know you, {title} {surname}?
""")

OPEN_QUESTIONS = split_lines("""
    Where did {person} put {thing}?
    Why is it so {adjective}?
    Why were {people} {feeling}?
    What would you do if {fact}?
    What are you {doing} for?
    What time is it?
    What happened at {place} {when}?
    Who {did} {when}?
    Who is going to {do}?
    How far is it to {city}?
    How much is {thing}?
    How many {unit} are left?
    How do you spell {rare}?
    How did {person} {do}?
    When will {person} {do}?
    Which {noun} do you prefer?
    Whose {noun} is that?
    What does {rare} mean?
    What on earth is {person} {doing} for?
    And where is {name}?
    So what did {title} {surname} say?
""")

OTHER_QUESTIONS = split_lines("""
    You {did}, didn't you?
    {Fact}, doesn't it, or am I wrong?
    It's a {adjective} {noun}, isn't it?
    {Person} will {do}, won't they?
    You haven't seen {thing}, have you?
    Tea or coffee?
    Do you prefer {food} or {food}?
    Is it on {day} or on {day}?
    Shall we go to {place}, or to {place}?
    {Person} {did}?
    {City}? In {month}?
    Really? {Fact}?
    {Name}? Is that you?
    You want to {do}? Now?
    {Thing}, you mean?
    Ready?
    And then?
    Why not?
    Who, me?
""")

EXCLAMATIONS = split_lines("""
    What a {adjective} {noun}!
    How {adjective}!
    {Oh}! {Fact}!
    {Oh}, that's {adjective}!
    Don't {do}!
    Stop! {Fact}!
    I can't believe that {person} {did}!
    {Name}! {Do} at once!
    Happy birthday, {name}!
    Help! {Person} {did}!
    Good morning, {name}!
    Congratulations! You must be {feeling}!
    Never, never {do}!
    Hurry up, or we'll miss it!
    {Oh}! Not again!
    You did it!
    Of course not!
    Wait for me!
    I am so {feeling}!
""")

LISTS = split_lines("""
    {Item}, {item}, {item}, and {item}.
    We need {item}, {item}, {item}, {item}, and {item}.
    On {day} we went to {place}, on {day} to {place}, and on {day} to {place}.
    She has been to {city}, {city}, {city}, and even {city}.
    There are three things to do: {do}, {do}, and {do}.
    {Name}, {name}, {name}, and {name} were there.
    One, two, three, four, five, six, seven, eight, nine, ten.
    For dinner there was {food}, {food}, and, to everyone's surprise, {food}.
    The colours were red, yellow, green, and a {adjective} shade of blue.
    Bring the following: {item}, {item}, {item}.
    It was {adjective}, {adjective}, and above all {adjective}.
    {Item}? Yes. {Item}? Yes. {Item}? No.
    {Rare}, {rare}, {rare}, and {rare}.
    The dates are {month} 3rd, {month} 14th, and {month} 21st.
""")

DIALOGUE = split_lines("""
    "{Fact}," {said}.
    "{Oh}," {said}, "{fact}."
    "Did {person} {do}?" {said}.
    "What a {adjective} {noun}!" {said}.
    "I never said that," {said}, "and you know it."
    {Person} turned around and said, "{Fact}."
    "Where is {thing}?" {said}. "{Fact}."
    "Yes," {said}, "but {fact}."
    "If {fact}," {said}, "then we should {do}."
    "No," {said}. "Not {when}."
    "{Name}, {do}!" {said}.
    He asked, "Have you been {doing}?" and she said, "No."
    "I'm sorry," {said}; "{fact}."
""")

REPLIES = split_lines("""
    Yes, please.
    No, thank you.
    I don't know.
    Sure, I can do that.
    You're welcome.
    That depends.
    Let me think.
    Not at all.
    All right, then.
    Maybe {soon}.
    I see.
    Good night, {name}.
    See you {soon}.
    Here you are.
    It's {clock}.
    In {city}, I think.
    {Oh}, {fact}.
    Just a moment, please.
""")
