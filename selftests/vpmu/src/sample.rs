// SPDX-License-Identifier: GPL-2.0

//! The state of the CPU at the end of an instruction, and its memory.

/// The state of the CPU at the end of an instruction. Mirrors the head of `struct vpmu_sample`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// EIP of the instruction.
    pub ip: u64,
    /// EIP after the instruction.
    pub next_ip: u64,
    /// RFLAGS.
    pub flags: u64,
    /// The general registers in the order of their encodings: RAX, RCX, RDX, RBX, RSP, RBP, RSI,
    /// RDI, R8 to R15.
    pub regs: [u64; 16],
    /// XMM0 to XMM15.
    pub xmm: [[u64; 2]; 16],
    /// Linear address of the instruction's last load or software prefetch; 0 if there is none.
    pub load: u64,
    /// Linear address of the instruction's last store; 0 if there is none.
    pub store: u64,
    /// The TSC.
    pub tsc: u64,
}

/// The memory that the CPU sees, by linear addresses.
pub trait Memory {
    /// Reads the memory at `address`. Returns false if a page is missing.
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool;
    /// Writes to the memory at `address`. Returns false if a page is missing.
    fn write(&mut self, address: u64, buffer: &[u8]) -> bool;

    /// Reads the 64-bit word at `address`. Returns `None` if a page is missing.
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)
            .then_some(u64::from_le_bytes(bytes))
    }

    /// Writes 64-bit words from `address` on. Returns false if a page is missing.
    fn write_words(&mut self, address: u64, words: &[u64]) -> bool {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(address, &bytes)
    }
}
