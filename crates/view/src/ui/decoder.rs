//! What a terminal sends, as keys and pasted text.
//!
//! crossterm's own reader forgets a key that comes while the size changes until another one comes, and does not return
//! while a sequence is not complete.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::update::Message;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

const PASTE_END: &[u8] = b"\x1b[201~";

/// Keeps what is not complete until the rest of it comes.
#[derive(Debug, Default)]
pub struct Decoder {
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
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Message> {
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
    pub fn is_ambiguous(&self) -> bool {
        !self.is_pasting
            && matches!(self.pending.as_slice(), [ESCAPE] | [ESCAPE, b'[' | b'O' | b'P' | b'X' | b']'..=b'_'])
    }

    /// After a pause: what was ambiguous is the Escape key.
    pub fn flush(&mut self) -> Option<Message> {
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
        // F1 to F5 of the Linux console.
        [ESCAPE, b'[', b'[', rest @ ..] => sequence(rest).map(|(_, length)| (Part::Nothing, length + 3)),
        [ESCAPE, b'[' | b'O', rest @ ..] => sequence(rest).map(|(part, length)| (part, length + 2)),
        [ESCAPE, b'P' | b'X' | b']'..=b'_', rest @ ..] => answer(rest).map(|length| (Part::Nothing, length + 2)),
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
        ESCAPE => (KeyCode::Esc, KeyModifiers::NONE),
        0x7f | 0x08 => (KeyCode::Backspace, KeyModifiers::NONE),
        0x01..=0x1a => (KeyCode::Char(char::from(byte - 1 + b'a')), KeyModifiers::CONTROL),
        b' '.. => (KeyCode::Char(char::from(byte)), KeyModifiers::NONE),
        _ => return Part::Nothing,
    };
    Part::Key(code, modifiers)
}

/// The length of what a terminal answers, up to BEL or `ESC \`; any other control character is a key that interrupts it.
fn answer(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(u8::is_ascii_control)?;
    match bytes[end..] {
        [ESCAPE] => None,
        [ESCAPE, b'\\', ..] => Some(end + 2),
        [BELL, ..] => Some(end + 1),
        _ => Some(end),
    }
}

/// What follows `ESC [` or `ESC O`, up to its final character.
fn sequence(bytes: &[u8]) -> Option<(Part, usize)> {
    let end = bytes.iter().position(|byte| !(b' '..=b'?').contains(byte))?;
    let last = bytes[end];
    if !(b'@'..=b'~').contains(&last) {
        // Another key interrupts it.
        return Some((Part::Nothing, end));
    }
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse().ok() };
    let numbers = std::str::from_utf8(&bytes[..end]).ok().and_then(|text| text.split(';').map(number).collect());
    Some((numbers.map_or(Part::Nothing, |numbers: Vec<u32>| numbered(last, &numbers)), end + 1))
}

fn numbered(last: u8, numbers: &[u32]) -> Part {
    let (code, modifiers) = match (last, numbers) {
        (b'~', [200, ..]) => return Part::PasteBegins,
        (b'~', [27, modifiers, code]) | (b'u', [code, modifiers, ..]) => return coded_key(*code, *modifiers),
        (b'u', [code]) => return coded_key(*code, 0),
        (b'~', [1 | 7, more @ ..]) => (Some(KeyCode::Home), more.first()),
        (b'~', [4 | 8, more @ ..]) => (Some(KeyCode::End), more.first()),
        (b'~', [5, more @ ..]) => (Some(KeyCode::PageUp), more.first()),
        (b'~', [6, more @ ..]) => (Some(KeyCode::PageDown), more.first()),
        (_, numbers) => (named(last), numbers.last()),
    };
    let modifiers = held_modifiers(modifiers.copied().unwrap_or_default());
    code.map_or(Part::Nothing, |code| Part::Key(code, modifiers))
}

/// The key of a character, as kitty (`u`) and xterm (`modifyOtherKeys`) send it.
fn coded_key(code: u32, modifiers: u32) -> Part {
    let part = match (u8::try_from(code), char::from_u32(code)) {
        (Ok(byte), _) if byte.is_ascii() => character(byte),
        // Keys without a character have codes for private use.
        (_, Some(c)) if !c.is_control() && !('\u{e000}'..='\u{f8ff}').contains(&c) => {
            Part::Key(KeyCode::Char(c), KeyModifiers::NONE)
        }
        _ => Part::Nothing,
    };
    match part {
        Part::Key(code, more) => Part::Key(code, more | held_modifiers(modifiers)),
        other => other,
    }
}

/// Which keys are held, of those that make another key of one: terminals send one more than the sum of their bits.
fn held_modifiers(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let held = |mask, modifiers| if bits & mask == 0 { KeyModifiers::NONE } else { modifiers };
    // Super, Hyper and Meta are as Alt.
    held(0b100, KeyModifiers::CONTROL) | held(0b11_1010, KeyModifiers::ALT)
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
            Message::Key(KeyEvent { code, modifiers, .. }) => match *modifiers {
                KeyModifiers::NONE => code.to_string(),
                modifiers => format!("{modifiers}-{code}"),
            },
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
        let text = "aä会\r\t\x7f\x08\x03\x1b[A\x1bOB\x1b[1;2C\x1b[D\x1b[Z\x1b[H\x1bOF\x1b[1~\x1b[5~\x1b[6~";
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
    fn function_keys_and_terminal_answers_are_ignored() {
        assert_eq!(decoded(b"\x1b[[A\x1b[[Ea\x1b[[\x1bOPb\x1b[?1uc"), "a b c");
        assert_eq!(decoded("\x1bO会\x1bO\x1b[A".as_bytes()), "会 Up", "what interrupts it is a key");
        assert_eq!(decoded(b"\x1b]11;rgb:0/0/0\x07a\x1b]11;q\x1b\\b\x1bP>|x(1)\x1b\\c\x1b_Gi=1;OK\x1b\\d"), "a b c d");
        assert_eq!(decoded(b"\x1b]11;q\x03\x1bPq\x1b[A"), "Control-c Up", "nothing is held up by half an answer");
        let mut decoder = Decoder::default();
        assert_eq!((decoder.read(b"\x1b]"), decoder.flush(), decoder.read(b"q")), (vec![], None, vec![key('q')]));
    }

    #[test]
    fn keys_keep_what_is_held_with_them() {
        let text = b"\x1b[1;3A\x1b[1;5D\x1b[1;2B\x1bO5A\x1bO1;5A\x1b[6;5~\x1b[1;9H";
        let arrows = "Alt-Up Control-Left Down Control-Up Control-Up Control-Page Down Alt-Home";
        assert_eq!(decoded(text), arrows);
        let letters = "Esc Control-c Control-c a A Alt-Enter";
        assert_eq!(
            decoded(b"\x1b[27u\x1b[99;5u\x1b[27;5;99~\x1b[97u\x1b[27;2;65~\x1b[13;3u\x1b[57441u\x1b[97;1:3u"),
            letters
        );
        assert_eq!(decoded(b"\x1b[4294967296;5A\x1b[1114112u\x1b[0u"), "", "no number is too large");
    }

    #[test]
    fn an_escape_is_a_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.read(b"\x1b"), []);
        assert!(decoder.is_ambiguous());
        assert_eq!(shown(decoder.flush().as_slice()), ["Esc"]);
        assert_eq!((decoder.flush(), decoder.read(b"[")), (None, vec![key('[')]));
        assert_eq!((decoder.read(b"\x1b["), decoder.flush(), decoder.is_ambiguous()), (vec![], None, false));
    }

    fn key(c: char) -> Message {
        Message::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    #[test]
    fn a_paste_is_text_whatever_is_in_it() {
        assert_eq!(decoded(b"a\x1b[200~q\x1b[A\r\x1b[201~b"), "a “q\x1b[A\r” b");
        let mut decoder = Decoder::default();
        decoder.read(b"\x1b[200~");
        assert!(!decoder.is_ambiguous() && decoder.flush().is_none());
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
        let known = [
            "a",
            "会",
            "\x1b[A",
            "\x1b[200~",
            "x\r",
            "\x1b[201~",
            "\x1bOB",
            "\x1b[1;5~",
            "\x1b",
            "\x1b]",
            "\x1b\\",
            "\x1b[[",
        ];
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
