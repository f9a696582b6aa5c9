//! "Always": a yes that is remembered, chosen with a flag or at the prompt.

use std::time::Duration;

use anyhow::{Result, bail};
use haft_runtime::{Answer, Breadth, CallId, Coverage, Grant, Offer, Past, Question};
use jiff::Timestamp;

use crate::{
    backend::{Backend, OfferedGrant, RememberedGrant},
    commands::{mistake, prompt::TerminalLines},
    house::House,
    settings::duration,
    show::{
        grant::bounds_words,
        safe::safe,
        style::{DIM, STRONG, WARN},
        table::{width, wrapped},
    },
};

/// How many recorded calls a grant is held against, to show what it would have covered.
pub(crate) const LAST: u32 = 500;

/// How one of the offers is chosen.
const WHICH: &str = "Type a number, then how long and how often if you like: 2, 2 8h, 2 8h 5x.\n\
                     Which? (Enter goes back) ";

/// What a yes is turned into.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Always {
    /// This very call: the same input, the same paths
    Call,
    /// The same tool in this folder; deletes only if this call did
    Folder,
    /// The same tool on any path, with no more changes and no other kinds of them
    Bounds,
}

impl Always {
    fn breadth(self) -> Breadth {
        match self {
            Self::Call => Breadth::Call,
            Self::Folder => Breadth::Folder,
            Self::Bounds => Breadth::Bounds,
        }
    }
}

/// How long and how often a grant counts; what is absent limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrantLimits {
    pub(crate) lasting: Option<Duration>,
    pub(crate) uses: Option<u32>,
}

impl GrantLimits {
    /// The grant with its end and its number of uses.
    pub(crate) fn of(self, grant: Grant) -> Grant {
        let until = self.lasting.map(|lasting| Timestamp::now().checked_add(lasting).unwrap_or(Timestamp::MAX));
        Grant { until, uses_left: self.uses, ..grant }
    }
}

/// A length of time that is longer than nothing.
pub(crate) fn parse_lasting(text: &str) -> Result<Duration, String> {
    let lasting = duration(text).map_err(|err| err.to_string())?;
    if lasting.is_zero() { Err("a grant that ends at once covers nothing; try 8h".to_owned()) } else { Ok(lasting) }
}

/// The yes that a flag asks for.
pub(crate) async fn by_flag(backend: &Backend, call: &CallId, always: Always, lease: GrantLimits) -> Result<Answer> {
    let Some((question, None)) = backend.question(call).await? else {
        // There is nothing to turn into a grant, and the answer is told why it does not count.
        return Ok(Answer::Approve { paths: None });
    };
    let offers = match backend.offers(&question).await? {
        Ok(offers) => offers,
        Err(why) => {
            return Err(mistake(format!("a yes cannot be remembered: {why}; leave out `--always` to say yes once")));
        }
    };
    let Some(offer) = offers.into_iter().map(|offered| offered.offer).find(|offer| offer.breadth == always.breadth())
    else {
        return Err(mistake(format!("only `--always call` is possible: what {call} does cannot be seen before")));
    };
    Ok(answer(&question, offer, lease))
}

/// A grant is for whoever asked.
fn answer(question: &Question, offer: Offer, lease: GrantLimits) -> Answer {
    let grant = Grant { caller: Some(question.asked_by.id.clone()), ..Grant::new(&question.tool, offer.bounds) };
    Answer::Always { grant: Box::new(lease.of(grant)) }
}

/// What a person is told of an answer once it counts; `None` when it leaves nothing behind.
pub(crate) async fn remembered(house: &House, answer: &Answer) -> Option<String> {
    let Answer::Always { grant } = answer else { return None };
    // What it covers is a courtesy: the answer counts also when it cannot be told.
    let past = house.store.last_calls(&house.scope, &house.here, LAST).await.unwrap_or_default();
    let covered = coverage(house, grant, &past).to_string();
    Some(remembered_as(&RememberedGrant { grant: (**grant).clone(), covered }))
}

/// A grant that was given by an answer, in words.
pub(crate) fn remembered_as(RememberedGrant { grant, covered }: &RememberedGrant) -> String {
    let words = bounds_words(grant.bounds.written());
    let text = format!("{} may do this without asking: {words} ({covered})", grant.tool);
    format!("{DIM}remembered as {}\n{}{DIM:#}", grant.id, wrapped(&text, width()))
}

/// Shows the offers with what each would have covered, and lets the person choose. `None` goes back to the card.
pub(crate) async fn choose(backend: &Backend, question: &Question, lines: &mut TerminalLines) -> Option<Answer> {
    let offers = backend.offers(question).await.unwrap_or_else(|err| Err(format!("{err:#}")));
    let offers = match offers {
        Ok(offers) => offers,
        Err(why) => {
            anstream::eprintln!("{WARN}A yes cannot be remembered:{WARN:#} {}", safe(&why));
            return None;
        }
    };
    for (offered, number) in offers.iter().zip(1..) {
        anstream::eprint!("{}", offer_text(offered, number));
    }
    let offers: Vec<Offer> = offers.into_iter().map(|offered| offered.offer).collect();
    loop {
        let typed = lines.next(WHICH).await?;
        if typed.trim().is_empty() {
            return None;
        }
        match chosen(&typed, &offers) {
            Ok((offer, lease)) => return Some(answer(question, offer, lease)),
            Err(err) => anstream::eprintln!("{err:#}"),
        }
    }
}

fn offer_text(OfferedGrant { offer, covered }: &OfferedGrant, number: u8) -> String {
    let what = match offer.breadth {
        Breadth::Call => "this very call",
        Breadth::Folder => "the same tool in this folder",
        Breadth::Bounds => "the same tool on any path",
    };
    let mut text = format!("  {STRONG}{number}{STRONG:#}  {what} {DIM}({covered}){DIM:#}\n");
    for line in wrapped(&bounds_words(offer.bounds.written()), width().saturating_sub(5)).lines() {
        text.push_str(&format!("     {line}\n"));
    }
    text
}

/// `2 8h 5x`: which, how long, how often.
fn chosen(typed: &str, offers: &[Offer]) -> Result<(Offer, GrantLimits)> {
    let mut words = typed.split_whitespace();
    let which = words.next().and_then(|word| word.parse::<usize>().ok());
    let Some(offer) = which.and_then(|which| offers.get(which.checked_sub(1)?)) else {
        bail!("begin with a number from 1 to {}", offers.len());
    };
    let mut lease = GrantLimits::default();
    for word in words {
        match word.strip_suffix('x').map(str::parse::<u32>) {
            Some(Ok(uses @ 1..)) => lease.uses = Some(uses),
            Some(_) => bail!("`{word}` is no number of uses; write it like `5x`"),
            None => lease.lasting = Some(parse_lasting(word).map_err(anyhow::Error::msg)?),
        }
    }
    Ok((offer.clone(), lease))
}

/// Holds a grant against recorded calls; nothing is run.
pub(crate) fn coverage(house: &House, grant: &Grant, past: &[Past]) -> Coverage {
    let tool = house.tools().get(&grant.tool);
    Coverage::of(grant, tool.as_deref(), past)
}

#[cfg(test)]
mod tests {
    use haft_runtime::{Bounds, Breadth, Offer};

    use super::chosen;

    #[test]
    fn what_is_typed_at_the_prompt() {
        let offer = |breadth| Offer { breadth, bounds: Bounds::default() };
        let offers = [offer(Breadth::Call), offer(Breadth::Folder)];
        let said = |typed: &str| match chosen(typed, &offers) {
            Ok((offer, lease)) => format!("{:?} {:?} {:?}", offer.breadth, lease.lasting, lease.uses),
            Err(err) => err.to_string(),
        };
        assert_eq!(said("1"), "Call None None");
        assert_eq!(said(" 2 8h  5x "), "Folder Some(28800s) Some(5)");
        assert_eq!(said("2 5x 90s"), "Folder Some(90s) Some(5)");
        for typed in ["0", "3", "a", "-1", "99999999999999999999"] {
            assert_eq!(said(typed), "begin with a number from 1 to 2", "{typed}");
        }
        for typed in ["1 0x", "1 x", "1 -3x", "1 99999999999x"] {
            assert!(said(typed).contains("is no number of uses"), "{typed}");
        }
        assert!(said("1 0s").contains("covers nothing") && said("1 soon").contains("length of time"));
    }
}
