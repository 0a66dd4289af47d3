//! Every style of stored name, each with a state that has a name of its own.

use idem_diesel::StateMachine;

macro_rules! styled {
    ($($name:ident, $style:literal, $expected:literal;)*) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
        #[state_machine(rename_all = $style)]
        enum $name {
            #[state(initial, to(Done))]
            InReview,
            #[state(terminal, rename = "finished, at last")]
            Done,
        }
    )*

    fn main() {$(
        assert_eq!($name::InReview.name(), $expected);
        assert_eq!($name::Done.name(), "finished, at last");
        assert_eq!($name::from_name($expected), Some($name::InReview));
    )*}
    };
}

styled! {
    Snake, "snake_case", "in_review";
    Kebab, "kebab-case", "in-review";
    Lower, "lowercase", "inreview";
    Upper, "UPPERCASE", "INREVIEW";
    Screaming, "SCREAMING_SNAKE_CASE", "IN_REVIEW";
    Camel, "camelCase", "inReview";
    Pascal, "PascalCase", "InReview";
}
