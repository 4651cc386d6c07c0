"""Names of units and currencies."""

from __future__ import annotations

from typing import NamedTuple

from cantata_layers.english.tokens import table


class Currency(NamedTuple):
    """Singular and plural names of the major and the minor unit."""

    one: str
    many: str
    minor_one: str = ""
    minor_many: str = ""


CURRENCIES = {
    name: Currency(*value.split(", "))
    for name, value in table(
        """
        $: dollar, dollars, cent, cents
        US$: U S dollar, U S dollars, cent, cents
        USD: U S dollar, U S dollars, cent, cents
        A$: australian dollar, australian dollars, cent, cents
        C$: canadian dollar, canadian dollars, cent, cents
        €: euro, euros, cent, cents
        EUR: euro, euros, cent, cents
        £: pound, pounds, penny, pence
        GBP: pound, pounds, penny, pence
        ₹: rupee, rupees, paisa, paise
        ¥: yen, yen
        JPY: yen, yen
        ₩: won, won
        CHF: swiss franc, swiss francs, centime, centimes
        AUD: australian dollar, australian dollars, cent, cents
        CAD: canadian dollar, canadian dollars, cent, cents
        CA$: canadian dollar, canadian dollars, cent, cents
        AU$: australian dollar, australian dollars, cent, cents
        NZ$: new zealand dollar, new zealand dollars, cent, cents
        NZD: new zealand dollar, new zealand dollars, cent, cents
        HK$: hong kong dollar, hong kong dollars, cent, cents
        HKD: hong kong dollar, hong kong dollars, cent, cents
        S$: singapore dollar, singapore dollars, cent, cents
        SGD: singapore dollar, singapore dollars, cent, cents
        R$: brazilian real, brazilian reais, centavo, centavos
        BRL: brazilian real, brazilian reais, centavo, centavos
        CNY: yuan, yuan
        RMB: yuan, yuan
        INR: rupee, rupees, paisa, paise
        Rs: rupee, rupees, paisa, paise
        Re: rupee, rupees, paisa, paise
        PKR: pakistani rupee, pakistani rupees
        LKR: sri lankan rupee, sri lankan rupees
        NPR: nepalese rupee, nepalese rupees
        AED: dirham, dirhams
        SAR: saudi riyal, saudi riyals
        HUF: forint, forints
        CZK: czech crown, czech crowns
        IDR: rupiah, rupiah
        PHP: philippine peso, philippine pesos
        VND: dong, dong
        TWD: taiwan dollar, taiwan dollars
        NGN: naira, naira
        KES: kenyan shilling, kenyan shillings
        EGP: egyptian pound, egyptian pounds
        KRW: won, won
        MXN: mexican peso, mexican pesos, centavo, centavos
        Fr: swiss franc, swiss francs, centime, centimes
        SFr: swiss franc, swiss francs, centime, centimes
        Kc: czech crown, czech crowns
        ₴: hryvnia, hryvnia
        ₵: cedi, cedis
        ₸: tenge, tenge
        SEK: swedish krona, swedish kronor
        NOK: norwegian krone, norwegian kroner
        DKK: danish krone, danish kroner
        PLN: zloty, zloty
        zl: zloty, zloty
        kr: krone, kroner
        TRY: turkish lira, turkish lira
        ₺: lira, lira
        RUB: ruble, rubles
        ₽: ruble, rubles
        ₪: shekel, shekels
        ILS: shekel, shekels
        ₫: dong, dong
        ₱: peso, pesos
        ₦: naira, naira
        ฿: baht, baht
        THB: baht, baht
        ZAR: rand, rand, cent, cents
        ₿: bitcoin, bitcoin
        BTC: bitcoin, bitcoin
        """
    ).items()
}

MULTIPLES = table(
    """
    k: thousand
    K: thousand
    m: million
    mn: million
    M: million
    b: billion
    bn: billion
    B: billion
    t: trillion
    tn: trillion
    T: trillion
    lakh: lakh
    crore: crore
    """
)
"""Suffixes right after an amount of money."""


class Unit(NamedTuple):
    """Singular and plural name of a unit."""

    one: str
    many: str


UNITS = {
    name: Unit(*value.split(", "))
    for name, value in table(
        """
        km: kilometer, kilometers
        m: meter, meters
        cm: centimeter, centimeters
        mm: millimeter, millimeters
        µm: micrometer, micrometers
        nm: nanometer, nanometers
        mi: mile, miles
        yd: yard, yards
        ft: foot, feet
        ha: hectare, hectares
        gal: gallon, gallons
        qt: quart, quarts
        fl oz: fluid ounce, fluid ounces
        kg: kilogram, kilograms
        kgs: kilogram, kilograms
        g: gram, grams
        mg: milligram, milligrams
        µg: microgram, micrograms
        mcg: microgram, micrograms
        ug: microgram, micrograms
        ng: nanogram, nanograms
        pg: picogram, picograms
        mmHg: millimeter of mercury, millimeters of mercury
        mm Hg: millimeter of mercury, millimeters of mercury
        cmH2O: centimeter of water, centimeters of water
        inHg: inch of mercury, inches of mercury
        mEq: milliequivalent, milliequivalents
        IU: international unit, international units
        mIU: milli international unit, milli international units
        mol: mole, moles
        mmol: millimole, millimoles
        µmol: micromole, micromoles
        nmol: nanomole, nanomoles
        kmol: kilomole, kilomoles
        mM: millimolar, millimolar
        µM: micromolar, micromolar
        nM: nanomolar, nanomolar
        kDa: kilodalton, kilodaltons
        Da: dalton, daltons
        amu: atomic mass unit, atomic mass units
        µL: microliter, microliters
        µl: microliter, microliters
        uL: microliter, microliters
        Bq: becquerel, becquerels
        kBq: kilobecquerel, kilobecquerels
        MBq: megabecquerel, megabecquerels
        Sv: sievert, sieverts
        mSv: millisievert, millisieverts
        µSv: microsievert, microsieverts
        Gy: gray, grays
        mGy: milligray, milligrays
        lx: lux, lux
        lux: lux, lux
        lm: lumen, lumens
        cd: candela, candelas
        atm: atmosphere, atmospheres
        bar: bar, bars
        rad: radian, radians
        mrad: milliradian, milliradians
        K: kelvin, kelvin
        °K: kelvin, kelvin
        J: joule, joules
        mJ: millijoule, millijoules
        GJ: gigajoule, gigajoules
        N: newton, newtons
        A: amp, amps
        µA: microamp, microamps
        kA: kiloamp, kiloamps
        mW: milliwatt, milliwatts
        TWh: terawatt hour, terawatt hours
        VA: volt amp, volt amps
        kVA: kilovolt amp, kilovolt amps
        µV: microvolt, microvolts
        MV: megavolt, megavolts
        nF: nanofarad, nanofarads
        pF: picofarad, picofarads
        µF: microfarad, microfarads
        mH: millihenry, millihenries
        µH: microhenry, microhenries
        mT: millitesla, millitesla
        T: tesla, tesla
        GeV: giga electron volt, giga electron volts
        TeV: tera electron volt, tera electron volts
        dm: decimeter, decimeters
        ly: light year, light years
        AU: astronomical unit, astronomical units
        kpc: kiloparsec, kiloparsecs
        Mpc: megaparsec, megaparsecs
        acre: acre, acres
        cwt: hundredweight, hundredweight
        kt: kiloton, kilotons
        kn: knot, knots
        kts: knot, knots
        lb-ft: pound foot, pound feet
        ft-lb: foot pound, foot pounds
        ft-lbs: foot pound, foot pounds
        lbf: pound force, pounds force
        kgf: kilogram force, kilograms force
        GPa: gigapascal, gigapascals
        cfm: C F M, C F M
        GPM: gallon per minute, gallons per minute
        gpm: gallon per minute, gallons per minute
        MP: megapixel, megapixels
        Mpx: megapixel, megapixels
        ppb: part per billion, parts per billion
        bps: basis point, basis points
        bp: basis point, basis points
        Tbps: terabit per second, terabits per second
        EB: exabyte, exabytes
        TFLOPS: teraflop, teraflops
        dBA: D B A, D B A
        pts: point, points
        qts: quart, quarts
        mils: mil, mils
        lb: pound, pounds
        lbs: pound, pounds
        oz: ounce, ounces
        L: liter, liters
        l: liter, liters
        tsp: teaspoon, teaspoons
        tbsp: tablespoon, tablespoons
        dl: deciliter, deciliters
        dL: deciliter, deciliters
        hl: hectoliter, hectoliters
        cc: cubic centimeter, cubic centimeters
        cl: centiliter, centiliters
        ml: milliliter, milliliters
        mL: milliliter, milliliters
        s: second, seconds
        sec: second, seconds
        secs: second, seconds
        ms: millisecond, milliseconds
        µs: microsecond, microseconds
        ns: nanosecond, nanoseconds
        min: minute, minutes
        mins: minute, minutes
        h: hour, hours
        hr: hour, hours
        hrs: hour, hours
        wk: week, weeks
        wks: week, weeks
        mos: month, months
        yr: year, years
        yrs: year, years
        Hz: hertz, hertz
        kHz: kilohertz, kilohertz
        MHz: megahertz, megahertz
        GHz: gigahertz, gigahertz
        KB: kilobyte, kilobytes
        kB: kilobyte, kilobytes
        MB: megabyte, megabytes
        GB: gigabyte, gigabytes
        TiB: tebibyte, tebibytes
        TB: terabyte, terabytes
        PB: petabyte, petabytes
        KiB: kibibyte, kibibytes
        MiB: mebibyte, mebibytes
        GiB: gibibyte, gibibytes
        kbps: kilobit per second, kilobits per second
        kbit: kilobit, kilobits
        Mbit: megabit, megabits
        Gbit: gigabit, gigabits
        kb: kilobit, kilobits
        Mb: megabit, megabits
        Gb: gigabit, gigabits
        Mbps: megabit per second, megabits per second
        Gbps: gigabit per second, gigabits per second
        W: watt, watts
        kW: kilowatt, kilowatts
        MW: megawatt, megawatts
        GW: gigawatt, gigawatts
        Wh: watt hour, watt hours
        kWh: kilowatt hour, kilowatt hours
        V: volt, volts
        mV: millivolt, millivolts
        kV: kilovolt, kilovolts
        mA: milliamp, milliamps
        mAh: milliamp hour, milliamp hours
        kJ: kilojoule, kilojoules
        MJ: megajoule, megajoules
        MWh: megawatt hour, megawatt hours
        GWh: gigawatt hour, gigawatt hours
        Ah: amp hour, amp hours
        Nm: newton meter, newton meters
        kN: kilonewton, kilonewtons
        eV: electron volt, electron volts
        keV: kilo electron volt, kilo electron volts
        MeV: mega electron volt, mega electron volts
        Ω: ohm, ohms
        kΩ: kiloohm, kiloohms
        MΩ: megaohm, megaohms
        Pa: pascal, pascals
        hPa: hectopascal, hectopascals
        MPa: megapascal, megapascals
        mbar: millibar, millibars
        psi: P S I, P S I
        hp: horsepower, horsepower
        kPa: kilopascal, kilopascals
        cal: calorie, calories
        kcal: kilocalorie, kilocalories
        dB: decibel, decibels
        dB(A): decibel A, decibels A
        px: pixel, pixels
        pp: percentage point, percentage points
        pcs: piece, pieces
        doz: dozen, dozen
        FPS: frame per second, frames per second
        DPI: dot per inch, dots per inch
        RPM: revolution per minute, revolutions per minute
        BPM: beat per minute, beats per minute
        mpg: mile per gallon, miles per gallon
        ppm: part per million, parts per million
        dBm: D B M, D B M
        dpi: dot per inch, dots per inch
        fps: frame per second, frames per second
        rpm: revolution per minute, revolutions per minute
        bpm: beat per minute, beats per minute
        mph: mile per hour, miles per hour
        kph: kilometer per hour, kilometers per hour
        °: degree, degrees
        °C: degree celsius, degrees celsius
        °F: degree fahrenheit, degrees fahrenheit
        """
    ).items()
}

UNITS_ALONE = "kg|km|cm|mm|mph|kHz|MHz|GHz|kWh|GB|MB|TB|Mbps|Gbps|tsp|tbsp|oz|lbs|lb|ml|mL|mcg|mmHg"
"""Units that are read without a number too."""
