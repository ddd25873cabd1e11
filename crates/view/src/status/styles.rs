//! Colours: an extra to text that reads without them.

use anstyle::{AnsiColor, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Busy,
    Faint,
    Strong,
    /// Colours without a meaning, to tell things apart.
    Blue,
    Magenta,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styles {
    coloured: bool,
}

impl Styles {
    pub fn plain() -> Self {
        Self { coloured: false }
    }

    pub fn coloured() -> Self {
        Self { coloured: true }
    }

    pub fn paint(self, tone: Tone, text: &str) -> String {
        match style(tone).filter(|_| self.coloured) {
            Some(style) => format!("{style}{text}{style:#}"),
            None => text.to_owned(),
        }
    }
}

fn style(tone: Tone) -> Option<Style> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some(AnsiColor::Green.on_default()),
        Tone::Bad => Some(AnsiColor::Red.on_default().bold()),
        Tone::Warn => Some(AnsiColor::Yellow.on_default()),
        Tone::Busy => Some(AnsiColor::Cyan.on_default()),
        Tone::Faint => Some(Style::new().dimmed()),
        Tone::Blue => Some(AnsiColor::Blue.on_default()),
        Tone::Magenta => Some(AnsiColor::Magenta.on_default()),
        Tone::Strong => Some(Style::new().bold()),
    }
}
