//! Where things stand that want to be near others, keep an order and may not overlap.

pub(super) fn mean(places: &[usize], at: &[f64]) -> Option<f64> {
    (!places.is_empty()).then(|| places.iter().map(|&place| at[place]).sum::<f64>() / places.len() as f64)
}

/// A thing in a row: where its middle should be, how much that matters, and how far it must be from the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) middle: f64,
    pub(super) weight: f64,
    pub(super) distance: f64,
}

/// The middles that are nearest to the wanted ones by least squares, in the given order and with the distances kept:
/// neighbours that would overlap are moved as one block to the mean of what they want.
pub(super) fn place(row: &[Wanted]) -> Vec<f64> {
    struct Block {
        length: usize,
        weight: f64,
        middle: f64,
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    for (index, wanted) in row.iter().enumerate() {
        offset += if index == 0 { 0.0 } else { wanted.distance };
        offsets.push(offset);
        let mut block = Block { length: 1, weight: wanted.weight, middle: wanted.middle - offset };
        while let Some(last) = blocks.pop_if(|last| last.middle > block.middle) {
            let weight = last.weight + block.weight;
            let middle = (last.middle * last.weight + block.middle * block.weight) / weight;
            block = Block { length: last.length + block.length, weight, middle };
        }
        blocks.push(block);
    }
    let middles = blocks.iter().flat_map(|block| std::iter::repeat_n(block.middle, block.length));
    middles.zip(offsets).map(|(middle, offset)| middle + offset).collect()
}
