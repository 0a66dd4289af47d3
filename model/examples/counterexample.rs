//! Tells how a mistake in the protocol breaks a promise: what happens, in order.

use idem_model::Mutant;
use idem_model::report::Report;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let named = |mutant: &Mutant| format!("{mutant:?}") == name;
    let Some(mutant) = Mutant::ALL.into_iter().find(named) else {
        println!("which mistake? one of {:?}", Mutant::ALL);
        return;
    };
    for counterexample in Report::of_mutant(mutant).broken {
        println!("not so: {}", counterexample.promise);
        for action in counterexample.actions {
            println!("  {action}");
        }
    }
}
