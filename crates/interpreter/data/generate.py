"""Writes the tables of data/en/ from published data: countries, languages, currencies, airports.

    python3 -m venv .venv/tables
    .venv/tables/bin/pip install --requirement crates/interpreter/data/requirements.txt
    .venv/tables/bin/python crates/interpreter/data/generate.py

With --check it writes nothing, and fails if a table differs. No data set has demonyms, nicknames and former
names: the files named -said.txt contain them, written by hand.
"""

import csv
import sys
from importlib.metadata import version
from pathlib import Path

import airportsdata
from babel import Locale, UnknownLocaleError
from babel.core import get_global

TABLES = Path(__file__).parent / "en"
ENGLISH = Locale("en")
CLDR = f"Source: Unicode CLDR {{}}, in Babel {version('babel')}; Unicode License v3."
AIRPORTS = f"Source: airportsdata {version('airportsdata')} (MIT License)."
# A name in an official language of a country counts if at least this percentage of the people
# speaks the language.
SPOKEN_BY_PERCENT = 20
# Words of an airport's name that can be omitted.
KINDS_OF_AIRPORT = ["International", "Intercontinental", "Intl.", "Intl", "Airport", "Airfield"]


def own(language, kind, code):
    """Returns the name of something in a language, if it has Latin letters only."""
    try:
        name = getattr(Locale.parse(language), kind).get(code, "")
    except (UnknownLocaleError, ValueError):
        return ""
    latin = all(ord(letter) < 0x250 or letter == "’" for letter in name)
    return name if latin else ""


def plain(name):
    """Returns a name without commas, which separate the entries of the data files."""
    return name.replace("’", "'").replace(", ", " ")


def entry(names, aliases):
    """Returns a line: the interchangeable names, then their aliases, each once."""
    names = list(dict.fromkeys(filter(None, map(plain, names))))
    said = {name.casefold() for name in names}
    aliases = dict.fromkeys(alias for alias in map(str.lower, map(plain, aliases)) if alias)
    aliases = [alias for alias in aliases if alias.casefold() not in said]
    return ", ".join(names) + (" > " + ", ".join(aliases) if aliases else "")


def countries():
    codes = {}
    for three, two in sorted(get_global("territory_aliases").items()):
        # Current codes (MMR, COD, SRB) contain both letters of the country's code; former ones
        # (BUR, ZAR, YUG) do not.
        if len(three) == 3 and three.isalpha() and (set(two[0]) <= set(three) or two[0] not in codes):
            codes[two[0]] = three
    spoken = get_global("territory_languages")
    for code, name in ENGLISH.territories.items():
        if code not in codes or codes[code].startswith("X"):
            continue
        # Myanmar (Burma); Congo - Kinshasa; Bosnia & Herzegovina
        name, _, other = name.rstrip(")").partition(" (")
        names = [name.replace(" SAR China", ""), name.replace(" & ", " and "), other, code, codes[code]]
        languages = [language for language, facts in spoken.get(code, {}).items()
                     if facts["official_status"] and facts["population_percent"] >= SPOKEN_BY_PERCENT]
        yield entry(names, [own(language, "territories", code) for language in languages])


def languages():
    official = {language for spoken in get_global("territory_languages").values()
                for language, facts in spoken.items() if facts["official_status"]}
    codes = {}
    for alias, language in get_global("language_aliases").items():
        if len(alias) == 3 and len(language) == 2:
            codes.setdefault(language, []).append(alias)
    for code, name in ENGLISH.languages.items():
        if code in official and "_" not in code and "(" not in name:
            yield entry([name, code, *sorted(codes.get(code, []))], [own(code, "languages", code)])


def currencies():
    current = {found[0] for uses in get_global("territory_currencies").values()
               for found in uses if found[2] is None and found[3]}
    for code in current:
        name = ENGLISH.currencies.get(code)
        if name:
            yield entry([code, name.lower()], [])


def airports():
    folder = Path(airportsdata.__file__).parent
    with open(folder / "iata_macs.csv", newline="") as file:
        cities = {row["Airport Code"]: row["City Name"] for row in csv.DictReader(file)}
    for code, facts in airportsdata.load("IATA").items():
        if code not in cities and not any(kind in facts["name"] for kind in KINDS_OF_AIRPORT[:2]):
            continue
        city = cities.get(code) or facts["city"]
        words = facts["name"].replace("/", " ").replace("-", " ").split()
        name = " ".join(word for word in words if word not in KINDS_OF_AIRPORT and word.isalpha())
        alone = name.removeprefix(f"{city} ")
        short = alone if len(alone) > 4 and alone not in ("City", "Capital", "Downtown", "Regional") else ""
        yield entry([code], [city, name, short])


HEADS = {
    "airports": ([
        "Airports that name themselves international or share a city: IATA code > city, names.",
        AIRPORTS,
    ], airports),
    "countries": ([
        "Countries: English name, codes of two and three letters > names in their languages.",
        CLDR.format("territories"),
    ], countries),
    "currencies": (["Currencies: ISO 4217 code, name.", CLDR.format("currencies")], currencies),
    "languages": ([
        "Official languages: English name, ISO 639 codes > own names.",
        CLDR.format("languages"),
    ], languages),
}


def main():
    stale = []
    for name, (head, entries) in HEADS.items():
        lines = [f"# {line}" for line in [*head, "Generated by data/generate.py."]]
        text = "\n".join([*lines, *sorted(set(entries()), key=str.encode)]) + "\n"
        path = TABLES / f"{name}.txt"
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"error: {', '.join(stale)}: stale; run data/generate.py")


main()
