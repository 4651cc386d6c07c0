"""Everyday questions for yes or no: patterns, and phrases that are in no statement's pattern.

Whether such a question rises depends on its words, so that the voices must hear many of them.
Names in braces are phrases of this module or of `prose`.
"""

from __future__ import annotations

from cantata_models.quartet.training.prose import split_items, split_lines

PHRASES: dict[str, tuple[str, ...]] = {
    "they": split_items("they|you|we|your parents|the others|people|her friends"),
    "one": split_items(
        "he|she|{name}|your mother|the plumber|the dentist|Mr. {surname}|the manager|anyone|"
        "your father|the cat|that man|anybody|someone|everybody|the new nurse|her husband|"
        "your lawyer|the waiter|Aunt {name}|the pilot|this girl|his daughter|your boss"
    ),
    "matter": split_items(
        "it|this|that|my luggage|the lift|the parcel|the bus|the last train|dinner|the coffee|"
        "the heating|the printer|our flight|the water|the exam|your flat|the music|this medicine|"
        "the shop|the beach|the pool|the website|the museum|breakfast|the engine|the roof"
    ),
    "goods": split_items(
        "shirt|coat|dress|hat|bicycle|sofa|lamp|carpet|ring|watch|phone|laptop|ticket|table|"
        "sandwich|cake|wine|cheese|dish|book|magazine|bed|chair|room|flat|model|colour|brand|"
        "medicine|seat|password|address|recipe|wallet|handbag|notebook|key|cable|battery|stamp"
    ),
    "several": split_items(
        "strawberries|tickets|blankets|towels|photographs|potatoes|shoes|gloves|pillows|rooms|"
        "tables|seats|letters|stamps|cups|plates|scissors|forms|documents|buses|trains|stairs|"
        "banks|museums|restaurants|chemists|roads|windows|lights|neighbours|nurses|students"
    ),
    "kind": split_items(
        "free|ready|safe|fresh|full|broken|empty|included|available|allowed|open|locked|heavy|"
        "cheaper|better|bigger|warm enough|spicy|far|occupied|finished|possible|necessary|hurt|"
        "hungry|thirsty|tired|sure|asleep|serious|angry|alone|busy|all right|comfortable|upset"
    ),
    "act": split_items(
        "pay by card|leave a message|borrow a pen|take a photograph|park here|have the bill|"
        "speak to the manager|try it on|change some money|book a table|stay another night|swim|"
        "cancel my order|get a refund|see the menu|use the telephone|turn the music down|cook|"
        "open the door for me|give me a hand|say that again|spell your name|check the oil|drive|"
        "pick me up at {clock}|drop me at {place}|keep a secret|wake me at {clock}|play chess|"
        "lend {name} ten pounds|show me the way|translate this|print it twice|send it by post|"
        "meet on {day}|come back {soon}|sign here|hold this|speak more slowly|write it down|help|"
        "dance|sing|join us|explain the rules|make an exception|fix it at home|read the small print"
    ),
    "past": split_items(
        "lock the back door|feed the cat|call the doctor|pay the rent|hear that noise|sleep well|"
        "get my message|finish your homework|see the match|buy any milk|read the contract|win|"
        "enjoy the concert|find your passport|switch off the oven|tell her the truth|miss me|"
        "sign the form|break this|write it alone|take your pills|bring an umbrella|mean that"
    ),
    "done": split_items(
        "eaten|arrived|finished|called|decided|paid|voted|signed the lease|seen this film|heard|"
        "been to {city}|met {name}|read the news|tried the soup|left a tip|found a job|got up|"
        "changed the date|lost something|had enough|locked the car|spoken to {person}|moved out"
    ),
    "busy": split_items(
        "coming|leaving|listening|staying for lunch|joking|looking for someone|working late|"
        "going to {city}|feeling better|getting married|expecting a visitor|paying in cash|"
        "sitting here|using this chair|learning Spanish|moving house|recording this|driving"
    ),
    "about": split_items(
        "the weather|your health|next summer|the results|the noise|my work|the price|politics|"
        "that letter|the accident|this evening|her story|the new rules|the children|money"
    ),
    "there": split_items(
        "a bank|a lift|a doctor|any milk|any news|a discount|a toilet|a map|somewhere to sit|"
        "a cheaper one|a problem|a lot of traffic|anything left|any room|a swimming pool|"
        "a bus to {city}|something wrong|a reason for that|time for coffee|a garden|Wi-Fi|parking"
    ),
    "nearby": split_items(
        "near here|upstairs|in the hotel|on {day}|in this town|at {place}|around the corner|"
        "on the ground floor|in the fridge|behind the house|for children|after {clock}|at home"
    ),
}
"""Phrases by name, beside those of `prose`."""

YES_NO = split_lines("""
    Do you {act}?
    Can I {act}?
    Can you {act}?
    Could you {act}?
    Could I {act}, please?
    Would you mind if I {did}?
    Would you {act} if I asked you?
    Would {they} like to {act}?
    May we {act} {soon}?
    Shall I {act}?
    Should we {act} {soon}?
    Must I {act}?
    Might {one} {act}?
    Will you {act} {soon}?
    Will {one} be {kind} {soon}?
    Won't you {act}?
    Can't {they} {act}?
    Did {they} {past}?
    Did {one} {past}?
    Didn't you {past}?
    Did you {past} {when}?
    Have {they} {done}?
    Have you {done} yet?
    Have you ever {done}?
    Haven't {they} {done}?
    Has {one} {done}?
    Has {one} {done} yet?
    Had you {done} before that?
    Are {they} {busy}?
    Are you {busy} {soon}?
    Are you {kind}?
    Are you worried about {about}?
    Are the {several} {kind}?
    Are these {several} yours?
    Are there any {several} {nearby}?
    Are there {several} {nearby}?
    Aren't you {kind}?
    Aren't the {several} {kind}?
    Is {one} {kind}?
    Is {matter} {kind}?
    Isn't {matter} {kind}?
    Will {matter} be {kind} {soon}?
    Was {matter} {kind} {when}?
    Does {matter} cost {amount}?
    Did {matter} arrive {when}?
    Has {matter} changed?
    Can {matter} wait until {day}?
    Is {one} {busy}?
    Is the {goods} {kind}?
    Is this {goods} {kind}?
    Is this your {goods}?
    Is that {goods} for {name}?
    Is there {there}?
    Is there {there} {nearby}?
    Isn't there {there} {nearby}?
    Isn't it {kind}?
    Is it {kind}?
    Is it too late to {act}?
    Is it all right to {act}?
    Is anybody {kind}?
    Is everything {kind}?
    Was it {kind}?
    Was the {goods} {kind}?
    Was {one} {kind} {when}?
    Was that {one}?
    Were {they} {busy} {when}?
    Were the {several} {kind}?
    Were you {kind}?
    Weren't you {busy}?
    Does {one} {act}?
    Does the {goods} cost {amount}?
    Does this {goods} belong to {name}?
    Does {name} know about {about}?
    Doesn't {one} {act}?
    Do you have a {adjective} {goods}?
    Do you have any {several}?
    Do you sell {several}?
    Do you need a {goods}?
    Do you want to {act}?
    Do you remember {name}?
    Do you know {name}?
    Do you know if {one} has {done}?
    Do you really believe that {fact}?
    Do they {act} {nearby}?
    Do we have to {act}?
    Do {they} talk about {about}?
    Don't you like {food}?
    Don't you want to {act}?
    Can {they} hear {matter}?
    Can we talk about {about}?
    Can {one} {act}?
    Could {they} {act} {soon}?
    Could it be {kind}?
    Have you got a {goods}?
    Have you got any {several}?
    Have we got {there}?
    Excuse me, is this {goods} {kind}?
    Excuse me, can you {act}?
    Sorry, did you {past}?
    {Name}, have you {done}?
    {Name}, can you {act}?
    So, did {one} {past}?
    And are {they} {busy}?
    But is it {kind}?
    Well, shall we {act}?
    Are you sure that {fact}?
    Did you know that {fact}?
    Did anyone {past} {when}?
    Did {name} tell you that {fact}?
    Would it be {kind}?
    Would {food} be all right?
    Would you rather {act}?
    Would you prefer a {adjective} {goods}?
    Will the {several} be {kind}?
    Will there be {there} {nearby}?
    Do you take {several}?
    Am I {kind}?
    Am I late for {about}?
    Is {clock} too early?
    Can it wait until {day}?
    Was {city} {adjective}?
    Have you heard from {person}?
    Ready to {act}?
    Any {several} left?
    Anything about {about}?
""")
"""Patterns of questions for yes or no."""
