//! The classes of single words, as named in `data/en/words.txt`.

classes! {
    /// The class of a word, whatever its context.
    Word:
    Abbreviation, Action, Age, Address, Ago, Agent, AlwaysTime, Approximation, Article,
    Auxiliary, Back, BareNo, Becoming, BeforePlace, BeforeTime, BeforeUs, Clock, Code, Common,
    Connective, Copula, Counting, Definite, Day, Determiner, Exception, Excluding, Few,
    FromTime, Function, Head, IdleAtom, IdleLabel, IdleLabelAtom, InOpposite, Interjection,
    Joining, Literal, Message, Minus, Modal, Newer, Nothing, OfFew, Off, Older, PartOfDay,
    Participle, Particle, Path, Person, Plus, Possessive, Preposition, Pronoun, Prose,
    ProseNote, ProseTitle, Rate, Relative, Request, Several, Severe, ShortUnit, Source, Span,
    Speed, Status, TextNoun, ToTime, Truth, Us, Verb, WeakPart, Year,
}
