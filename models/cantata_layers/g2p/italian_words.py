"""Italian words whose sound the rules of `italian` would miss, with an accent that is not written.

It marks the stressed vowel, and whether an e or o is open (`è`, `ò`) or closed (`é`, `ó`).
"""

from __future__ import annotations

from cantata_layers.g2p.letter_rules import list_words

_PLAIN = str.maketrans("àèéìòóù", "aeeioou")
_WORDS = list_words(
    # Function words and pronouns.
    "cóme dópo dóve nói vói quésto quésta quésti quéste quéllo quélla quélli quélle quél "
    "mólto mólta mólti mólte óltre inóltre sópra sótto lóro sèmpre bène èra èrano sèi avéva "
    "avévo stésso stéssa stéssi stésse spésso fuòri tuttavìa allóra ancóra ógni ognùno nòstro "
    "nòstra nòstri vòstro quéi perché piuttòsto adèsso prèsso davvéro dèvono pòssono vògliono "
    "sànno dànno déntro "
    # Stressed on the last syllable but two.
    "èssere prèndere mèttere lèggere scrìvere vìvere pèrdere crédere chièdere chiùdere "
    "córrere vìncere rispòndere conóscere créscere nàscere permèttere ricévere discùtere "
    "scégliere tògliere accògliere raccògliere ròmpere prométtere mòrdere vèndere spèndere "
    "uccìdere rìdere divìdere muòvere risòlvere giùngere raggiùngere aggiùngere spìngere "
    "dipìngere costrìngere piàngere distìnguere règgere corrèggere protèggere cénere gènere "
    "pólvere nùmero nùmeri lìbero lìbera lìberi càmera càmere òpera òpere lèttera lèttere "
    "màschera fàbbrica domènica mùsica mèdico mèdici polìtica polìtico polìtici polìtiche "
    "àttimo àngolo àlbero àlberi ànima ànimo càrico càrica clàssico còdice crèdito débito "
    "diàvolo edifìcio època fàcile diffìcile sìmile sìmili giòvane gióvani ìsola ìsole lìmite "
    "lìmiti màcchina màcchine màssimo màssima mèrito mètodo mìnimo mìnima nòbile órdine "
    "órdini orìgine orìgini pàgina pàgine perìcolo pìccolo pìccola pìccoli pìccole pòpolo "
    "pùbblico pùbblica pùbblici ràpido ràpida règola règole sècolo sècoli sémplice sémplici "
    "sìndaco sìngolo sìngola sìngoli sòlito sòlita sùbito tàvola tàvolo tèrmine tèrmini "
    "tìtolo tìtoli ùltimo ùltima ùltimi ùltime ùnico ùnica ùnici uòmini ùtile ùtili vìttima "
    "vìttime zùcchero fràgile àgile àbile débole déboli nùvola nùvole fàvola véscovo stòmaco "
    "tràffico giùdice giùdici cómplice dódici ùndici trédici quìndici sédici ùmido lìquido "
    "sòlido vàlido vàlida pròssimo pròssima pròssimi legìttimo sàbato cèlebre pòvero pòvera "
    "pòveri òrgano àrabo propòsito esèrcito dibàttito prèstito rèddito còmpito àbito vìsita "
    "vìsite véndita pèrdita nàscita créscita spìrito sèguito òspite òspiti fémmina àsino "
    "pèssimo òttimo òttima ìntimo dècimo làcrima làcrime càndido immàgine immàgini màrgine "
    "vérgine disórdine vìdeo lìnea àrea anàlisi ipòtesi tràmite fenòmeno ossìgeno sciòpero "
    "recùpero pàlido dòllari gènova pàdova màntova védova bàttere màrtiri mànico rìschio "
    "comùnque ovùnque diàlogo "
    # Stressed on the last syllable but one, against an ending.
    "amìco amìca amìci amìche nemìco nemìci antìco antìca antìchi fatìca dìco scuòla scuòle "
    "paròla paròle sóle sólo sóla sóli vólo ruòlo suòlo góla pistòla spagnòlo guìda vìta "
    "avére potére dovére volére sapére vedére tenére rimanére piacére cadére sedére valére "
    "mantenére ottenére sostenére contenére godére temére véro véra véri vére séra stasèra "
    "intéro intéra leggèro sevèro mistèro ministèro pensièro perdóno abbandóno dóno tòno "
    "tròno buòno buòna buòni umàno lontàno romàno italiàno italiàna settimàna settimàne "
    "felìce felìci radìce attrìce cornìce brasìle fucìle aprìle civìle gentìle stìle capìta "
    "finìto vestìto costruìto seguìre fìla fìle decìde uccìde divìde sorrìde rìde antìche "
    "edifìci uffìci radìci benefìci notìzie follìa teorìe categorìe nàpoli càvolo cìnema "
    "pàolo mànager ìndice prìncipe prìncipi crìmine crìmini crònaca mònaco catàlogo fàrmaci "
    "èstero èsteri àngelo àngeli vèneto mòdena òrgani pòpoli caràttere caràtteri gratùito "
    "scàndalo scàtola càlcolo cìrcolo sìmbolo sìmboli milàno umàna capitàno divàno vulcàno "
    "urbàno sovràno toscàno napoletàno villàno profàno mondàno metropolitàno americàno "
    "africàno messicàno vaticàno repubblicàno cristiàno anziàno brasiliàno siciliàno indiàno "
    "australiàno venezuelàno egiziàno quotidiàno guardiàno gabbiàno altopiàno piàno bolzàno "
    "lugàno germàno meridiàno palestiniàno pagàno uràno oceàno decàno marràno artigiàno "
    "partigiàno parmigiàno balzàno ebràico "
    # With an i of its own, or open and closed against the rules.
    "marìa teorìa giurìa categorìa armonìa ironìa romanìa turchìa polizìa farmacìa energìa "
    "magìa compagnìa malattìa fantasìa poesìa garanzìa gelosìa bugìa allegrìa economìa "
    "democrazìa periferìa librerìa pizzerìa tecnologìa psicologìa ideologìa addìo pendìo zìo "
    "zìa zìi mormorìo leggìo sèrie spècie mèglio fòglio vòglio cènto cèntro mèzzo mèzza mèzzi "
    "prèzzo pèzzo sèmbra sémbrano témpo tèrra ségno séno stélla stélle bélla capélli fratèllo "
    "sorèlla cèlla nóme cognóme róma sómma fórse fórte mòrte fórma nòrd òvest crédo crédi "
    "créde védo védi véde védono réte séte méno méla péna véna céna pésce pésci lègge légno "
    "fósse fóssero avésse avéssero potésse dovésse facésse rispósta pósto pósta mése mési "
    "chièsa difésa sorprésa mòstra móstrano còsa còse còsta vòlta vòlte vólto ascólto tólto "
    "fòto vóto nòta nòtte òtto lòtta còtta dònna dònne gònna còrpo còrpi còrte cólpa cólpi "
    "cólpo pólso sógno bisógno giórno giórni óra óre amóre coróna persóna persóne fóndo móndo "
    "nascósto agósto cósto pèrdo vèrde cérca cérco ricérca fèrmo schérmo divènta divèntano "
    "aspètta aspètto aspètti lètto lètti tètto pètto effètto effètti perfètto dirètto "
    "progètto progètti oggètto oggètti soggètto rispètto détto détta détti métto nétto "
    "strétto frétta vétta insième prègo spèro complèto complèta poèta pianéta segréta tréno "
    "piène pièno pièna scèna vènti vènto evènto gènte "
    "reàle reàli sìntesi "
)
MARKED = {word.translate(_PLAIN): word for word in _WORDS}
"""Each as it is written, and with its accent."""
