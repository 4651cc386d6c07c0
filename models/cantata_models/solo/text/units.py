"""Names of units and currencies."""

from __future__ import annotations

from typing import NamedTuple

from cantata_models.solo.text.wordlists import table


class Currency(NamedTuple):
    """Names for one and for several of the major and the minor coin."""

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
        CHF: swiss franc, swiss francs
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
    """
)
"""What stands right after an amount of money."""


class Unit(NamedTuple):
    """Names for one and for several of a unit."""

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
        kg: kilogram, kilograms
        g: gram, grams
        mg: milligram, milligrams
        µg: microgram, micrograms
        lb: pound, pounds
        lbs: pound, pounds
        oz: ounce, ounces
        L: liter, liters
        l: liter, liters
        tsp: teaspoon, teaspoons
        tbsp: tablespoon, tablespoons
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
        TB: terabyte, terabytes
        PB: petabyte, petabytes
        KiB: kibibyte, kibibytes
        MiB: mebibyte, mebibytes
        GiB: gibibyte, gibibytes
        kbps: kilobit per second, kilobits per second
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
        Pa: pascal, pascals
        kPa: kilopascal, kilopascals
        cal: calorie, calories
        kcal: kilocalorie, kilocalories
        dB: decibel, decibels
        px: pixel, pixels
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
