//! The classes of single words, as `data/en/words.txt` names them.

use crate::cue::classes;

classes! {
    /// What a word is, whatever stands around it.
    Word:
    Abbreviation = "abbreviation", "Has a dot after it that ends nothing.";
    Age = "age", "In a label: how old it is.";
    Address = "address", "In a label: holds addresses of people.";
    Ago = "ago", "In a label: how long ago something was.";
    Agent = "agent", "Stands before who did what a verb says.";
    AlwaysTime = "always_time", "Says when, by itself.";
    Approximation = "approximation", "May stand between a comparator and its number.";
    Article = "article", "Carries nothing.";
    Auxiliary = "auxiliary", "Denies the verb that follows, and so its object.";
    Back = "back", "Ends a verb that undoes a denial.";
    BareNo = "bare_no", "Denies, without a verb.";
    BeforePlace = "before_place", "Ends a running text before a value.";
    BeforeQuote = "before_quote", "May stand before a quoted text.";
    BeforeTime = "before_time", "May stand before a time.";
    BeforeUs = "before_us", "Makes of us the country.";
    Clock = "clock", "Ends a time of day.";
    Code = "code", "In a label: its values are no running text.";
    Common = "common", "Ordinary: never a misspelling or a short form of a value.";
    Connective = "connective", "May stand between the parts of a name.";
    Copula = "copula", "Joins a label and what it is.";
    Countable = "countable", "Follows a method's name.";
    Counting = "counting", "Stands with a negator that denies what stands before.";
    Definite = "definite", "Before what is known.";
    Day = "day", "A day or a part of one.";
    Determiner = "determiner", "May stand before a text.";
    EndsText = "ends_text", "Never belongs to a text.";
    Few = "few", "An uncertain number, of a span of time.";
    Filler = "filler", "May stand before a comparator.";
    FromTime = "from_time", "Stands before the begin or end of a time.";
    Function = "function", "Names a value only where one must stand.";
    Head = "head", "Stands for the thing searched: what is denied of it is a clause of its own.";
    IdleAtom = "idle_atom", "In a name: need not be said.";
    IdleLabel = "idle_label", "In a label: names no category by itself.";
    IdleLabelAtom = "idle_label_atom", "In a label: need not be said.";
    InPlace = "in_place", "Stands before what is used.";
    InOpposite = "in_opposite", "A prefix that is a word as well, and then no prefix.";
    Interjection = "interjection", "Before a pause: corrects, and denies nothing.";
    Joining = "joining", "In an acronym that is said in full: need not have a letter.";
    Lacking = "lacking", "Said after a boolean label: not so.";
    Literal = "literal", "Means what the label says, even if that denies.";
    Mention = "mention", "A verb that a text of the message follows.";
    Message = "message", "In a label: holds what an error says.";
    Minus = "minus", "The sign.";
    Modal = "modal", "Stands before what is to be done.";
    Newer = "newer", "Of a later year.";
    Nothing = "nothing", "Denies, but no label.";
    OfFew = "of_few", "Stands between an uncertain number and what it counts.";
    Off = "off", "In a boolean label: its truth is that something is off.";
    Older = "older", "Of an earlier year.";
    PartOfDay = "part_of_day", "Follows a day.";
    Participle = "participle", "An irregular one: in a boolean label it says what is true.";
    Particle = "particle", "Ends a verb that its object interrupts.";
    Path = "path", "In a label: holds paths or pages.";
    Person = "person", "A number said of them is their age.";
    Plus = "plus", "The sign.";
    Possessive = "possessive", "May stand before a label.";
    Preposition = "preposition", "Begins something that the cue before does not govern.";
    Prose = "prose", "In a label: its values are running text.";
    ProseNote = "prose_note", "In a label: holds what an error says, if nothing else does.";
    ProseTitle = "prose_title", "In a label: holds what an error says, if no message does.";
    Rate = "rate", "A dimension of which more is faster.";
    Relative = "relative", "Begins a time that is counted from now.";
    Request = "request", "Asks for something new, and so ends an edit.";
    Several = "several", "A copula of several.";
    Severe = "severe", "The thing searched, and a value as well.";
    ShortUnit = "short_unit", "A unit of one letter that may stand apart from its number.";
    Source = "source", "Says where something came from.";
    Span = "span", "A span of time that is no unit.";
    Speed = "speed", "A comparative of speed.";
    Status = "status", "In a label: holds HTTP statuses.";
    Square = "square", "Makes a unit of area of one of length.";
    TextNoun = "text_noun", "May stand between a label and its text.";
    ToTime = "to_time", "Stands between two times of day.";
    Truth = "truth", "The name of a boolean value.";
    Us = "us", "A pronoun, and a country.";
    Verb = "verb", "Mostly a verb: a value only where one stands.";
    WeakPart = "weak_part", "Never names a value by being a part of it.";
    Year = "year", "In a label: its numbers are years.";
}

/// The classes of one word.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WordSet(u128);

impl WordSet {
    pub(crate) fn insert(&mut self, class: Word) {
        self.0 |= 1 << class as u8;
    }

    pub(crate) fn has(self, class: Word) -> bool {
        self.0 & (1 << class as u8) != 0
    }
}
