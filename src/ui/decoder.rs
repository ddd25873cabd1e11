//! What a terminal sends, as keys and pasted text.
//!
//! crossterm's own reader forgets a key that comes while the size changes until another one comes, and does not return
//! while a sequence is not complete.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::update::Message;

const ESCAPE: u8 = 0x1b;

const PASTE_END: &[u8] = b"\x1b[201~";

/// Keeps what is not complete until the rest of it comes.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    is_pasting: bool,
}

/// What the first bytes of the input are.
enum Part {
    Key(KeyCode, KeyModifiers),
    PasteBegins,
    /// Something that the interface has no use for.
    Nothing,
}

impl Decoder {
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<Message> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let (mut rest, mut messages) = (pending.as_slice(), Vec::new());
        while !rest.is_empty() {
            if self.is_pasting {
                let (text, after, ends) = pasted(rest);
                messages.extend((!text.is_empty()).then_some(Message::Pasted(text)));
                (rest, self.is_pasting) = (after, !ends);
                if ends { continue } else { break }
            }
            let Some((part, length)) = first(rest) else { break };
            rest = &rest[length..];
            match part {
                Part::Key(code, modifiers) => messages.push(Message::Key(KeyEvent::new(code, modifiers))),
                Part::PasteBegins => self.is_pasting = true,
                Part::Nothing => {}
            }
        }
        self.pending = rest.to_vec();
        messages
    }

    /// Whether what came last may be the Escape key, or the beginning of a sequence.
    pub(crate) fn is_ambiguous(&self) -> bool {
        !self.is_pasting && matches!(self.pending.as_slice(), [ESCAPE] | [ESCAPE, b'[' | b'O'])
    }

    /// Nothing has followed for a while: what is ambiguous is a key.
    pub(crate) fn settle(&mut self) -> Option<Message> {
        let is_escape = self.is_ambiguous() && std::mem::take(&mut self.pending).len() == 1;
        is_escape.then(|| Message::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)))
    }
}

/// The text that was pasted, what follows it, and whether the end of the paste was between them.
fn pasted(bytes: &[u8]) -> (String, &[u8], bool) {
    let end = bytes.windows(PASTE_END.len()).position(|window| window == PASTE_END);
    let (text, after) = match end {
        Some(end) => (&bytes[..end], &bytes[end + PASTE_END.len()..]),
        None => {
            // The end may have come in part, and a character too.
            let mut whole = bytes.len().saturating_sub(PASTE_END.len() - 1);
            while whole > 0 && is_continuation(bytes[whole]) {
                whole -= 1;
            }
            bytes.split_at(whole)
        }
    };
    (String::from_utf8_lossy(text).into_owned(), after, end.is_some())
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// What the bytes begin with, and how many it has; `None`: it is not complete.
fn first(bytes: &[u8]) -> Option<(Part, usize)> {
    let key = |code| Part::Key(code, KeyModifiers::NONE);
    match bytes {
        [] | [ESCAPE] => None,
        [ESCAPE, b'[', rest @ ..] => sequence(rest).map(|(part, length)| (part, length + 2)),
        [ESCAPE, b'O', rest @ ..] => Some((named(*rest.first()?).map_or(Part::Nothing, key), 3)),
        [ESCAPE, ESCAPE, ..] => Some((key(KeyCode::Esc), 1)),
        [ESCAPE, rest @ ..] => match first(rest)? {
            (Part::Key(code, modifiers), length) => Some((Part::Key(code, modifiers | KeyModifiers::ALT), length + 1)),
            (part, length) => Some((part, length + 1)),
        },
        [byte, ..] if byte.is_ascii() => Some((character(*byte), 1)),
        [lead, ..] => {
            let length = match lead {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return Some((Part::Nothing, 1)),
            };
            let known = bytes.iter().skip(1).take(length - 1).take_while(|byte| is_continuation(**byte)).count() + 1;
            if known < length {
                return (known < bytes.len()).then_some((Part::Nothing, known));
            }
            let text = std::str::from_utf8(&bytes[..length]).ok();
            let c = text.and_then(|text| text.chars().next());
            Some((c.map_or(Part::Nothing, |c| key(KeyCode::Char(c))), length))
        }
    }
}

fn character(byte: u8) -> Part {
    let (code, modifiers) = match byte {
        b'\r' | b'\n' => (KeyCode::Enter, KeyModifiers::NONE),
        b'\t' => (KeyCode::Tab, KeyModifiers::NONE),
        0x7f | 0x08 => (KeyCode::Backspace, KeyModifiers::NONE),
        0x01..=0x1a => (KeyCode::Char(char::from(byte - 1 + b'a')), KeyModifiers::CONTROL),
        b' '.. => (KeyCode::Char(char::from(byte)), KeyModifiers::NONE),
        _ => return Part::Nothing,
    };
    Part::Key(code, modifiers)
}

/// What follows `ESC [`, up to its final character.
fn sequence(bytes: &[u8]) -> Option<(Part, usize)> {
    let end = bytes.iter().position(|byte| !(b' '..=b'?').contains(byte))?;
    let last = bytes[end];
    if !(b'@'..=b'~').contains(&last) {
        // Another key interrupts it.
        return Some((Part::Nothing, end));
    }
    let number = bytes[..end].split(|byte| *byte == b';').next().unwrap_or_default();
    let code = match (last, number) {
        (b'~', b"200") => return Some((Part::PasteBegins, end + 1)),
        (b'~', b"1" | b"7") => Some(KeyCode::Home),
        (b'~', b"4" | b"8") => Some(KeyCode::End),
        (b'~', b"5") => Some(KeyCode::PageUp),
        (b'~', b"6") => Some(KeyCode::PageDown),
        _ => named(last),
    };
    Some((code.map_or(Part::Nothing, |code| Part::Key(code, KeyModifiers::NONE)), end + 1))
}

fn named(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'Z' => KeyCode::BackTab,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(messages: &[Message]) -> Vec<String> {
        let one = |message: &Message| match message {
            Message::Key(KeyEvent { code: KeyCode::Char(c), modifiers, .. }) => match *modifiers {
                KeyModifiers::NONE => c.to_string(),
                modifiers => format!("{modifiers}-{c}"),
            },
            Message::Key(event) => event.code.to_string(),
            Message::Pasted(text) => format!("“{text}”"),
            other => format!("{other:?}"),
        };
        messages.iter().map(one).collect()
    }

    fn decoded(bytes: &[u8]) -> String {
        shown(&Decoder::default().read(bytes)).join(" ")
    }

    #[test]
    fn keys_are_read_in_the_forms_that_terminals_send() {
        let text = "aä会\r\t\x7f\x08\x03\x1b[A\x1bOB\x1b[1;5C\x1b[D\x1b[Z\x1b[H\x1bOF\x1b[1~\x1b[5~\x1b[6~";
        let up_and_down = "Up Down Right Left Back Tab Home End Home Page Up Page Down";
        assert_eq!(decoded(text.as_bytes()), format!("a ä 会 Enter Tab Backspace Backspace Control-c {up_and_down}"));
        assert_eq!(decoded(b"\x1bq\x1b\x1bOA"), "Alt-q Esc Up");
    }

    #[test]
    fn other_sequences_and_broken_text_are_left_out() {
        assert_eq!(decoded(b"\x1b[<0;3;4Ma\x1b[?1;2cb\x1b[I\x1bOP\xff\xc3(\xe4\xbcz\x00"), "a b ( z");
        assert_eq!(decoded(b"\x1b[1;\x1b[Bx"), "Down x");
    }

    #[test]
    fn an_escape_is_a_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.read(b"\x1b"), []);
        assert!(decoder.is_ambiguous());
        assert_eq!(shown(decoder.settle().as_slice()), ["Esc"]);
        assert_eq!((decoder.settle(), decoder.read(b"[")), (None, vec![key('[')]));
        assert_eq!((decoder.read(b"\x1b["), decoder.settle(), decoder.is_ambiguous()), (vec![], None, false));
    }

    fn key(c: char) -> Message {
        Message::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    #[test]
    fn a_paste_is_text_whatever_is_in_it() {
        assert_eq!(decoded(b"a\x1b[200~q\x1b[A\r\x1b[201~b"), "a “q\x1b[A\r” b");
        let mut decoder = Decoder::default();
        decoder.read(b"\x1b[200~");
        assert!(!decoder.is_ambiguous() && decoder.settle().is_none());
        assert_eq!(shown(&decoder.read("会計モ 0123456\x1b".as_bytes())), ["“会計モ 012”"]);
        assert_eq!(shown(&decoder.read(b"[201~q")), ["“3456”", "q"]);
    }

    /// With what was pasted in parts as one.
    fn joined(messages: Vec<Message>) -> Vec<Message> {
        messages.into_iter().fold(Vec::new(), |mut all, message| {
            match (all.last_mut(), message) {
                (Some(Message::Pasted(text)), Message::Pasted(more)) => text.push_str(&more),
                (_, message) => all.push(message),
            }
            all
        })
    }

    fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let known = ["a", "会", "\x1b[A", "\x1b[200~", "x\r", "\x1b[201~", "\x1bOB", "\x1b[1;5~", "\x1b"];
        let known = proptest::sample::select(known.map(|part| part.as_bytes().to_vec()).to_vec());
        proptest::collection::vec(prop_oneof![known, proptest::collection::vec(any::<u8>(), 0..4)], 0..12)
    }

    proptest! {
        #[test]
        fn bytes_in_pieces_are_the_same_keys(
            parts in parts(), cuts in proptest::collection::vec(0usize..60, 0..6)
        ) {
            let bytes = parts.concat();
            let mut cuts: Vec<usize> =
                cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let pieces = cuts.windows(2).flat_map(|cut| decoder.read(&bytes[cut[0]..cut[1]])).collect();
            prop_assert_eq!(joined(pieces), joined(Decoder::default().read(&bytes)));
        }
    }
}
