//! Randomness from a seed, the same on every machine.

#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(sides.max(1))) as u32
    }

    /// A number that belongs to `key` and to nothing else.
    pub fn of(&mut self, key: &str) -> u32 {
        crc32fast::hash(format!("{}{key}", self.0).as_bytes())
    }
}
