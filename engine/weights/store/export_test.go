package store

// Pinned is what SmolLM2 must be, for the tests outside the package.
func Pinned() (bytes int64, sha256 string) { return smollm2.bytes, smollm2.sha256 }
