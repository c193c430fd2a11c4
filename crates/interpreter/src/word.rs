//! The classes of single words, as named in `data/en/words.txt`.

use crate::cue::classes;

classes! {
    /// The class of a word, whatever its context.
    Word:
    Abbreviation = "abbreviation", "Has a dot after it that does not end a clause.";
    Action = "action", "Also a verb: no value after a modal or an infinitive's `to`.";
    Age = "age", "In a label: an age.";
    Address = "address", "In a label: contains addresses of people.";
    Ago = "ago", "In a label: the time since an event.";
    Agent = "agent", "Precedes the agent of a verb.";
    AlwaysTime = "always_time", "A time on its own.";
    Approximation = "approximation", "Can separate a comparator from its number.";
    Article = "article", "Has no meaning.";
    Auxiliary = "auxiliary", "Negates the next verb, and so its object.";
    Back = "back", "Ends a verb that undoes a negation.";
    BareNo = "bare_no", "Negates without a verb.";
    Becoming = "becoming", "Joins a thing and its new state.";
    BeforePlace = "before_place", "Ends a running text before a value.";
    BeforeTime = "before_time", "Can precede a time.";
    BeforeUs = "before_us", "After it, `us` is the country.";
    Clock = "clock", "Ends a time of day.";
    Code = "code", "In a label: values are not running text.";
    Common = "common", "Ordinary: never a misspelling or a short form of a value.";
    Connective = "connective", "Can separate the parts of a name.";
    Copula = "copula", "Joins a label and its value.";
    Counting = "counting", "With a negator: negates the previous mention.";
    Definite = "definite", "Precedes a known thing.";
    Day = "day", "A day or a part of one.";
    Determiner = "determiner", "Can precede a text.";
    EndsText = "ends_text", "Never belongs to a text.";
    Excluding = "excluding", "A verb of exclusion. Denied, it removes an exclusion.";
    Few = "few", "An uncertain number of time units.";
    Filler = "filler", "Can precede a comparator.";
    Free = "free", "After a hyphen: without the thing before it.";
    FromTime = "from_time", "Precedes the start or end of a time.";
    Function = "function", "Names a value only where one is required.";
    Head = "head", "Means the searched items. A negation after it is a separate clause.";
    IdleAtom = "idle_atom", "In a name: can be omitted.";
    IdleLabel = "idle_label", "In a label: names no category alone.";
    IdleLabelAtom = "idle_label_atom", "In a label: can be omitted.";
    InOpposite = "in_opposite", "A prefix that is also a word, and then not a prefix.";
    Interjection = "interjection", "Before a pause: corrects, and negates nothing.";
    Joining = "joining", "In an acronym that is said in full: can have no letter.";
    Literal = "literal", "Means what the label says, even if the label negates.";
    Mention = "mention", "A verb before a text of the error message.";
    Message = "message", "In a label: contains the error message.";
    Minus = "minus", "The minus sign.";
    Modal = "modal", "Precedes an action to take.";
    Newer = "newer", "Means a later year.";
    Nothing = "nothing", "Negates, but not a label.";
    OfFew = "of_few", "Separates an uncertain number from its unit.";
    Off = "off", "In a boolean label: `true` means off.";
    Older = "older", "Means an earlier year.";
    PartOfDay = "part_of_day", "Follows a day.";
    Participle = "participle", "An irregular participle: the predicate of a boolean label.";
    Particle = "particle", "Ends a verb that its object interrupts.";
    Path = "path", "In a label: contains paths or pages.";
    Person = "person", "Means people: a denied verb after it describes them.";
    Plus = "plus", "The plus sign.";
    Possessive = "possessive", "Can precede a label.";
    Preposition = "preposition", "Begins a part that the previous cue does not govern.";
    Pronoun = "pronoun", "Means a thing that precedes.";
    Prose = "prose", "In a label: values are running text.";
    ProseNote = "prose_note", "In a label: contains the error message, if no other label does.";
    ProseTitle = "prose_title", "In a label: contains the error message, if no `message` label does.";
    Rate = "rate", "A dimension in which more is faster.";
    Relative = "relative", "Begins a time relative to now.";
    Request = "request", "Requests something new, and so ends an edit.";
    Several = "several", "A plural copula.";
    Severe = "severe", "Means the searched items, and is also a value.";
    ShortUnit = "short_unit", "A unit of one letter that a space can separate from its number.";
    Source = "source", "Says where something came from.";
    Speaker = "speaker", "The speaker: a denial before it states an attitude.";
    Span = "span", "A time span that is not a unit.";
    Speed = "speed", "A comparative of speed.";
    Status = "status", "In a label: contains HTTP statuses.";
    TextNoun = "text_noun", "Can separate a label from its text.";
    ToTime = "to_time", "Separates two times of day.";
    Truth = "truth", "The name of a boolean value.";
    Us = "us", "A pronoun, and a country.";
    Verb = "verb", "Mostly a verb: a value only where one is expected.";
    WeakPart = "weak_part", "Never names a value as a part of it.";
    Year = "year", "In a label: numbers are years.";
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
